"""Compile the kernels that tests need before a test waits for one: the process for it.

It reads a job as JSON from stdin, the rendered files with the definitions of each and
how many modules to compile side by side, and writes events as lines of JSON to stdout.

Which modules FlashInfer compiles depends on what its functions are given, so each backend
is called on a definition's smallest case. A module that is not compiled ends the call
before FlashInfer would wait for it; it is compiled beside the others, from when it is
found, and then one call for each label is made again, which may ask for another module.
SGLang's Triton kernels and those of CuTe DSL are compiled by their calls, one after the
other: Triton compiles for a definition's constants, and workers that met a kernel at once
would all tune it. A definition is ready when all that its calls lacked is compiled: its
tests need not wait for those of others.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import PriorityQueue, SimpleQueue
from typing import Any

import torch

from generator.execution.processes import run, safe_environment
from generator.running.free_memory import needed_bytes, shortage
from generator.running.record_worker import can_go_on
from generator.running.rendered import load_rendered
from generator.running.warming import STAMP, Job
from kernel_judge.checks.available import source_name, usable_sources
from kernel_judge.checks.sources import answer
from kernel_judge.definition import Backend, Case
from kernel_judge.skipping import Skip
from kernel_judge.subject import Subject

# modules that take longest come first: one file that takes minutes, then ten of CUTLASS
_SLOWEST = (
    "pod_|topk",
    "_prefill_.*_sm90",
    "gemm_sm90",
    "sampling",
    "_prefill_",
    "norm|rope",
)
# ninja's processes a module: a module has from 1 to about 20 files, and one of CUTLASS takes
# 3.3 GB
_MODULE_JOBS = "5"
# what all compilers but those of the slowest modules yield to tests, and to these: several
# cores are of no use to a single file, for which all wait in the end
_NICE, _LOWEST = 5, 19
# FlashInfer has kernels compressed for size, which is a seventh of what the top k takes
_COMPRESS = "--compress-mode=balance"
_NVCC_SECONDS = 60.0


class NotCompiled(BaseException):
    """The module for which FlashInfer would wait; nobody on the way catches it."""

    def __init__(self, module: Any) -> None:
        super().__init__(module.name)
        self.module = module


@dataclass(frozen=True)
class WarmUpCall:
    """A warm-up call: a backend of a provider on a definition's smallest case."""

    subject: Subject
    provider: str
    backend: Backend
    case: Case

    @property
    def label(self) -> str:
        """Return `gqa_paged flashinfer/fa2`, which calls of one kernel share."""
        return f"{self.subject.op_type} {source_name(self.provider, self.backend)}"

    def make(self, device: torch.device) -> None:
        """Call the kernel; pass over what can't be called with the room there is."""
        subject = self.subject
        peak_bytes = subject.op.peak_bytes
        if shortage(subject.definition, self.case, device, peak_bytes) is not None:
            return
        trial = subject.trial(self.case, device, run=lambda *_: None)
        try:
            with suppress(Skip):
                answer(subject, trial, self.provider, self.backend)
        finally:
            trial.release()


def calls_of(job: Job, device: torch.device) -> Iterator[WarmUpCall]:
    """Yield what the tests of some definitions call."""
    subjects = [
        subject
        for file, names in job.files.items()
        for subject in load_rendered(Path(file))
        if subject.name in names
    ]
    for subject in subjects:
        definition, op = subject.definition, subject.op
        needed = partial(needed_bytes, definition, peak_bytes=op.peak_bytes)
        case = min(op.cases(definition), key=needed)
        for provider, backend in usable_sources(subject, device):
            yield WarmUpCall(subject, provider, backend, case)


