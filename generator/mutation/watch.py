"""Tell which mutants change no value, while the reference runs in their place."""

from __future__ import annotations

import functools
import struct
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from generator.execution.process_limits import TimeIsUp
from generator.mutation.generic.beside import Instrumented, instrumented
from generator.mutation.generic.code import Edit, SourceCode
from generator.mutation.generic.purity import BESIDE, FOLLOW, REACHED, STORED
from kernel_judge.inputs.trial import same_bits

Run = Callable[..., Any]
Equal = Callable[[int, Any, Any], bool]
# of tensors that one call of run() may keep until its end
_HELD_BYTES = 256 * 2**20
# two values of one of these types are the same where they are equal
_PLAIN = (bool, int, str, range, type(None), torch.dtype, torch.device)


@dataclass
class Watch:
    """The mutants of a reference that have not changed any value yet, by their places.

    In an expression the mutant's value is compared with the reference's, which goes on:
    its type and bits, and for a tensor the strides as well. Two tensors with storages of
    their own are the same if none of them is written to before the call ends. Another
    value of a variable is none if all that reads the variable has the same value with it.
    """

    text: Instrumented
    unchanged: set[int]
    _others: dict[int, Any] = field(default_factory=dict)
    _held: list[tuple[int, torch.Tensor, int]] = field(default_factory=list)
    _bytes: int = 0

    @classmethod
    def of(cls, reference: str, edits: Mapping[int, Edit]) -> Watch | None:
        """Return a watch of edits of a reference; None if its text can't be followed."""
        text = instrumented(SourceCode.parse(reference), edits)
        if text is None:
            return None
        places = {place for site in text.sites for place in site}
        return cls(text, places)

    def load(self) -> Run:
        """Return the reference's run(), which evaluates the mutants beside its own."""
        module = ModuleType("reference")
        module.__dict__[BESIDE], module.__dict__[REACHED] = self._beside, self._reached
        module.__dict__[FOLLOW], module.__dict__[STORED] = self._follow, self._stored
        code = compile(self.text.text, "<reference>", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102
        run: Run = module.__dict__["run"]

        @functools.wraps(run)
        def watched(*arguments: Any) -> Any:
            try:
                return run(*arguments)
            finally:
                self._release()

        return watched

    def _reached(self, site: int) -> None:
        self.unchanged.difference_update(self.text.sites[site])

    def _beside(self, site: int, value: Any, *others: Callable[[], Any]) -> Any:
        for place, other in zip(self.text.sites[site], others, strict=True):
            self._others.pop(place, None)
            if place in self.text.followed:
                self._check(place, value, other, self._equal_or_followed)
            else:
                self._check(place, value, other, self._equal)
        return value

    def _follow(self, site: int, value: Any, use: Callable[[Any], Any]) -> Any:
        for place in self.text.sites[site]:
            if place in self._others:
                other = functools.partial(use, self._others[place])
                self._check(place, value, other, self._equal)
        return value

    def _stored(
        self, site: int, value: Any, into: Callable[[], Any], *others: Callable[[], Any]
    ) -> Any:
        def equal(place: int, first: Any, second: Any) -> bool:
            target = into()
            if all(isinstance(t, torch.Tensor) for t in (target, first, second)):
                return same_bits(first.to(target.dtype), second.to(target.dtype))
            return self._equal(place, first, second)

        for place, other in zip(self.text.sites[site], others, strict=True):
            self._check(place, value, other, equal)
        return value

    def _check(
        self, place: int, value: Any, other: Callable[[], Any], equal: Equal
    ) -> None:
        """Take a mutant out whose value is not equal, or takes too much to hold."""
        if place not in self.unchanged:
            return
        self.unchanged.discard(place)
        if _bytes(value) > _HELD_BYTES:
            return
        try:
            if equal(place, value, other()):
                self.unchanged.add(place)
        except TimeIsUp:
            raise
        except BaseException:  # noqa: BLE001, S110
            # so would the mutant
            pass

    def _equal_or_followed(self, place: int, first: Any, second: Any) -> bool:
        if self._equal(place, first, second):
            return True
        # neither may change until all that reads it has been compared
        tensors = [t for t in (first, second) if isinstance(t, torch.Tensor)]
        plain = (*_PLAIN, float, torch.Tensor)
        if not (isinstance(first, plain) and isinstance(second, plain)):
            return False
        if not self._hold(place, *tensors):
            return False
        self._others[place] = second
        return True

    def _hold(self, place: int, *tensors: torch.Tensor) -> bool:
        more = sum(tensor.nbytes for tensor in tensors)
        if self._bytes + more > _HELD_BYTES:
            self._forget()
        if self._bytes + more > _HELD_BYTES:
            return False
        self._bytes += more
        self._held += [(place, tensor, tensor._version) for tensor in tensors]
        return True

    def _forget(self) -> None:
        """Let go of tensors that nothing else refers to: nobody can write to these any more."""
        held, self._held, self._bytes = self._held, [], 0
        times = Counter(id(tensor) for _, tensor, _ in held)
        used = {id(other) for other in self._others.values()}
        while held:
            place, tensor, version = held.pop()
            if tensor._version != version:
                self.unchanged.discard(place)
            elif place in self.unchanged:
                # those of the list, of this function and of the call
                is_last = sys.getrefcount(tensor) <= times[id(tensor)] + 1
                if not is_last or id(tensor) in used or _storage_uses(tensor) > _ALONE:
                    self._held.append((place, tensor, version))
                    self._bytes += tensor.nbytes
                    continue
            times[id(tensor)] -= 1

    def _equal(self, place: int, first: Any, second: Any) -> bool:
        if first is second:
            return True
        if type(first) is not type(second):
            return False
        if isinstance(first, torch.Tensor):
            return self._equal_tensors(place, first, second)
        if isinstance(first, tuple):
            pairs = zip(first, second, strict=False)
            return len(first) == len(second) and all(
                self._equal(place, *pair) for pair in pairs
            )
        if isinstance(first, float):
            return struct.pack("d", first) == struct.pack("d", second)
        return isinstance(first, _PLAIN) and bool(first == second)

    def _equal_tensors(
        self, place: int, first: torch.Tensor, second: torch.Tensor
    ) -> bool:
        if _layout(first) != _layout(second):
            return False
        if first.data_ptr() == second.data_ptr():
            # both are the same view, or have no elements
            return True
        if not same_bits(first, second):
            return False
        return self._hold(place, first, second)

    def _release(self) -> None:
        """Take back what was said of tensors that have been written to."""
        for place, tensor, version in self._held:
            if tensor._version != version:
                self.unchanged.discard(place)
        self._held.clear()
        self._others.clear()
        self._bytes = 0


def _storage_uses(tensor: torch.Tensor) -> int:
    """Return how many tensors, and calls such as this one, refer to a storage."""
    uses: int = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)
    return uses


# of a tensor without views
_ALONE = _storage_uses(torch.empty(1))


def _layout(tensor: torch.Tensor) -> Sequence[Any]:
    """Return all that operations on a tensor depend on but its bits.

    Where it lies may decide in which order a library adds.
    """
    return (
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.data_ptr() % 64,
    )


def _bytes(value: Any) -> int:
    """Return what holding a value and another one like it takes."""
    if isinstance(value, torch.Tensor):
        return 2 * value.nbytes
    return sum(map(_bytes, value)) if isinstance(value, tuple) else 0
