"""Record what production kernels return: one file a definition, whole or not at all.

`trace-dataset record` calls `record_definition` in worker processes.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from generator.testing.available import backends_of, source_name
from generator.testing.definition import Backend
from generator.testing.fingerprint import case_value, interface_hash, source_hash
from generator.testing.harness import ReferenceTests
from generator.testing.kernel_recorder import KernelRecorder, RecordJob, cases_of
from generator.testing.machine import RecordingMachine, this_machine
from generator.testing.providers import PROVIDERS, backend_obstacle
from generator.testing.recorded_outputs import Unstorable
from generator.testing.recording_file import (
    Damaged,
    Recording,
    pack,
    read,
    recording_path,
    write,
)

RECORDED, CURRENT, UNUSABLE, FAILED = "recorded", "current", "unusable", "failed"
Sources = list[tuple[str, Backend]]


@dataclass
class WorkerResult:
    """Tell what became of one definition; `remarks` are for a person.

    `agrees` says whether all that was called agrees with the oracle.
    """

    definition: str
    status: str
    labels: tuple[str, ...] = ()
    bytes: int = 0
    agrees: bool = True
    remarks: list[str] = field(default_factory=list)


def record(
    cls: type[ReferenceTests],
    job: RecordJob,
    machine: RecordingMachine,
    keep: Callable[[Path, Recording], int] = write,
) -> WorkerResult:
    """Record one definition's cases from its kernels, beside what its file has.

    `keep` takes the recording and returns its bytes. What was recorded of other inputs or another interface is dropped. Raises nothing
    but KeyboardInterrupt: what went wrong is in the result.
    """
    result = WorkerResult(cls.name, FAILED)
    device = torch.device(job.device)
    sources = _sources(cls, job.providers, device, result.remarks)
    if not sources:
        result.status = UNUSABLE
        return result
    path = recording_path(Path(job.out), cls.op_type, cls.name)
    try:
        old = _kept(cls, path, result.remarks)
        wanted = [machine.label(*source) for source in sources]
        taken = KernelRecorder(cls, job, machine, old)
        if not job.force and old is not None and _is_current(taken, old, wanted):
            result.status, result.labels = CURRENT, tuple(wanted)
            return result
        made = _first_that_records(taken, sources, result.remarks)
        result.agrees = taken.agrees
        if made is None:
            return result
        result.bytes = keep(path, made)
        result.labels = tuple(taken.labels)
        result.status = RECORDED
    except (OSError, Unstorable) as error:
        result.remarks.append(str(error))
    return result


def _sources(
    cls: type[ReferenceTests],
    providers: Sequence[str],
    device: torch.device,
    remarks: list[str],
) -> Sources:
    """Return the usable sources, those of the preferred provider first."""
    if cls.unresolved is not None:
        remarks.append(f"UNRESOLVED: {cls.unresolved}")
        return []
    usable, reasons = [], []
    for provider in providers or PROVIDERS:
        backends = backends_of(cls, provider, cls.definition())
        if not backends:
            reasons.append(f"{provider}: no adapter")
        for backend in backends:
            obstacle = backend_obstacle(provider, backend, device)
            if obstacle is None:
                usable.append((provider, backend))
            else:
                reasons.append(f"{source_name(provider, backend)}: {obstacle}")
    if not usable:
        remarks.append(f"no provider is usable: {'; '.join(dict.fromkeys(reasons))}")
    return usable


def _kept(
    cls: type[ReferenceTests], path: Path, remarks: list[str]
) -> Recording | None:
    """Return what a definition's file has, unless it is of another interface."""
    try:
        old = read(path)
    except FileNotFoundError:
        return None
    except Damaged as error:
        remarks.append(f"replaced: {error}")
        return None
    if old.body["interface"] != interface_hash(cls.definition()):
        remarks.append("dropped what was recorded of another interface")
        return None
    return old


def _is_current(taken: KernelRecorder, old: Recording, wanted: Sequence[str]) -> bool:
    """Return whether a file has all the first provider's labels, of the same inputs.

    The hash of the source of the inputs stands for their bytes, which take longer and
    are compared where the source is another one.
    """
    cls = taken.cls
    cases = {c.name: case_value(c) for c in cases_of(cls, taken.job.sizes)}
    recorded = old.body["cases"]
    if not set(recorded) <= {case.name for case in cls.cases(cls.definition())}:
        return False
    if any(
        name not in recorded or any(recorded[name][k] != v for k, v in value.items())
        for name, value in cases.items()
    ):
        return False
    present = old.body["recordings"]
    of_first = [label for label in wanted if _provider(label) == _provider(wanted[0])]
    if not all(label in present for label in of_first):
        return False
    source = source_hash(cls.make_inputs)
    same_source = all(present[label]["make_inputs"] == source for label in of_first)
    return same_source or taken.makes_inputs_of(old)


def _provider(label: str) -> str:
    return label.partition("@")[0].partition("/")[0]


def _first_that_records(
    taken: KernelRecorder, sources: Sources, remarks: list[str]
) -> Recording | None:
    """Return the recording by the first provider of which a backend can be recorded.

    With providers named by the user, by all of them.
    """
    done: set[str] = set()
    for provider, backend in sources:
        if done and provider not in done and not taken.job.providers:
            break
        try:
            if taken.add(provider, backend, remarks):
                done.add(provider)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            text = " ".join(str(error).split())[:300]
            name = source_name(provider, backend)
            remarks.append(f"{name} failed: {type(error).__name__}: {text}")
            traceback.print_exc()
            if not can_go_on(taken.device):
                break
    return taken.recording() if done else None


def can_go_on(device: torch.device) -> bool:
    """Return whether no kernel has broken the process's CUDA context yet."""
    try:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except Exception:  # noqa: BLE001 - whatever it is, nothing can be computed
        return False
    return True


def classes_of(file: Path) -> Iterator[type[ReferenceTests]]:
    """Import a rendered file; yield the test class of each definition in it."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # inspect looks for a function's source through its module
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    for value in vars(module).values():
        is_class = isinstance(value, type) and issubclass(value, ReferenceTests)
        if is_class and "name" in vars(value):
            yield value


def record_definition(task: Mapping[str, Any], link: object) -> dict[str, Any]:
    """Record a definition; return its WorkerResult and the new file's bytes, base64.

    What the kernels print goes to the task's `log`.
    """
    _print_to(Path(task["log"]))
    classes = _classes(Path(task["tests"], task["file"]))
    name = task["name"]
    if name not in classes:
        missing = [f"{task['file']} does not test it"]
        return {**vars(WorkerResult(name, FAILED, remarks=missing)), "content": ""}
    choice = ("out", "symbols", "device", "providers", "sizes", "force")
    job = RecordJob(**{option: task[option] for option in choice})
    made: list[bytes] = []

    def keep(path: Path, recording: Recording) -> int:
        made.append(pack(recording))
        return len(made[0])

    machine = this_machine(torch.device(job.device))
    result = record(classes[name], job, machine, keep)
    content = base64.b64encode(made[0]).decode() if made else ""
    return {**vars(result), "content": content}


def _print_to(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("wb") as output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)


@cache
def _classes(file: Path) -> dict[str, type[ReferenceTests]]:
    return {cls.name: cls for cls in classes_of(file)}
