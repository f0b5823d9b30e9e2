"""Inside the sandbox: capture a call into a CUDA graph, and queue replays behind gates.

A replay waits on the GPU until the judge opens its gate, a number in shared memory. By
then all processes of the solution are stopped: what replays is what was captured, and
no code of the CPU has a part in it.

The sandbox shows this file: it imports the standard library and torch alone.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

OPEN, DONE = 0, 64
"""Places of the two numbers in the gate, in elements of int32: written by the judge
before a replay, and by the GPU behind it."""
_WARM_UPS = 2
# values of cuda.h
_MAPPED, _AT_LEAST = 2, 0

torch: Any = importlib.import_module("torch")


class Graphs:
    """Capture calls of a solution; made before its code is loaded, and binds what it calls."""

    def __init__(self) -> None:
        self._graph, self._capturing = torch.cuda.CUDAGraph, torch.cuda.graph
        self._on, self._streams = torch.cuda.stream, torch.cuda.Stream
        self._synchronize, self._copy = torch.cuda.synchronize, torch.Tensor.copy_
        self._snapshot = torch.cuda.memory_snapshot
        self._registered: set[int] = set()
        self._side: Any = None
        self._held: list[Any] = []

    def capture(
        self,
        call: Callable[[], Any],
        mode: str,
        shared: Any,
        on_device: Any,
        outputs: Sequence[Mapping[str, Any]],
        gate: Any,
        replays: int,
    ) -> Any:
        """Capture a call and queue its replays; return what the captured call returned.

        `shared` is memory of the host that the judge writes, `on_device` the arguments,
        both uint8 of one length. `outputs` are the places of what is returned. Raises
        what the call or its capture raises.
        """
        if self._side is None:
            self._side = self._streams()
        for memory in (shared, gate):
            self._register(memory)
        with self._on(self._side):
            for _ in range(_WARM_UPS):
                self._copy(on_device, shared)
                call()
        self._synchronize()
        graph = self._graph()
        failed: BaseException | None = None
        try:
            with self._capturing(graph, stream=self._side, capture_error_mode=mode):
                try:
                    returned = call()
                except BaseException as error:
                    failed = error
                    raise
        except BaseException:
            # the end of a capture that was broken off says nothing of the cause
            if failed is not None:
                raise failed from None
            raise
        is_many = isinstance(returned, (tuple, list))
        values = list(returned) if is_many else [returned]
        self._held = [graph, returned]
        with self._on(self._side):
            spoils = self._spoiled(graph)
            self._synchronize()
            for number in range(1, replays + 1):
                self._wait(gate, number)
                self._copy(on_device, shared, non_blocking=True)
                spoils()
                for value, place in zip(values, outputs, strict=False):
                    _placed(on_device, place, value, self._copy, fetches=False)
                graph.replay()
                for value, place in zip(values, outputs, strict=False):
                    _placed(on_device, place, value, self._copy, fetches=True)
                self._copy(shared, on_device, non_blocking=True)
                self._write(gate, number)
        return returned

    def release(self) -> None:
        """Wait for all replays, and forget what was captured."""
        self._synchronize()
        self._held = []

    def _spoiled(self, graph: Any) -> Callable[[], None]:
        """Write over memory that is free; return what does so in the graph's own pool.

        What a graph frees while it is captured belongs to the next graph of its pool,
        and what was freed before belongs to anybody.
        """
        private = tuple(graph.pool())
        free: dict[bool, list[int]] = {True: [], False: []}
        for segment in self._snapshot():
            is_private = tuple(segment["segment_pool_id"]) == private
            free[is_private] += [
                block["size"]
                for block in segment["blocks"]
                if block["state"] == "inactive"
            ]
        for size in free[False]:
            self._held.append(_spoil(size))
        if not free[True]:
            return lambda: None
        spoiling = self._graph()
        with self._capturing(spoiling, pool=graph.pool(), stream=self._side):
            self._held.append([_spoil(size) for size in free[True]])
        self._held.append(spoiling)
        replay: Callable[[], None] = spoiling.replay
        return replay

    def _register(self, memory: Any) -> None:
        """Let the GPU read and write memory of the host by itself."""
        address = memory.untyped_storage().data_ptr()
        if address in self._registered:
            return
        size = memory.untyped_storage().nbytes()
        status = torch.cuda.cudart().cudaHostRegister(address, size, _MAPPED)
        if int(status) != 0:
            raise RuntimeError(f"cudaHostRegister: {status}")
        self._registered.add(address)

    def _wait(self, gate: Any, number: int) -> None:
        self._value("cuStreamWaitValue32_v2", gate, OPEN, number)

    def _write(self, gate: Any, number: int) -> None:
        self._value("cuStreamWriteValue32_v2", gate, DONE, number)

    def _value(self, name: str, gate: Any, place: int, number: int) -> None:
        driver = ctypes.CDLL("libcuda.so.1")
        address = ctypes.c_uint64()
        begin = ctypes.c_void_p(gate.data_ptr())
        status = driver.cuMemHostGetDevicePointer_v2(ctypes.byref(address), begin, 0)
        if status == 0:
            status = getattr(driver, name)(
                ctypes.c_void_p(self._side.cuda_stream),
                ctypes.c_uint64(address.value + 4 * place),
                ctypes.c_uint32(number),
                ctypes.c_uint(_AT_LEAST),
            )
        if status != 0:
            raise RuntimeError(f"{name}: CUDA error {status}")


def _spoil(size: int) -> Any:
    """Return memory of the GPU in which every float is NaN."""
    return torch.empty(size, dtype=torch.uint8, device="cuda").fill_(0xFF)


def _placed(
    memory: Any,
    place: Mapping[str, Any],
    value: Any,
    copy: Callable[..., Any],
    *,
    fetches: bool,
) -> None:
    """Copy a returned tensor to its place, or what is there to the tensor."""
    if "at" not in place or not isinstance(value, torch.Tensor):
        return
    name = str(value.dtype).removeprefix("torch.")
    if list(value.shape) != place["shape"] or name != place["dtype"]:
        return
    flat = memory[place["at"] : place["at"] + place["bytes"]]
    there = flat.view(value.dtype).view(value.shape)
    copy(*((there, value) if fetches else (value, there)))
