"""Inside the sandbox: start a process for each solution, and call it when asked.

This file, `building` and `execution/limits` import the standard library and torch, and
nothing else of ours is visible where they run. A frame on the channel is 8 bytes of
length and JSON; descriptors come with it. Tensors lie in memory that the judge shares:
slots of addresses that stay, into which the judge writes inputs and poison, and from
which it reads outputs.

`python worker.py CHANNEL DEVICE` is the first process of the sandbox. It runs no code of
a solution: it imports torch, forks a process for each solution, and afterwards ends all
processes but itself and empties the folders that they could write to.
"""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

_LENGTH = struct.Struct("<Q")
_MOST_TEXT, _MOST_BYTES = 4000, 1 << 24
_PACKAGE = "solution_under_evaluation"
_FLUSH_BYTES = 512 << 20
_LAUNCHES = 16
_FOLDERS = ("/tmp", "/dev/shm")

Frame = dict[str, Any]


class Garbled(Exception):
    """Say what came over a channel that is no frame."""


def send(channel: socket.socket, frame: Frame, files: Sequence[int] = ()) -> None:
    """Send a frame and descriptors. Raises OSError where nobody is there any more."""
    data = json.dumps(frame).encode()
    data = _LENGTH.pack(len(data)) + data
    sent = socket.send_fds(channel, [data], list(files)) if files else 0
    channel.sendall(data[sent:])


def receive(
    channel: socket.socket, until: float | None = None
) -> tuple[Frame, list[int]]:
    """Return the next frame and its descriptors, by a time of the monotonic clock.

    Raises EOFError, Garbled, and TimeoutError where it is not whole by then.
    """
    files: list[int] = []

    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            if until is not None:
                # never 0, which would not wait for what is there
                channel.settimeout(max(until - time.monotonic(), 1e-3))
            more, came, _, _ = socket.recv_fds(channel, count - len(data), 16)
            files.extend(came)
            if not more:
                raise EOFError
            data += more
        return data

    (length,) = _LENGTH.unpack(exactly(_LENGTH.size))
    if length > _MOST_BYTES:
        raise Garbled("a frame that is too long")
    try:
        frame = json.loads(exactly(length))
    except (ValueError, RecursionError) as error:
        raise Garbled("a frame that is no JSON") from error
    if not isinstance(frame, dict):
        raise Garbled("a frame that is no object")
    return frame, files


