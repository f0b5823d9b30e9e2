"""The session of one solution: what it is asked, and what it answers."""

from __future__ import annotations

import math
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from generator.evaluation.arena import Layout, Slices, Slot, laid_out
from generator.evaluation.channel import received
from generator.evaluation.frames import Garbled, send
from generator.evaluation.keeper import Keeper
from generator.evaluation.returned import (
    Returned,
    check_returned,
    output_of,
    parsed,
    was_returned_before,
)
from generator.evaluation.solution import Solution
from generator.evaluation.verdict import (
    COMPILE_ERROR,
    INCORRECT_NUMERICAL,
    OUT_OF_MEMORY,
    REWARD_HACK,
    RUNTIME_ERROR,
    TIMEOUT,
    Refused,
)
from generator.problems.messages import one_line
from kernel_judge.definition import TensorSpec

_START_SECONDS = 120.0
_SHORT = 500
_NO_MEMORY = ("out of memory", "can't allocate memory", "bad_alloc")
"""What CUDA, torch's allocator of the CPU, and C++ say."""


@dataclass(frozen=True)
class Allowed:
    """Limits of a solution: seconds of a call and of a build, and memory.

    `memory_bytes` are for each of its processes on a CPU, `gpu_bytes` for what torch
    allocates on a GPU, None for all of it.
    """

    call_seconds: float = 60.0
    build_seconds: float = 300.0
    memory_bytes: int = 8 << 30
    gpu_bytes: int | None = None


@dataclass(frozen=True)
class CallAnswer:
    """The return value of a call, and the numbers of the inputs that it wrote to."""

    outputs: tuple[Any, ...] = ()
    changed: tuple[int, ...] = ()


class NotStarted(RuntimeError):
    """Raised where a solution's process could not start; nothing of the solution ran."""


