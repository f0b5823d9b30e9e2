"""A rival's process: production kernels, called as a solution is.

`python -m generator.evaluation.clock.rival CHANNEL` answers on a socket. It is trusted as
the judge is: what it runs are the adapters of this software. The dataset's references have
a sandbox. SGLang's kernels have a process of their own, since its import leaves stand-ins behind.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.clock.callee import Callee, text_of
from generator.evaluation.clock.page import Page
from generator.evaluation.clock.shared_memory import attach
from generator.evaluation.frames import is_open, receive, send
from generator.execution.collecting import uncollected
from generator.rules.load import load_file
from generator.rules.subjects import subject_of
from generator.running.sglang_light import DECIDING, NORMS, load
from kernel_judge.providers import backend_obstacle

Call = Callable[..., Any]
# their adapters import SGLang's norms alone
_NORMS = ("layernorm", "rmsnorm")


def serve(channel: socket.socket) -> None:
    """Serve the judge until it closes the channel, also by its own end; then end."""
    try:
        _serve(channel)
    except (EOFError, OSError):
        pass
    finally:
        # exit handlers of half-imported packages may hang
        os._exit(0)


def _serve(channel: socket.socket) -> None:
    frame, _ = receive(channel)
    plans = _Plans()
    try:
        with uncollected():
            calls = kernels(
                frame["root"], frame["file"], frame["providers"], frame["device"]
            )
        plans.watch("flashinfer" in frame["providers"])
    except Exception as error:  # noqa: BLE001 - whatever an import raises
        send(channel, {"failed": text_of(error)})
        return
    send(channel, {"kernels": list(calls)})
    callee: Callee | None = None
    judge_is_there = is_open(channel)
    while True:
        frame, files = receive(channel)
        device = frame["device"]
        page = Page(files[0], judge_is_there)
        memory = attach(device, files[1], frame["bytes"])
        if callee is None:
            arena = attach(device, files[2], frame["arena"]) if files[2:] else None
            callee = Callee(device, arena)
        else:
            for file in files[2:]:
                os.close(file)
        callee.serve(page, memory, frame["clock"], list(calls.values()), plans.take)
        memory.close()
        send(channel, {"done": True})


def kernels(
    root: str, file: Mapping[str, Any], providers: list[str], device: str
) -> dict[str, Call]:
    """Return by name what can be called here.

    Raises Failure for a definition that can't be read, and what an import raises.
    """
    definition, problems = load_file(Path(root), DatasetFile(**file))
    if definition is None:
        raise ValueError(str(problems[0]))
    subject = subject_of(definition)
    known = subject.definition
    names = list(known.interface.input_specs)
    calls: dict[str, Call] = {}
    for provider in providers:
        for backend in subject.backends(provider):
            if backend_obstacle(provider, backend, torch.device(device)) is not None:
                continue
            if provider == "sglang":
                load(NORMS if subject.op_type in _NORMS else DECIDING)

            call = subject.kernels[provider].call

            def kernel(*arguments: Any, a: Any = call, b: Any = backend) -> Any:
                inputs = dict(zip(names, arguments, strict=True))
                return a(known, inputs, b.name)

            calls[f"{provider}/{backend.name}" if backend.name else provider] = kernel
    return calls


class _Plans:
    """The time that FlashInfer's wrappers plan in a call, apart from what they run."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def watch(self, flashinfer: bool) -> None:
        """Have each `plan` of a wrapper that also has `run` note its time."""
        if not flashinfer or not torch.cuda.is_available():
            return
        try:
            package: Any = importlib.import_module("flashinfer")
        except Exception:  # noqa: BLE001 - it can fail with any
            return
        for kind in {v for v in vars(package).values() if isinstance(v, type)}:
            if "plan" in vars(kind) and hasattr(kind, "run"):
                setattr(kind, "plan", self._timed(vars(kind)["plan"]))  # noqa: B010

    def take(self) -> Mapping[str, Any]:
        """Return the milliseconds of the last call's plans, nothing where it had none."""
        seconds, self._seconds = self._seconds, 0.0
        return {"plan_ms": 1e3 * seconds} if seconds else {}

    def _timed(self, plan: Call) -> Call:
        def timed(*arguments: Any, **named: Any) -> Any:
            torch.cuda.synchronize()
            begun = time.perf_counter()
            try:
                return plan(*arguments, **named)
            finally:
                torch.cuda.synchronize()
                self._seconds += time.perf_counter() - begun

        return timed


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
