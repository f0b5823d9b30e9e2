"""The callee's side of timed calls: in a solution's sandbox, and in a rival's process.

What is called after a solution's code is loaded is bound before, for honest ones that patch
torch. Nothing here decides on
a time or an answer: whoever replaces it can only be late, or wrong.

The sandbox shows this file: it imports the standard library and torch alone.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

EMPTY, TWICE, WAITS = 0, (1 << 8) - 1, 1 << 8
"""Of a call: which function is called, from 1 on, EMPTY for one tiny kernel, TWICE for
two, one after the other; with WAITS the device is waited for before the answer."""
_MOST_TEXT = 2000

torch: Any = importlib.import_module("torch")
# bound where this is imported, before a solution's code is
_TENSOR, _COPY, _ZERO = torch.Tensor, torch.Tensor.copy_, torch.Tensor.zero_
_SEED, _NO_GRAD = torch.Generator.manual_seed, torch.no_grad
_SYNCHRONIZE, _DUMPS = torch.cuda.synchronize, json.dumps


class Callee:
    """The callee's side of timed calls, on memory of the judge.

    What a function allocates during a call lies in `arena`, as long as that has room: an
    output that it returns is read there. One that lies elsewhere is copied into its
    place among the arguments within the call, since the judge can read nothing else.
    """

    def __init__(self, device: str, arena: Any | None) -> None:
        self._cuda = device == "cuda"
        self._memory: Any = None
        self._arena = arena
        self._known: dict[Any, bytes] = {}
        self._pool = None if arena is None else _Pool(arena)
        self._little = torch.zeros(8, device=device)
        # torch.manual_seed asks each kind of device in turn, 0.1 ms long
        of_gpus = torch.cuda.default_generators if self._cuda else ()
        self._generators = (torch.default_generator, *of_gpus)

    def serve(
        self,
        page: Any,
        memory: Any,
        how: Mapping[str, Any],
        calls: Sequence[Callable[..., Any]],
        notes: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """Answer until the judge ends it.

        `how` has the places of the arguments in `memory`, which are the same in each
        call; `notes` returns what is to be said beside the outputs.
        """
        self._memory = memory
        outputs = [self._argument(one) for one in how["outputs"]]
        arguments = [self._argument(one) for one in how["inputs"]]
        passes = how["passes_outputs"]
        if passes:
            arguments += outputs
        self._known.clear()
        number = 0
        with _NO_GRAD():
            while True:
                number += 1
                # what the last call returned has been read
                returned = None
                seed = page.opened(number)
                if seed == 0:
                    return
                for one in self._generators:
                    _SEED(one, seed)
                page.ready(number)
                which = page.revealed(number)
                answer = b"{}"
                try:
                    call = which & (WAITS - 1)
                    if call in (EMPTY, TWICE):
                        for _ in range(1 + (call == TWICE)):
                            _ZERO(self._little)
                    else:
                        with self._allocating():
                            returned = calls[call - 1](*arguments)
                        if not passes:
                            answer = self._said(returned, outputs, how["outputs"])
                    if which & WAITS and self._cuda:
                        _SYNCHRONIZE()
                    if notes is not None and (more := notes()):
                        answer = _DUMPS({**json.loads(answer), **more}).encode()
                except BaseException as error:  # noqa: BLE001 - SystemExit as well
                    answer = _DUMPS({"raised": text_of(error)}).encode()
                page.answer(number, answer)

    def _argument(self, one: Mapping[str, Any]) -> Any:
        if "at" not in one:
            return one.get("value")
        flat = self._memory.bytes[one["at"] : one["at"] + one["bytes"]]
        return flat.view(getattr(torch, one["dtype"])).view(one["shape"])

    def _allocating(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._pool is None else self._pool.use()

    def _said(
        self, returned: Any, places: Sequence[Any], declared: Sequence[Any]
    ) -> bytes:
        """Return where the outputs lie, after those were copied that lie elsewhere."""
        is_many = isinstance(returned, (tuple, list))
        values = list(returned) if is_many else [returned]
        answers = []
        for number, value in enumerate(values):
            place = places[number] if number < len(places) else None
            answers.append(self._described(value, place, declared))
        key = tuple(answers)
        if key not in self._known:
            text = _DUMPS({"outputs": [dict(one) for one in answers]})
            self._known[key] = text.encode()
        return self._known[key]

    def _described(
        self, value: Any, place: Any, declared: Sequence[Any]
    ) -> tuple[tuple[str, Any], ...]:
        if not isinstance(value, _TENSOR):
            if isinstance(value, (bool, int, float)):
                return (("value", value),)
            return (("type", _name(type(value))),)
        is_strided = value.layout == torch.strided
        described: list[tuple[str, Any]] = [
            ("dtype", str(value.dtype).removeprefix("torch.")),
            ("shape", tuple(value.shape)),
            ("device", value.device.type),
            ("layout", str(value.layout)),
            ("type", _name(type(value))),
        ]
        if not is_strided or value.device.type != self._memory.bytes.device.type:
            return tuple(described)
        begin = self._memory.address
        address = value.untyped_storage().data_ptr()
        described.append(("aliases", begin <= address < begin + self._memory.size))
        arena = self._arena
        if arena is not None and value.is_contiguous():
            at = value.data_ptr() - arena.address
            if at >= 0 and at + value.numel() * value.element_size() <= arena.size:
                return (*described, ("arena", at))
        if (
            isinstance(place, _TENSOR)
            and place.shape == value.shape
            and place.dtype == value.dtype
        ):
            _COPY(place, value)
        return tuple(described)


class _Pool:
    """An allocator of torch that takes a call's memory from the judge.

    Where the arena is full, memory comes from the driver; such outputs are copied.
    """

    def __init__(self, arena: Any) -> None:
        self._arena, self._end = arena, 0
        self._free: dict[int, list[int]] = {}
        self._foreign: set[int] = set()
        self._driver = ctypes.CDLL("libcuda.so.1")
        size, number, address = ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
        taking = ctypes.CFUNCTYPE(address, size, number, address)(self._take)
        giving = ctypes.CFUNCTYPE(None, address, size, number, address)(self._give)
        # they live as long as the allocator that calls them
        self._called = (taking, giving)
        raw = [ctypes.cast(one, address).value for one in self._called]
        self._allocator = torch._C._cuda_customAllocator(*raw)
        self._pool = torch.cuda.MemPool(self._allocator)
        self._uses = torch.cuda.use_mem_pool

    def use(self) -> AbstractContextManager[Any]:
        """Return a context in which this thread allocates here."""
        context: AbstractContextManager[Any] = self._uses(self._pool)
        return context

    def _take(self, size: int, device: int, stream: int | None) -> int:
        free = self._free.get(size)
        if free:
            return free.pop()
        if self._end + size <= self._arena.size:
            at = self._end
            self._end += -(-size // 512) * 512
            return int(self._arena.address + at)
        place = ctypes.c_uint64()
        status = self._driver.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size))
        if status != 0:
            return 0
        self._foreign.add(place.value)
        return place.value

    def _give(
        self, address: int | None, size: int, device: int, stream: int | None
    ) -> None:
        if address in self._foreign:
            self._foreign.discard(address)
            self._driver.cuMemFree_v2(ctypes.c_uint64(address))
        elif address:
            self._free.setdefault(size, []).append(address)


def text_of(error: BaseException) -> str:
    """Return an error in a line, with the last line of its own file."""
    try:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = f" (line {last[0].lineno})" if last else ""
        return f"{type(error).__name__}: {error}"[:_MOST_TEXT] + where
    except BaseException:  # noqa: BLE001 - its __str__ is the solution's as well
        return "an error that can't be shown"


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"[:200]
