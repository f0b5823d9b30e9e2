"""SGLang as a provider: adapters run in a worker process, never in this one.

The worker is started at the first question of a test run and kept; it ends with the
run. Where it dies or never answers, the test that asked fails, and the next question
starts another one. Why SGLang can't be had at all is found out once, and is a reason to
skip.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import inspect
import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernel_judge.definition import Definition
from kernel_judge.elsewhere import Elsewhere, call_elsewhere
from kernel_judge.obstacle import Kind, Obstacle, Unavailable
from kernel_judge.skipping import skip

if TYPE_CHECKING:
    from generator.running.sglang_process import Process

# Seconds until the worker's silence is a failure. A first call may compile Triton
# kernels. Set in the environment for a slower machine.
ANSWER_SECONDS = 600.0
START_SECONDS = 300.0
ANSWER_VARIABLE = "REFERENCE_SGLANG_SECONDS"
START_VARIABLE = "REFERENCE_SGLANG_START_SECONDS"
# the layers are where the adapters look for them from here on
OLDEST = (0, 5, 23)
# a worker that was lost so often is not started again
MOST_LOSSES = 5


class AdapterError(Exception):
    """An adapter's exception in the worker: its type, message and traceback."""


class WorkerLost(Exception):
    """Raised where the worker ended during a request, with its last output."""


class SGLangWorker:
    """The worker of a test run, or the reason why there is none."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.refusal: Obstacle | None = None
        self.losses = 0
        # why memory of the GPU can't be shared with the worker; None until tried
        self.not_shared: str | None = None

    @cached_property
    def not_installed(self) -> Obstacle | None:
        """Return why SGLang can't be used; asked for every collected test."""
        return _not_installed()

    def ask(self, file: str, name: str, *question: Any) -> Any:
        """Return what the function `name` of a module's file returns for a question."""
        kind, value = self._exchange("call", file, name, *question)
        if kind == "answer":
            return value
        if kind == "skip":
            skip(**value)
        if kind == "unavailable":
            raise Unavailable(value["message"])
        if value["context"]:
            self.lose(f"its CUDA context is broken: {value['context']}")
        raise AdapterError(
            f"{value['type']}: {value['message']}\n\nin the worker:\n"
            + value["traceback"].rstrip()
        )

    def started(self) -> Process:
        """Return the running worker; Unavailable where there can't be one."""
        from generator.running.sglang_process import Lost, Process

        if self.refusal is not None:
            raise Unavailable(self.refusal.reason, self.refusal.kind)
        if self.process is not None and self.process.is_alive():
            return self.process
        if self.process is not None:
            self.lose(self.process.end_of_it())
            if self.refusal is not None:
                raise Unavailable(self.refusal.reason, self.refusal.kind)
        self.refusal = _not_installed()
        if self.refusal is not None:
            raise Unavailable(self.refusal.reason, self.refusal.kind)
        self.process = process = Process(__name__.rpartition(".")[0])
        try:
            failure = process.start(_seconds(START_VARIABLE, START_SECONDS))
        except Lost as loss:
            failure = " ".join(f"its import {loss}".split())
        if failure is not None:
            self.refusal = Obstacle(Kind.BROKEN, failure)
            self.stop()
            raise Unavailable(self.refusal.reason, self.refusal.kind)
        return process

    def lose(self, reason: str) -> None:
        """End the worker for a reason; too many of them, and there is no next one."""
        self.stop()
        self.losses += 1
        if self.losses >= MOST_LOSSES:
            self.refusal = Obstacle(
                Kind.BROKEN,
                f"not started again, its worker was lost {self.losses} times, "
                f"at last so: {reason.splitlines()[0]}",
            )

    def stop(self) -> None:
        """End the worker, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()

    def _exchange(self, *request: Any) -> tuple[str, Any]:
        from generator.running.sglang_process import Lost, exchange, try_sharing

        process = self.started()
        device = _cuda_device(request)
        seconds = _seconds(ANSWER_VARIABLE, ANSWER_SECONDS)
        try:
            if device is not None and self.not_shared is None:
                self.not_shared = try_sharing(process, device, seconds)
                process = self.started()
            share = device is not None and self.not_shared == ""
            return exchange(process, request, seconds, share=share)
        except Lost as loss:
            reason = str(loss)
            if self.not_shared:
                reason += f"\ninputs went through a pipe: {self.not_shared}"
            self.lose(reason)
            raise WorkerLost(f"SGLang's worker {reason}") from None
        except Exception:
            raise  # in this process, with the worker none the wiser
        except BaseException:
            # interrupted: what the worker says next would be taken for another answer
            self.stop()
            raise


_provider = SGLangWorker()


def absence() -> Obstacle | None:
    """Return why SGLang can't be asked here, None where it may be; starts nothing."""
    return _provider.refusal or _provider.not_installed


def ask(
    adapter: Callable[..., Any],
    definition: Definition,
    inputs: Mapping[str, Any],
    backend: str,
    draws: int,
) -> Any:
    """Return what an adapter returns for inputs, called in the worker.

    The worker imports the adapter's module by its path and seeds with `draws` as
    trial.seed does. Raises Unavailable where SGLang can't be had, AdapterError for what
    the adapter raises, WorkerLost where the worker dies or never answers.
    """
    file = inspect.getsourcefile(adapter) or adapter.__code__.co_filename
    name = adapter.__name__
    question = definition, inputs, backend
    return _provider.ask(os.path.abspath(file), name, draws, *question)


def note(cuda: bool) -> str:
    """Return `light installation` where stand-ins are needed, nothing otherwise."""
    from generator.running.sglang_light import missing

    return "light installation" if missing(cuda) else ""


def _not_installed() -> Obstacle | None:
    try:
        spec = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:  # a folder of that name is no package
        return Obstacle(Kind.NOT_INSTALLED, "not installed")
    try:
        version = importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        return None
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    oldest = ".".join(str(n) for n in OLDEST)
    if numbers >= OLDEST:
        return None
    return Obstacle(Kind.TOO_OLD, f"version {version} is older than {oldest}")


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    return float(text) if text else default


def _cuda_device(request: tuple[Any, ...]) -> Any:
    """Return the CUDA device of a request's inputs, None without one."""
    inputs = next((part for part in request if isinstance(part, Mapping)), {})
    devices = (getattr(value, "device", None) for value in inputs.values())
    return next((d for d in devices if d is not None and d.type == "cuda"), None)


atexit.register(_provider.stop)
call_elsewhere("sglang", Elsewhere(absence, ask, note))
