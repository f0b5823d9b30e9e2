"""Inside the sandbox: the process of one solution, which builds it and calls it when asked.

Tensors lie in memory that the judge shares: slots of addresses that stay, into which the
judge writes inputs and poison, and from which it reads outputs.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import resource
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

Frame = dict[str, Any]

_MOST_TEXT = 4000
_PACKAGE = "solution_under_evaluation"
# 1 ms at 2 GHz, within which most calls have launched all that they launch
_PAUSE_CYCLES = 2_000_000
# bytes of an answer that was read, which no arithmetic gives: see `returned`
_READ = 0xFD


frames: Any = importlib.import_module("frames")
callees: Any = importlib.import_module("callee")
engines: Any = importlib.import_module("engine")
graphs: Any = importlib.import_module("graphs")


class BuiltSolution:
    """One solution, built, and how to call it; `channel` is its own link to the judge.

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
        torch = self._torch
        self._builds = importlib.import_module("building").build
        self._seed, self._no_grad = torch.manual_seed, torch.no_grad
        self._tensor, self._copy = torch.Tensor, torch.Tensor.copy_
        self._pointer = torch.Tensor.data_ptr
        self._synchronize = torch.cuda.synchronize
        self._pause, self._on = torch.cuda._sleep, torch.cuda.stream
        self._current = torch.cuda.current_stream
        self._staged: Any = None
        self._callee: Any = None
        self._engine, self._graphs = engines.Engine(device), graphs.Graphs()
        self._last_seed = 0

    def serve(self) -> None:
        """Answer frames until the judge closes the channel."""
        frames.send(self._channel, {"hello": os.getpid()})
        while True:
            frame, files = frames.receive(self._channel)
            try:
                answer = self._answer(frame, files)
            except BaseException as error:  # noqa: BLE001 - SystemExit is no answer
                answer = {"raised": _text(error), "kind": type(error).__name__}
            if self._device == "cuda" and "raised" in answer:
                # what the call held is free by now, for the next one
                with suppress(Exception):
                    self._torch.cuda.empty_cache()
            nonce = frame.get("nonce")
            frames.send(self._channel, {**answer, "nonce": nonce})

    def _answer(self, frame: Frame, files: Sequence[int]) -> Frame:
        if "slot" in frame:
            self._share(frame["slot"], files[0], frame["bytes"])
            return {}
        if "build" in frame:
            return self._build(frame["build"])
        if "clock" in frame:
            return self._clocked(frame, files)
        if "graph" in frame:
            return self._captured(frame["graph"])
        if "release" in frame:
            self._graphs.release()
            return {}
        if "memory" in frame:
            return self._counted(**frame["memory"])
        if "state" in frame:
            state: Frame = self._engine.state(self._last_seed)
            return state
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

    def _counted(self, slot: int, used: int) -> Frame:
        """Return what torch has and had at most, of which `ours` is this file's.

        A slot is all there for the next call, and what torch had at most begins anew.
        """
        if self._device == "cpu":
            self._memory[slot].max()
            with suppress(AttributeError):
                # what was freed is the machine's again, and counts once it is taken
                ctypes.CDLL(None).malloc_trim(0)
            return {"ours": 0, "peak": 0, "reserved": 0, "now": 0}
        ours = self._staging(used).numel()
        ours += sum(one.numel() for one in self._on_device.values())
        return {"ours": ours, **self._engine.memory()}

    def _build(self, how: Mapping[str, Any]) -> Frame:
        for name, value in how["limits"].items():
            which = getattr(resource, f"RLIMIT_{name}")
            resource.setrlimit(which, (value, value))
        if how["gpu_bytes"] is not None:
            _, total = self._torch.cuda.mem_get_info()
            share = min(how["gpu_bytes"] / total, 1.0)
            self._torch.cuda.set_per_process_memory_fraction(share)
        try:
            self._call = self._builds(how, os.getcwd())
        except BaseException as error:  # noqa: BLE001 - whatever a build raises
            return {"failed": _first_error(_text(error))}
        return {"built": True}

    def _run(self, how: Mapping[str, Any]) -> Frame:
        """Call the solution once; what it wrote is in shared memory before the answer.

        On CUDA the arguments are written, and the outputs copied, on the stream of the
        call: a kernel on another stream that waits for neither sees old arguments, or
        its outputs come too late.
        """
        slot, used, under = how["slot"], how["used"], how["under"]
        arguments = [self._argument(slot, one) for one in how["inputs"]]
        outputs = [self._argument(slot, one) for one in how["outputs"]]
        if how["passes_outputs"]:
            arguments += outputs
        self._last_seed = how["seed"]
        self._seed(how["seed"])
        assert self._call is not None
        aside = under == engines.STREAM
        with self._engine.side() if aside else nullcontext(), self._no_grad():
            cuda = self._device == "cuda"
            stream = self._begin(slot, used, aside) if cuda else None
            call = self._call
            if under == engines.COMPILE:
                call = self._engine.compiled(call)
            elif under == engines.OPERATORS:
                call = self._engine.checked(call)
            returned = call(*arguments)
            if aside:
                stream = self._engine.reader(stream)
            if how["passes_outputs"]:
                self._take(slot, used, [], stream)
                return {"outputs": "passed"}
            # a named tuple is one as well
            is_many = isinstance(returned, (tuple, list))
            values = list(returned) if is_many else [returned]
            pairs = list(zip(values, how["outputs"], strict=False))
            self._take(slot, used, pairs if len(values) == len(outputs) else [], stream)
            return {
                "outputs": [self._described(slot, v, how["inputs"]) for v in values]
            }

    def _captured(self, how: Mapping[str, Any]) -> Frame:
        """Capture a call into a graph, and queue replays that wait for the judge."""
        slot, used = how["slot"], how["used"]
        arguments = [self._argument(slot, one) for one in how["inputs"]]
        outputs = [self._argument(slot, one) for one in how["outputs"]]
        passes, call = how["passes_outputs"], self._call
        assert call is not None
        self._seed(how["seed"])
        with self._no_grad():
            returned = self._graphs.capture(
                lambda: call(*arguments, *(outputs if passes else ())),
                how["mode"],
                self._memory[slot][:used],
                self._on_device[slot].data[:used],
                [] if passes else how["outputs"],
                self._memory[how["gate"]],
                how["replays"],
            )
        if passes:
            return {"outputs": "passed"}
        is_many = isinstance(returned, (tuple, list))
        values = list(returned) if is_many else [returned]
        return {"outputs": [self._described(slot, v, how["inputs"]) for v in values]}

    def _begin(self, slot: int, used: int, aside: bool) -> Any:
        """Write a slot's arguments on the current stream, behind a pause; return that.

        While the pause lasts the call is made: what does not wait for this stream runs
        before the arguments are there. With `aside` this is no default stream, and the
        legacy one is busy for longer.
        """
        staged = self._staging(used)
        self._copy(staged, self._memory[slot][:used])
        self._synchronize()
        if aside:
            self._engine.keep_legacy_busy()
        self._pause(_PAUSE_CYCLES)
        # not through the views: their version must not tell that values changed
        self._copy(self._on_device[slot].data[:used], staged)
        return self._current()

    def _take(
        self, slot: int, used: int, returned: Sequence[tuple[Any, Frame]], stream: Any
    ) -> None:
        """Bring what a call wrote and returned into shared memory.

        What was returned is poisoned then: memory that is freed holds no old answer.
        """
        taken = self._memory[slot][:used]
        if stream is None:
            self._gather(slot, taken, returned, copies=False)
            return
        with self._on(stream):
            staged = self._staging(used)
            self._gather(slot, staged, returned, copies=True)
            stream.synchronize()
        # the device is idle before anything else is written
        self._synchronize()
        self._copy(taken, staged)

    def _gather(
        self,
        slot: int,
        target: Any,
        returned: Sequence[tuple[Any, Frame]],
        *,
        copies: bool,
    ) -> None:
        """Copy what was returned to its place in `target`, then poison it.

        With `copies` all else of the slot is copied there before.
        """
        if copies:
            self._copy(target, self._on_device[slot].data[: target.numel()])
        for value, declared in returned:
            is_one = type(value) is self._tensor and "at" in declared
            if not is_one or list(value.shape) != declared["shape"]:
                continue
            if str(value.dtype) == f"torch.{declared['dtype']}":
                begin, count = declared["at"], declared["bytes"]
                place = target[begin : begin + count]
                self._copy(place.view(value.dtype).view(value.shape), value)
        for value, declared in returned:
            if type(value) is self._tensor and "at" in declared:
                with suppress(Exception):
                    self._poison(slot, value)

    def _poison(self, slot: int, value: Any) -> None:
        """Overwrite the memory of a tensor that was returned, where it is its own."""
        whole = self._torch.empty(0, dtype=self._torch.uint8)
        whole = whole.to(value.device).set_(value.untyped_storage())
        shared = self._on_device[slot]
        begin = shared.data_ptr()
        if not begin <= whole.data_ptr() < begin + shared.numel():
            whole.fill_(_READ)

    def _staging(self, used: int) -> Any:
        """Return memory of the device that holds arguments before a call, outputs after."""
        if self._staged is None or self._staged.numel() < used:
            self._staged = None
            torch = self._torch
            self._staged = torch.empty(used, dtype=torch.uint8, device="cuda")
        return self._staged[:used]

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
        offset = one.get("offset", 0)
        which = (one.get("width"), offset, *one["shape"])
        key = (slot, one["at"], one["dtype"], *which)
        skipped = offset * getattr(self._torch, one["dtype"]).itemsize
        begin = self._on_device[slot].data_ptr() + one["at"] + skipped
        known = self._tensors.get(key)
        # one that was sent to another process lies elsewhere since
        if known is None or (one["bytes"] and self._pointer(known) != begin):
            dtype = getattr(self._torch, one["dtype"])
            flat = self._bytes(slot, one["at"], one["bytes"]).view(dtype)
            # each with a version of its own, which nothing from outside changes
            self._tensors[key] = _shaped(flat, one).data
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
        described = {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
            "device": value.device.type,
            "layout": str(value.layout),
            "type": _name(type(value)),
        }
        if described["layout"] == "torch.strided" and value.device.type == self._device:
            storage = value.untyped_storage()
            begin = self._on_device[slot].data_ptr()
            shared = self._on_device[slot].numel()
            described["aliases"] = any(
                "at" in one and begin <= storage.data_ptr() < begin + shared
                for one in inputs
            )
        return described


def _shaped(flat: Any, one: Frame) -> Any:
    """Return a tensor of a place: all of it, or of each of its rows a part."""
    if "width" not in one:
        return flat.view(one["shape"])
    begin, length = one["offset"], one["shape"][-1]
    wider = flat.view([*one["shape"][:-1], one["width"]])
    return wider[..., begin : begin + length]


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"[:200]


def _first_error(text: str) -> str:
    """Return what a compiler found first, of a text that shows all it was called with."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if "error:" in line), text)


def _text(error: BaseException) -> str:
    """Return an error in a line: its kind, what it says, and the solution's last line."""
    try:
        # what torch adds to an error of CUDA says how to look for it
        short = str(error).partition("\nSearch for `cuda")[0]
        text = f"{type(error).__name__}: {short}"[:_MOST_TEXT]
        lines = [
            f"{frame.filename.split(_PACKAGE)[-1].lstrip('/')}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
            if _PACKAGE in frame.filename
        ]
        return f"{text} ({lines[-1]})" if lines else text
    except BaseException:  # noqa: BLE001 - its __str__ is the solution's as well
        return "an error that can't be shown"