class Session:
    """The link to a solution's process, and the memory that it shares.

    Every method that asks raises Refused where there is no honest answer. To make one
    raises NotStarted.
    """

    def __init__(
        self,
        channel: socket.socket,
        keeper: Keeper,
        device: str,
        allowed: Allowed,
        alive: Callable[[], None],
    ) -> None:
        self._channel, self._keeper, self._alive = channel, keeper, alive
        self.device, self._allowed = device, allowed
        self._slots: dict[int, Slot] = {}
        self._returned: Sequence[Returned] | None = None
        self._budget, self._left = math.inf, math.inf
        self.pid = self._started()

    def _started(self) -> int:
        """Return the number of the process, which has loaded nothing of the solution."""
        try:
            hello, pid = self._received(_START_SECONDS)
            why = hello.get("failed")
        except Refused as refused:
            why = refused.reason
        if why is not None:
            self.close()
            raise NotStarted(f"its process could not start: {why}")
        return pid

    def close(self) -> None:
        """End all processes of the solution."""
        self._channel.close()
        self._keeper.close()
        for slot in self._slots.values():
            slot.close()
        self._slots = {}

    def allow(self, seconds: float) -> None:
        """Allow that many seconds for all that is asked from now on."""
        self._budget = self._left = seconds

    def build(self, solution: Solution, arguments: int) -> None:
        """Build the solution; `arguments` is how many are passed by position."""
        allowed = self._allowed
        limits = {"CORE": 0}
        if self.device == "cpu":
            limits["DATA"] = allowed.memory_bytes
        how = {**solution.how(), "arguments": arguments, "limits": limits}
        how["gpu_bytes"] = allowed.gpu_bytes if self.device == "cuda" else None
        answer = self._ask({"build": how}, allowed.build_seconds)
        if "failed" in answer:
            raise Refused(COMPILE_ERROR, one_line(str(answer["failed"]), _SHORT))

    def write(
        self,
        slot: int,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, TensorSpec],
        axes: Mapping[str, int],
        slices: Slices | None = None,
    ) -> Layout:
        """Write the arguments of a call to a slot, with poison for its outputs."""
        layout = laid_out(inputs, outputs, axes, slices)
        self.slot(slot, layout.size).write(layout, inputs)
        return layout

    def slot(self, number: int, size: int) -> Slot:
        """Return a slot of at least that many bytes, which the process has as well."""
        shared = self._slots.get(number)
        if shared is None or shared.size < size:
            if shared is not None:
                shared.close()
            shared = self._slots[number] = Slot.of(size)
            self.ask({"slot": number, "bytes": shared.size}, [shared.file])
        return shared

    def call(
        self,
        slot: int,
        layout: Layout,
        *,
        seed: int,
        passes_outputs: bool,
        under: str = "",
    ) -> None:
        """Call the solution on what is in a slot; the outputs are for `fetch`.

        `under` is the name of a condition; an ordinary call has none.
        """
        how = {
            "slot": slot,
            "used": layout.size,
            "inputs": layout.inputs,
            "outputs": layout.outputs,
            "passes_outputs": passes_outputs,
            "seed": seed,
            "under": under,
        }
        self._stopped_after({"call": how}, layout, passes_outputs)

    def capture(self, how: Mapping[str, Any], layout: Layout) -> None:
        """Have the process capture a call and queue its replays, and stop it."""
        self._stopped_after({"graph": how}, layout, how["passes_outputs"])

    def _stopped_after(
        self, frame: Mapping[str, Any], layout: Layout, passes_outputs: bool
    ) -> None:
        answer = self.ask(frame)
        # what goes on is stopped until the next question
        self._keeper.stop()
        self._returned = parsed(answer.get("outputs"), passes_outputs)
        if self._returned is not None:
            check_returned(self._returned, layout, self.device)

    def fetch(self, slot: int, layout: Layout) -> CallAnswer:
        """Take the outputs of the last call away, and look at all that was left."""
        shared = self._slots[slot]
        returned: Sequence[Returned | None] = self._returned or [None] * len(
            layout.outputs
        )
        outputs = [
            output_of(shared, place, one)
            for place, one in zip(layout.outputs, returned, strict=True)
        ]
        is_overrun, changed = shared.is_overrun(layout), shared.changed(layout)
        self._keeper.check()
        if self._returned is not None and any(map(was_returned_before, outputs)):
            why = "it returned memory that it had returned before, and did not write to it"
            raise Refused(INCORRECT_NUMERICAL, why)
        if is_overrun:
            raise Refused(RUNTIME_ERROR, "it wrote outside of its arguments")
        return CallAnswer(tuple(outputs), tuple(changed))

    def state(self) -> dict[str, Any]:
        """Return what the process says of torch's global state, and of its memory."""
        return self.ask({"state": True})

    def ask(
        self,
        frame: Mapping[str, Any],
        files: Sequence[int] = (),
        *,
        builds: bool = False,
    ) -> dict[str, Any]:
        """Return the answer to a frame, which takes no longer than a call, or a build."""
        allowed = self._allowed
        seconds = allowed.build_seconds if builds else allowed.call_seconds
        return self._ask(frame, seconds, files)

    def input(self, slot: int, layout: Layout, number: int) -> torch.Tensor:
        """Return an input as the last call left it."""
        return self._slots[slot].taken(layout.inputs[number])

    @property
    def keeper(self) -> Keeper:
        """Return the link by which the solution's processes are stopped."""
        return self._keeper

    @property
    def call_seconds(self) -> float:
        """Return how long a call may take."""
        return self._allowed.call_seconds

    def gone(self, why: str) -> Refused:
        """Return what it is that no answer comes: the process ended, or is too slow."""
        ended = self._keeper.ending()
        return Refused(RUNTIME_ERROR, ended) if ended else Refused(TIMEOUT, why)

    def lend(self, frame: Mapping[str, Any], files: Sequence[int]) -> str:
        """Have the process answer timed calls; return the nonce for `lent`."""
        return self._send(frame, self._allowed.call_seconds, files)

    def lent(self, nonce: str) -> None:
        """Wait until the process is back from timed calls. Raises Refused."""
        self._answer(nonce, self._allowed.call_seconds)

    def _ask(
        self, frame: Mapping[str, Any], seconds: float, files: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Return the one answer to a frame. Raises Refused."""
        return self._answer(self._send(frame, seconds, files), seconds)

    def _send(
        self, frame: Mapping[str, Any], seconds: float, files: Sequence[int]
    ) -> str:
        """Send a frame; return the nonce that its answer must have. Raises Refused."""
        nonce = secrets.token_hex(8)
        self._alive()
        self._keeper.go()
        self._channel.settimeout(seconds)
        try:
            send(self._channel, {**frame, "nonce": nonce}, files)
        except OSError:
            raise Refused(RUNTIME_ERROR, self._ending()) from None
        return nonce

    def _answer(self, nonce: str, seconds: float) -> dict[str, Any]:
        begun = time.monotonic()
        try:
            answer, pid = self._received(min(seconds, max(self._left, 0.01)))
        except Refused as refused:
            if refused.verdict == TIMEOUT and self._left < seconds:
                refused.reason = f"its calls took over {self._budget:g} s together"
            raise
        self._left -= time.monotonic() - begun
        if pid != self.pid:
            raise Refused(REWARD_HACK, "another process than its own answered")
        if answer.pop("nonce", None) != nonce:
            raise Refused(REWARD_HACK, "it wrote to the channel of the judge")
        if "raised" in answer:
            why = one_line(str(answer["raised"]), _SHORT)
            if not _is_of_memory(answer):
                raise Refused(RUNTIME_ERROR, why, is_raised=True)
            allowed = self._allowed
            most = allowed.gpu_bytes if self.device == "cuda" else allowed.memory_bytes
            limit = f" (its limit: {most >> 20} MiB)" if most else ""
            raise Refused(OUT_OF_MEMORY, f"{why}{limit}", is_raised=True)
        return answer

    def _received(self, seconds: float) -> tuple[dict[str, Any], int]:
        try:
            return received(self._channel, seconds)
        except TimeoutError:
            raise Refused(TIMEOUT, f"no answer within {seconds:g} s") from None
        except Garbled as error:
            why = f"it wrote to the channel of the judge: {error}"
            raise Refused(REWARD_HACK, why) from None
        except (OSError, EOFError):
            raise Refused(RUNTIME_ERROR, self._ending()) from None

    def _ending(self) -> str:
        return self._keeper.ending() or "it closed its channel"


def _is_of_memory(answer: Mapping[str, Any]) -> bool:
    """Return whether what a call raised says that there is no memory."""
    if answer.get("kind") in ("OutOfMemoryError", "MemoryError"):
        return True
    message = str(answer["raised"]).lower()
    return any(words in message for words in _NO_MEMORY)