class Warming:
    """The calls of a warm-up, and the compilation of what they lack, as events."""

    def __init__(self, jobs: int, device: torch.device, tell: Any) -> None:
        self._device = device
        self._slots = threading.Semaphore(jobs)
        self._tell = tell
        self._start = time.monotonic()
        # modules that no call may load yet, by name
        self._lacking: set[str] = set()
        # of them those that nobody compiles yet, the slowest first
        self._found: PriorityQueue[tuple[int, int, Any]] = PriorityQueue()
        self._numbers = itertools.count()
        # each module that was compiled, and why that failed
        self._compiled: SimpleQueue[tuple[str, str]] = SimpleQueue()
        # of those that calls may load now, or never: why it failed, if it did
        self._outcomes: dict[str, str] = {}
        # by module and label: the calls that lacked it, of which the first is made again
        self._waiting: dict[str, dict[str, list[WarmUpCall]]] = {}
        # by definition: how many of its calls are still to be made
        self._unmade: Counter[str] = Counter()
        self._lock = threading.Lock()

    def run(self, calls: list[WarmUpCall], names: Iterable[str]) -> None:
        """Make the calls for some definitions; return when all modules are compiled."""
        # SGLang's process compiles beside FlashInfer's modules, its PyTorch code nothing
        sglang = [
            call
            for call in calls
            if call.provider == "sglang" and call.backend.needs_cuda
        ]
        # FlashInfer's modules are intercepted; others may compile at a first call too
        here = [c for c in calls if c.provider not in ("sglang", "pytorch")]
        self._unmade.update(call.subject.name for call in [*here, *sglang])
        for name in set(names) - self._unmade.keys():
            self._tell(event="ready", name=name)
        beside = threading.Thread(target=self._ask_all, args=[sglang])
        beside.start()
        self._intercept()
        for call in here:
            self._call([call])
        while self._waiting:
            for group in self._next_compiled():
                self._call(group)
        beside.join()

    def _ask_all(self, calls: list[WarmUpCall]) -> None:
        for call in calls:
            start = time.monotonic()
            self._call([call])
            seconds = time.monotonic() - start
            self._tell(event="called", name=call.label, seconds=seconds)

    def _call(self, group: list[WarmUpCall]) -> None:
        """Make the first of some calls that load the same; wait with all if it can't be."""
        call = group[0]
        try:
            call.make(self._device)
        except NotCompiled as lacking:
            module = lacking.module
            labels = self._waiting.setdefault(module.name, {})
            labels.setdefault(call.label, []).extend(group)
            if module.name not in self._lacking:
                self._compile(module)
            return
        except Exception as error:
            self._tell(event="failed", name=call.label, why=_first_line(error))
            if not can_go_on(self._device):
                raise SystemExit("a kernel has broken the CUDA context") from error
        self._made(group)

    def _compile(self, module: Any) -> None:
        """Have a module compiled when it is the slowest of those that wait for it."""
        self._lacking.add(module.name)
        self._tell(event="compiling", name=module.name)
        self._found.put((_rank(module.name), next(self._numbers), module))
        # not of a pool: a thread that has yielded once does so for ever
        threading.Thread(target=self._compile_slowest, daemon=True).start()

    def _compile_slowest(self) -> None:
        with self._slots:
            rank, _, module = self._found.get()
            if rank:
                _yield_to_others()
            why = ""
            try:
                module.build(verbose=False, need_lock=True)
            except Exception as error:  # noqa: BLE001 - tests will say it too
                why = _first_line(error)
        self._compiled.put((module.name, why))

    def _next_compiled(self) -> list[list[WarmUpCall]]:
        """Wait until a module is compiled; return the calls that waited, by label."""
        name, why = self._compiled.get()
        self._lacking.remove(name)
        self._outcomes[name] = why
        groups = list(self._waiting.pop(name).values())
        if why:
            self._tell(event="failed", name=name, why=why)
            for group in groups:
                self._made(group)
            return []
        seconds = time.monotonic() - self._start
        self._tell(event="compiled", name=name, seconds=seconds)
        return groups

    def _made(self, group: list[WarmUpCall]) -> None:
        """Note that some calls load what they need, or never will."""
        with self._lock:
            names = Counter(call.subject.name for call in group)
            self._unmade -= names
            ready = [name for name in names if not self._unmade[name]]
        for name in ready:
            self._tell(event="ready", name=name)

    def _intercept(self) -> None:
        """Let a call end where FlashInfer would compile a module by nvcc and wait."""
        from flashinfer.jit import core

        build_and_load = core.JitSpec.build_and_load

        def load(module: Any, *arguments: Any, **named: Any) -> Any:
            if hasattr(module, "write_ninja"):
                why = self._outcomes.get(module.name)
                if why:
                    raise RuntimeError(f"{module.name} does not compile")
                # of one that is being compiled half a file may be there
                lacks = module.name in self._lacking or not module.is_compiled
                if why is None and lacks:
                    raise NotCompiled(module)
            return build_and_load(module, *arguments, **named)

        core.JitSpec.build_and_load = load


def _yield_to_others() -> None:
    """Lower the priority of this thread and of what it starts, on Linux."""
    with suppress(OSError):
        usual = os.getpriority(os.PRIO_PROCESS, os.getpid())
        lower = min(usual + _NICE, _LOWEST)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), lower)


def _rank(name: str) -> int:
    """Return a module's place among all: those that take longest come first."""
    slow = (rank for rank, part in enumerate(_SLOWEST) if re.search(part, name))
    return next(slow, len(_SLOWEST))


def compress_quickly() -> None:
    """Have nvcc compress kernels quickly, whatever else it is asked, if it knows how."""
    from flashinfer.jit.cpp_ext import get_cuda_path

    with suppress(OSError, RuntimeError, subprocess.TimeoutExpired):
        nvcc = os.path.join(get_cuda_path(), "bin", "nvcc")
        environment = safe_environment()
        known = run([nvcc, "--help"], environment=environment, timeout=_NVCC_SECONDS)
        if _COMPRESS.partition("=")[0] in known.stdout:
            asked = os.environ.get("NVCC_APPEND_FLAGS", "")
            os.environ["NVCC_APPEND_FLAGS"] = f"{_COMPRESS} {asked}".rstrip()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    message = next((line for line in lines if "error:" in line), lines[0])
    return f"{type(error).__name__}: {message}"[:300]


def _stamp(job: Job) -> None:
    """Note beside FlashInfer's compiled modules for which definitions they are complete."""
    from flashinfer.jit.env import FLASHINFER_WORKSPACE_DIR

    path = Path(FLASHINFER_WORKSPACE_DIR, STAMP)
    known = json.loads(path.read_text("ascii")) if path.exists() else []
    names = [name for names in job.files.values() for name in names]
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(sorted({*known, *names})), "ascii")
    draft.replace(path)


def main() -> int:
    """Do the job on stdin."""
    # what libraries print must not come between the events
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(**event: Any) -> None:
        with lock:
            out.write(json.dumps(event) + "\n")
            out.flush()

    os.environ.setdefault("MAX_JOBS", _MODULE_JOBS)
    # FlashInfer is imported while the tests are collected that make up the job
    compress_quickly()
    text = sys.stdin.read()
    if not text:
        return 0
    job = Job(**json.loads(text))
    # beside the rendered files may lie what they import
    sys.path[1:1] = dict.fromkeys(str(Path(file).parent) for file in job.files)
    device = torch.device("cuda", 0)
    names = itertools.chain.from_iterable(job.files.values())
    Warming(job.jobs, device, tell).run(list(calls_of(job, device)), names)
    _stamp(job)
    tell(event="done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
