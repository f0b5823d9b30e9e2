"""A sandbox with a warm worker, and the session of one solution in it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from generator.evaluation.arena import Layout, Slot, laid_out
from generator.evaluation.returned import check_returned, living, output_of
from generator.evaluation.solution import Solution
from generator.evaluation.verdict import (
    COMPILE_ERROR,
    REWARD_HACK,
    RUNTIME_ERROR,
    TIMEOUT,
    Refused,
)
from generator.evaluation.worker import Garbled, receive, send
from generator.execution.sandbox import CUDA_LIMITS, Limits, Outcome, run_confined
from generator.problems import Failure
from generator.problems.messages import one_line
from generator.testing.definition import TensorSpec

_START_SECONDS, _END_SECONDS = 120.0, 20.0
# what may go on for a moment after a call: a thread that was joined, a child that ended
_LINGER_SECONDS = 0.25
_WALL_SECONDS = 7 * 24 * 3600.0
_CREDENTIALS = struct.Struct("3i")
_SHORT = 500
_PROJECT = Path(__file__).resolve().parents[1]
_WORKER = ("evaluation/worker.py", "evaluation/building.py", "execution/limits.py")
"""Files of ours that the sandbox shows."""


@dataclass(frozen=True)
class Allowed:
    """Hold what a solution may take: seconds of a call and of a build, and memory."""

    call_seconds: float = 60.0
    build_seconds: float = 300.0
    memory_bytes: int = 8 << 30


@dataclass(frozen=True)
class Answer:
    """Hold what a call returned, and the numbers of the inputs that it wrote to.

    Without a fetch there are no outputs; `times` are those of a timed call, as the
    worker says, and `seconds` the judge's own from the question to the answer.
    """

    outputs: tuple[Any, ...] = ()
    changed: tuple[int, ...] = ()
    times: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0


class Confinement:
    """Hold a sandbox whose worker has imported torch; a solution at a time is in it.

    Where the worker is lost, the next session starts another. `alive` is called before
    each question. Raises Failure where nothing can be confined here.
    """

    def __init__(
        self,
        device: str,
        allowed: Allowed,
        hidden: Sequence[Path] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self.device, self.allowed, self.alive = device, allowed, alive
        self._hidden = [_PROJECT, *hidden]
        self._channel: socket.socket | None = None
        self.pid = 0
        self._outcome: Outcome | None = None

    def open(self) -> Session:
        """Return a session in which nothing is built yet. Raises Refused."""
        if self._channel is None:
            self._start()
        assert self._channel is not None
        here, there = _pair()
        self._channel.settimeout(_END_SECONDS)
        with there:
            send(self._channel, {"begin": True}, [there.fileno()])
        _asked(self._channel, _START_SECONDS)
        return Session(self, here)

    def end(self) -> str:
        """End the solution under way; return how its process ended, if badly."""
        if self._channel is None:
            return ""
        self._channel.settimeout(_END_SECONDS)
        try:
            send(self._channel, {"end": True})
            ended = int(_asked(self._channel, _END_SECONDS)["ended"])
        except (OSError, EOFError, Garbled, KeyError, ValueError):
            self.close()
            limit = self._outcome.limit if self._outcome else None
            return f"it took its sandbox down ({limit or 'no limit was passed'})"
        if ended in (0, -9):
            return ""
        return f"its process ended {f'by signal {-ended}' if ended < 0 else f'with status {ended}'}"

    def close(self) -> None:
        """End the sandbox and all that is in it."""
        if self._channel is None:
            return
        self._channel.close()
        self._channel = None
        # one that ended at a limit says so, and one that does not end is stopped
        self._thread.join(0.2)
        self._stop.set()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="trace-dataset-evaluate-"))
        # the sandbox runs as another user where we are root
        self._folder.chmod(0o755)
        told, work = self._folder / "told", self._folder / "work"
        told.mkdir()
        work.mkdir()
        for name in _WORKER:
            shutil.copy(_PROJECT / name, told)
        here, there = _pair()
        base = CUDA_LIMITS if self.device == "cuda" else Limits()
        limits = replace(
            base,
            wall_seconds=_WALL_SECONDS,
            cpu_seconds=24 * 3600,
            memory_bytes=max(base.memory_bytes, self.allowed.memory_bytes),
        )
        worker = os.path.realpath(told / "worker.py")
        command = [sys.executable, "-s", "-B", worker, str(there.fileno()), self.device]
        self._stop, self._outcome = threading.Event(), None

        def confine() -> None:
            self._outcome = run_confined(
                command,
                read_only=[told],
                work=work,
                limits=limits,
                environment={"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                devices=self.device == "cuda",
                hidden=self._hidden,
                channel=there.fileno(),
                stop=self._stop,
            )
            there.close()

        self._thread = threading.Thread(target=confine, daemon=True)
        self._thread.start()
        self._channel = here
        try:
            _, self.pid = _received(here, _START_SECONDS)
        except (OSError, EOFError, Garbled) as error:
            self.close()
            outcome = self._outcome
            why = outcome.detail or outcome.stderr or outcome.limit if outcome else ""
            said = one_line(why or type(error).__name__, _SHORT)
            raise Failure(f"no sandbox for solutions: {said}.") from error


class Session:
    """Hold the link to a solution's process, and the memory that it shares.

    Every method that asks raises Refused where there is no honest answer.
    """

    def __init__(self, confinement: Confinement, channel: socket.socket) -> None:
        self._within, self._channel = confinement, channel
        self._slots: dict[int, Slot] = {}
        self._threads = 0
        _, self.pid = self._received(_START_SECONDS)

    def close(self) -> str:
        """End the solution's process; return how it ended, if badly."""
        self._channel.close()
        for slot in self._slots.values():
            slot.close()
        self._slots = {}
        return self._within.end()

    def build(self, solution: Solution, arguments: int) -> None:
        """Build the solution; `arguments` is how many are passed by position."""
        allowed = self._within.allowed
        limits = {"CORE": 0}
        if self._within.device == "cpu":
            limits["DATA"] = allowed.memory_bytes
        how = {**solution.how(), "arguments": arguments, "limits": limits}
        answer = self._ask({"build": how}, allowed.build_seconds)
        if "failed" in answer:
            raise Refused(COMPILE_ERROR, one_line(str(answer["failed"]), _SHORT))

    def idle_clock(self) -> Answer:
        """Return the times of a timed call that calls nothing, before a build."""
        how = {"slot": 0, "inputs": [], "outputs": [], "passes_outputs": True}
        begun = time.perf_counter()
        answer = self._ask({"call": {**how, "seed": 0, "times": True}}, 60.0)
        return Answer(times=answer, seconds=time.perf_counter() - begun)

    def write(
        self,
        slot: int,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, TensorSpec],
        axes: Mapping[str, int],
    ) -> Layout:
        """Write the arguments of a call to a slot, with poison for its outputs."""
        layout = laid_out(inputs, outputs, axes)
        shared = self._slots.get(slot)
        if shared is None or shared.size < layout.size:
            if shared is not None:
                shared.close()
            shared = self._slots[slot] = Slot.of(layout.size)
            frame = {"slot": slot, "bytes": shared.size}
            self._ask(frame, self._within.allowed.call_seconds, [shared.file])
        shared.write(layout, inputs)
        return layout

    def call(
        self,
        slot: int,
        layout: Layout,
        *,
        seed: int,
        passes_outputs: bool,
        times: bool = False,
    ) -> Answer:
        """Call the solution on what is in a slot; the outputs are for `fetch`."""
        how = {
            "slot": slot,
            "used": layout.size,
            "inputs": layout.inputs,
            "outputs": layout.outputs,
            "passes_outputs": passes_outputs,
            "seed": seed,
            "times": times,
        }
        begun = time.perf_counter()
        answer = self._ask({"call": how}, self._within.allowed.call_seconds)
        seconds = time.perf_counter() - begun
        self._described = answer.get("outputs")
        if self._described != "passed":
            check_returned(self._described, layout, self._within.device)
        if not times:
            return Answer(seconds=seconds)
        elapsed = {k: answer.get(k) for k in ("milliseconds", "rest")}
        if not all(isinstance(v, float) and v >= 0.0 for v in elapsed.values()):
            raise Refused(REWARD_HACK, "it answered a timed call without a time")
        return Answer(
            times={k: float(v or 0.0) for k, v in elapsed.items()}, seconds=seconds
        )

    def fetch(self, slot: int, layout: Layout) -> Answer:
        """Take the outputs of the last call away, and look at all that was left."""
        shared = self._slots[slot]
        if self._within.device == "cuda":
            seconds = self._within.allowed.call_seconds
            how = {"slot": slot, "bytes": shared.size, "used": layout.size}
            self._ask({"fetch": how}, seconds)
        outputs = [
            output_of(shared, place, one)
            for place, one in zip(layout.outputs, self._values(layout), strict=True)
        ]
        self._check_alive()
        if shared.is_overrun(layout):
            raise Refused(RUNTIME_ERROR, "it wrote outside of its arguments")
        return Answer(tuple(outputs), tuple(shared.changed(layout)))

    def input(self, slot: int, layout: Layout, number: int) -> torch.Tensor:
        """Return an input as the last call left it."""
        return self._slots[slot].taken(layout.inputs[number])

    def _values(self, layout: Layout) -> Sequence[Mapping[str, Any]]:
        if isinstance(self._described, list):
            return self._described
        return [{}] * len(layout.outputs)

    def _ask(
        self, frame: Mapping[str, Any], seconds: float, files: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Return the one answer to a frame. Raises Refused."""
        nonce = secrets.token_hex(8)
        self._within.alive()
        self._channel.settimeout(seconds)
        try:
            send(self._channel, {**frame, "nonce": nonce}, files)
        except OSError:
            raise Refused(RUNTIME_ERROR, self._ending()) from None
        answer, pid = self._received(seconds)
        if pid != self.pid:
            raise Refused(REWARD_HACK, "another process than its own answered")
        if answer.pop("nonce", None) != nonce:
            raise Refused(REWARD_HACK, "it wrote to the channel of the judge")
        if "raised" in answer:
            raise Refused(RUNTIME_ERROR, one_line(str(answer["raised"]), _SHORT))
        return answer

    def _received(self, seconds: float) -> tuple[dict[str, Any], int]:
        try:
            return _received(self._channel, seconds)
        except TimeoutError:
            raise Refused(TIMEOUT, f"no answer within {seconds:g} s") from None
        except Garbled as error:
            why = f"it wrote to the channel of the judge: {error}"
            raise Refused(REWARD_HACK, why) from None
        except (OSError, EOFError):
            raise Refused(RUNTIME_ERROR, self._ending()) from None

    def _ending(self) -> str:
        return self._within.end() or "it ended its process"

    def _check_alive(self) -> None:
        """Raise Refused where the call left a thread or a process behind."""
        until = time.monotonic() + _LINGER_SECONDS
        while True:
            threads, others = living(self.pid, self._within.pid)
            if self._within.device == "cuda" and not self._threads:
                # the driver's own, and those that compile
                self._threads = threads
            if threads <= max(self._threads, 1) and not others:
                return
            if time.monotonic() > until:
                break
            time.sleep(0.005)
        what = "a process" if others else "a thread"
        raise Refused(REWARD_HACK, f"{what} that it began lives on after its return")


def _pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a channel; the first says which process has sent."""
    here, there = socket.socketpair()
    here.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return here, there


def _asked(channel: socket.socket, seconds: float) -> dict[str, Any]:
    return _received(channel, seconds)[0]


def _received(channel: socket.socket, seconds: float) -> tuple[dict[str, Any], int]:
    """Return a frame and who sent it, as the kernel says, until a deadline."""
    until = time.monotonic() + seconds
    channel.settimeout(seconds)
    # room for the sender alone: descriptors that come are closed
    space = socket.CMSG_SPACE(_CREDENTIALS.size)
    first, came, _, _ = channel.recvmsg(1, space, socket.MSG_PEEK)
    if not first:
        raise EOFError
    frame, files = receive(channel, until)
    for file in files:
        os.close(file)
    (_, _, data) = came[0]
    return frame, _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