def main() -> None:
    """Serve the judge until it closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    device = sys.argv[2]
    sys.path.insert(0, os.path.dirname(__file__))
    limits = importlib.import_module("limits")
    # nobody of the same user may look into this process; what a solution leaves behind
    # becomes a child of it, where the judge sees it
    limits.hide_memory()
    limits.adopt_orphans()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    gc.freeze()
    send(channel, {"ready": torch.__version__})
    child = 0
    while True:
        try:
            frame, files = receive(channel)
        except (EOFError, OSError):
            os._exit(0)
        if "begin" in frame:
            child = os.fork()
            if child == 0:
                own = os.dup(files[0])
                channel.close()
                os.close(files[0])
                limits.hide_memory(hidden=False)
                try:
                    Solution(socket.socket(fileno=own), device).serve()
                except (EOFError, OSError):
                    os._exit(0)
                finally:
                    os._exit(1)
            for file in files:
                os.close(file)
            send(channel, {"begun": child})
        else:
            send(channel, {"ended": _end(child)})


def _end(child: int) -> int:
    """End all other processes, empty what they could write to; return an exit code."""
    own, status = os.getpid(), None
    while True:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                pid, ended = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                status = ended if pid == child else status
        if {int(n) for n in os.listdir("/proc") if n.isdecimal()} <= {1, own}:
            break
        time.sleep(0.001)
    for folder in (*_FOLDERS, os.getcwd()):
        _empty(folder)
    os.makedirs(os.environ.get("HOME", "/tmp/home"), 0o700, exist_ok=True)
    return 0 if status is None else os.waitstatus_to_exitcode(status)


def _empty(folder: str) -> None:
    """Remove what is in a folder, but not what is mounted there."""
    device = os.lstat(folder).st_dev
    for entry in os.scandir(folder):
        if entry.stat(follow_symlinks=False).st_dev != device:
            continue
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        with suppress(OSError):
            os.chmod(entry.path, 0o700)
            _empty(entry.path)
            os.rmdir(entry.path)


class Solution:
    """Build one solution and call it; `channel` is its own link to the judge.

    What is called after the solution's code is loaded is bound before: names that it
    patches in torch are not looked up again.
    """

    def __init__(self, channel: socket.socket, device: str) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._channel, self._device = channel, device
        self._memory: dict[int, Any] = {}
        self._on_device: dict[int, Any] = {}
        self._tensors: dict[tuple[Any, ...], Any] = {}
        self._call: Callable[..., Any] | None = None
        self._returned: list[tuple[Any, Frame]] = []
        torch = self._torch
        self._builds = importlib.import_module("building").build
        self._seed, self._no_grad = torch.manual_seed, torch.no_grad
        self._tensor, self._copy = torch.Tensor, torch.Tensor.copy_
        self._synchronize = torch.cuda.synchronize
        self._clock: Any = None

    def serve(self) -> None:
        """Answer frames until the judge closes the channel."""
        send(self._channel, {"hello": os.getpid()})
        while True:
            frame, files = receive(self._channel)
            try:
                answer = self._answer(frame, files)
            except BaseException as error:  # noqa: BLE001 - SystemExit is no answer
                answer = {"raised": _text(error), "kind": type(error).__name__}
            nonce = frame.get("nonce")
            send(self._channel, {**answer, "nonce": nonce})

    def _answer(self, frame: Frame, files: Sequence[int]) -> Frame:
        if "slot" in frame:
            self._share(frame["slot"], files[0], frame["bytes"])
            return {}
        if "build" in frame:
            return self._build(frame["build"])
        if "fetch" in frame:
            return self._fetch(frame["fetch"])
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
        call, timed = self._call, Frame()
        if how["times"]:
            # the first timed call comes before the solution is loaded
            self._clock = self._clock or Clock(self._torch)
            timed, returned = self._clock.around(call and (lambda: call(*given)))
        else:
            assert call is not None
            with self._no_grad():
                returned = call(*given)
        if cuda:
            self._synchronize()
        if call is None:
            return timed
        if how["passes_outputs"]:
            return {"outputs": "passed", **timed}
        values = list(returned) if type(returned) in (tuple, list) else [returned]
        described = [self._described(slot, value, how["inputs"]) for value in values]
        if len(values) == len(how["outputs"]):
            self._returned = list(zip(values, how["outputs"], strict=True))
        answer = {"outputs": described, **timed}
        if not cuda:
            self._fetch({"slot": slot})
        return answer

    def _argument(self, slot: int, one: Frame) -> Any:
        """Return the value of an argument: of equal places the same object."""
        if "at" not in one:
            return one.get("value")
        key = (slot, one["at"], one["dtype"], *one["shape"])
        if key not in self._tensors:
            dtype = getattr(self._torch, one["dtype"])
            flat = self._on_device[slot][one["at"] : one["at"] + one["bytes"]]
            # each with a version of its own, which nothing from outside changes
            self._tensors[key] = flat.view(dtype).view(one["shape"]).data
        return self._tensors[key]

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


class Clock:
    """Measure a call on the GPU by events, with a cold L2 cache before each call."""

    def __init__(self, torch: Any) -> None:
        self._no_grad, self._synchronize = torch.no_grad, torch.cuda.synchronize
        self._event, self._elapsed = torch.cuda.Event, torch.cuda.Event.elapsed_time
        self._record, self._zero = torch.cuda.Event.record, torch.Tensor.zero_
        size = 4 * torch.cuda.get_device_properties(0).L2_cache_size or _FLUSH_BYTES
        self._cache = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._little = self._cache[:1024]

    def around(self, call: Callable[[], Any] | None) -> tuple[Frame, Any]:
        """Return the times of a call and what it returned; None calls nothing.

        `milliseconds` is from before the call to the end of what it left on its stream,
        `rest` from there until the device is idle, whatever stream is still busy.
        """
        first, last, idle = (self._event(enable_timing=True) for _ in range(3))
        self._zero(self._cache)
        for _ in range(_LAUNCHES):
            # a process that waited launches slowly at first
            self._zero(self._little)
        # nothing may run before the first event, on any stream
        self._synchronize()
        with self._no_grad():
            self._record(first)
            returned = call() if call is not None else None
            self._record(last)
        self._synchronize()
        self._record(idle)
        self._synchronize()
        times = {
            "milliseconds": float(self._elapsed(first, last)),
            "rest": float(self._elapsed(last, idle)),
        }
        return times, returned


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


if __name__ == "__main__":
    main()
