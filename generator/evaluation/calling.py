"""Inside the sandbox: the process of one solution, which builds it and calls it when asked.

Tensors lie in memory that the judge shares: slots of addresses that stay, into which the
judge writes inputs and poison, and from which it reads outputs.
"""

from __future__ import annotations

import importlib
import mmap
import os
import resource
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

Frame = dict[str, Any]

_MOST_TEXT = 4000
_PACKAGE = "solution_under_evaluation"


frames: Any = importlib.import_module("frames")
callees: Any = importlib.import_module("callee")


class Solution:
    """Build one solution and call it; `channel` is its own link to the judge.

    What is called after the solution's code is loaded is bound before: names that it
    patches in torch are not looked up again.
    """

    def __init__(self, channel: socket.socket, device: str) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._channel, self._device = channel, device
        self._memory: dict[int, Any] = {}
        self._maps: dict[int, Any] = {}
        self._on_device: dict[int, Any] = {}
        self._tensors: dict[tuple[Any, ...], Any] = {}
        self._call: Callable[..., Any] | None = None
        self._returned: list[tuple[Any, Frame]] = []
        torch = self._torch
        self._builds = importlib.import_module("building").build
        self._seed, self._no_grad = torch.manual_seed, torch.no_grad
        self._tensor, self._copy = torch.Tensor, torch.Tensor.copy_
        self._pointer = torch.Tensor.data_ptr
        self._synchronize = torch.cuda.synchronize
        self._callee: Any = None

    def serve(self) -> None:
        """Answer frames until the judge closes the channel."""
        frames.send(self._channel, {"hello": os.getpid()})
        while True:
            frame, files = frames.receive(self._channel)
            try:
                answer = self._answer(frame, files)
            except BaseException as error:  # noqa: BLE001 - SystemExit is no answer
                answer = {"raised": _text(error), "kind": type(error).__name__}
            nonce = frame.get("nonce")
            frames.send(self._channel, {**answer, "nonce": nonce})

    def _answer(self, frame: Frame, files: Sequence[int]) -> Frame:
        if "slot" in frame:
            self._share(frame["slot"], files[0], frame["bytes"])
            return {}
        if "build" in frame:
            return self._build(frame["build"])
        if "fetch" in frame:
            return self._fetch(frame["fetch"])
        if "clock" in frame:
            return self._clocked(frame, files)
        return self._run(frame["call"])

    def _share(self, slot: int, file: int, size: int) -> None:
        """Map shared memory; on CUDA a device's buffer has its content as well."""
        torch = self._torch
        shared = mmap.mmap(file, size)
        os.close(file)
        self._memory[slot] = torch.frombuffer(shared, dtype=torch.uint8)
        if self._device == "cuda":
            self._on_device[slot] = torch.empty(size, dtype=torch.uint8, device="cuda")
        else:
            self._on_device[slot] = self._memory[slot]
        self._maps[slot] = shared
        self._tensors = {k: t for k, t in self._tensors.items() if k[0] != slot}

    def _build(self, how: Mapping[str, Any]) -> Frame:
        for name, value in how["limits"].items():
            which = getattr(resource, f"RLIMIT_{name}")
            resource.setrlimit(which, (value, value))
        try:
            self._call = self._builds(how, os.getcwd())
        except BaseException as error:  # noqa: BLE001 - whatever a build raises
            return {"failed": _first_error(_text(error))}
        return {"built": True}

    def _run(self, how: Mapping[str, Any]) -> Frame:
        """Call the solution once; what it returned is described, and kept for a fetch."""
        slot, cuda = how["slot"], self._device == "cuda"
        self._returned.clear()
        if cuda and slot in self._on_device:
            # not through the views: their version must not tell that values changed
            used = how["used"]
            self._copy(self._on_device[slot].data[:used], self._memory[slot][:used])
        given = [self._argument(slot, one) for one in how["inputs"]]
        outputs = [self._argument(slot, one) for one in how["outputs"]]
        if how["passes_outputs"]:
            given += outputs
        self._seed(how["seed"])
        assert self._call is not None
        with self._no_grad():
            returned = self._call(*given)
        if cuda:
            self._synchronize()
        if how["passes_outputs"]:
            return {"outputs": "passed"}
        # a named tuple is one as well
        values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        described = [self._described(slot, value, how["inputs"]) for value in values]
        if len(values) == len(how["outputs"]):
            self._returned = list(zip(values, how["outputs"], strict=True))
        if not cuda:
            self._fetch({"slot": slot})
        return {"outputs": described}

    def _clocked(self, frame: Frame, files: Sequence[int]) -> Frame:
        """Answer timed calls, which come on a page, until the judge ends them."""
        shared: Any = importlib.import_module("shared_memory")
        pages: Any = importlib.import_module("page")
        memory = shared.attach(self._device, files[1], frame["bytes"])
        if self._callee is None:
            arena = None
            if files[2:]:
                arena = shared.attach(self._device, files[2], frame["arena"])
            self._callee = callees.Callee(self._device, arena)
        else:
            for file in files[2:]:
                os.close(file)
        page = pages.Page(files[0])
        self._callee.serve(page, memory, frame["clock"], [self._call])
        os.close(files[0])
        memory.close()
        return {}

    def _argument(self, slot: int, one: Frame) -> Any:
        """Return the value of an argument: of equal places the same object."""
        if "at" not in one:
            return one.get("value")
        key = (slot, one["at"], one["dtype"], *one["shape"])
        begin = self._on_device[slot].data_ptr() + one["at"]
        known = self._tensors.get(key)
        # one that was sent to another process lies elsewhere since
        if known is None or (one["bytes"] and self._pointer(known) != begin):
            dtype = getattr(self._torch, one["dtype"])
            flat = self._bytes(slot, one["at"], one["bytes"])
            # each with a version of its own, which nothing from outside changes
            self._tensors[key] = flat.view(dtype).view(one["shape"]).data
        return self._tensors[key]

    def _bytes(self, slot: int, at: int, count: int) -> Any:
        """Return a part of a slot; on a CPU with a storage of its own."""
        if self._device == "cuda" or count == 0:
            return self._on_device[slot][at : at + count]
        how = {"dtype": self._torch.uint8, "count": count, "offset": at}
        return self._torch.frombuffer(self._maps[slot], **how)

    def _described(self, slot: int, value: Any, inputs: Sequence[Frame]) -> Frame:
        """Return what the judge holds against the declaration of an output."""
        if not isinstance(value, self._tensor):
            if isinstance(value, (bool, int, float)):
                return {"value": value}
            return {"type": _name(type(value))}
        found = {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
            "device": value.device.type,
            "layout": str(value.layout),
            "type": _name(type(value)),
        }
        if found["layout"] == "torch.strided" and value.device.type == self._device:
            storage = value.untyped_storage()
            begin = self._on_device[slot].data_ptr()
            shared = self._on_device[slot].numel()
            found["aliases"] = any(
                "at" in one and begin <= storage.data_ptr() < begin + shared
                for one in inputs
            )
        return found

    def _fetch(self, how: Mapping[str, Any]) -> Frame:
        """Bring the outputs of the last call, and the inputs, into shared memory.

        What was returned is poisoned then: memory that is freed holds no old answer.
        """
        slot = how["slot"]
        for value, declared in self._returned:
            is_one = type(value) is self._tensor and "at" in declared
            if not is_one or list(value.shape) != declared["shape"]:
                continue
            if str(value.dtype) == f"torch.{declared['dtype']}":
                self._copy(self._argument(slot, declared).data, value)
                with suppress(Exception):
                    size = value.untyped_storage().nbytes()
                    whole = self._torch.empty(0, dtype=self._torch.uint8)
                    whole = whole.to(value.device).set_(value.untyped_storage())
                    begin = self._on_device[slot].data_ptr()
                    if not begin <= whole.data_ptr() < begin + how.get("bytes", size):
                        whole.fill_(0xFF)
        self._returned.clear()
        if self._device == "cuda":
            used = how["used"]
            self._copy(self._memory[slot][:used], self._on_device[slot][:used])
            self._synchronize()
        return {}


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"[:200]


def _first_error(text: str) -> str:
    """Return what a compiler found first, of a text that shows all it was called with."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if "error:" in line), text)


def _text(error: BaseException) -> str:
    """Return an error in a line: its kind, what it says, and the solution's last line."""
    try:
        said = f"{type(error).__name__}: {error}"[:_MOST_TEXT]
        lines = [
            f"{frame.filename.split(_PACKAGE)[-1].lstrip('/')}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
            if _PACKAGE in frame.filename
        ]
        return f"{said} ({lines[-1]})" if lines else said
    except BaseException:  # noqa: BLE001 - its __str__ is the solution's as well
        return "an error that can't be shown"
