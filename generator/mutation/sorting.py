"""Sort the same tensor once, however often a sampler draws from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch

_KEPT = 4
_PLACES = (
    (torch, "topk"),
    (torch, "sort"),
    (torch.Tensor, "topk"),
    (torch.Tensor, "sort"),
)


@dataclass(frozen=True)
class _Sorted:
    """A function's result for a tensor, and the versions of all these tensors."""

    name: str
    arguments: tuple[Any, ...]
    tensor: torch.Tensor
    result: Any
    versions: tuple[int, ...]


@contextmanager
def sorted_once() -> Iterator[None]:
    """Let topk() and sort() return their earlier result for the same tensor.

    A sampler's distribution is tested by hundreds of calls on the same inputs. A result
    is reused for the same tensor object only, and not after a write to the tensor or to
    the result.
    """
    known: deque[_Sorted] = deque(maxlen=_KEPT)
    with ExitStack() as stack:
        for owner, name in _PLACES:
            patched = _remembering(name, getattr(owner, name), known)
            stack.enter_context(mock.patch.object(owner, name, patched))
        yield


def _remembering(
    name: str, original: Callable[..., Any], known: deque[_Sorted]
) -> Callable[..., Any]:
    def sorts(tensor: Any, *rest: Any, **named: Any) -> Any:
        arguments = (*rest, *named.items())
        plain = all(isinstance(g, (bool, int)) for g in (*rest, *named.values()))
        if not plain or not isinstance(tensor, torch.Tensor) or tensor.is_inference():
            return original(tensor, *rest, **named)
        for earlier in known:
            if (
                earlier.tensor is tensor
                and (earlier.name, earlier.arguments) == (name, arguments)
                and earlier.versions == _versions(tensor, earlier.result)
            ):
                return earlier.result
        result = original(tensor, *rest, **named)
        known.append(
            _Sorted(name, arguments, tensor, result, _versions(tensor, result))
        )
        return result

    return sorts


def _versions(tensor: torch.Tensor, result: Any) -> tuple[int, ...]:
    return tuple(t._version for t in (tensor, *result))
