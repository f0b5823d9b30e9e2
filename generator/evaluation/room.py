"""Memory of a GPU that other tasks use too: what has no room there, and what then.

Free memory is seen at one moment and taken at another, so whoever takes it may run out.
What the judge computes is computed on the CPU then; a solution that ran out is judged
once more, while nobody else uses the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from generator.evaluation.verdict import OUT_OF_MEMORY, Refused
from generator.running.free_memory import available_bytes, is_exhaustion
from kernel_judge.comparison.compare import Comparison, compare
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.inputs.memory import give_back

_CPU = torch.device("cpu")
# bytes that a comparison takes of a GPU for each element of the two tensors
_COMPARED = 100

T = TypeVar("T")


def compare_with_room(
    actual: Any, expected: Any, tolerance: Tolerance, device: torch.device
) -> Comparison:
    """Compare two values of any dtype: on a GPU while that has room, else on the CPU."""

    def on(place: torch.device) -> Comparison:
        first, second = (
            v.to(place) if isinstance(v, torch.Tensor) else v for v in values
        )
        return compare(first, second, tolerance, names_allowed=False)

    values = (actual, expected)
    count = sum(v.numel() for v in values if isinstance(v, torch.Tensor))
    room = available_bytes(device) if device.type != "cpu" else None
    if room is None or _COMPARED * count >= room:
        return on(_CPU)
    return where_room(on, device)


def where_room(on: Callable[[torch.device], T], device: torch.device) -> T:
    """Return what a function computes on a device, or, if it runs out there, on the CPU."""
    try:
        return on(device)
    except RuntimeError as error:
        if device.type == "cpu" or not is_exhaustion(error):
            raise
    give_back(device)
    return on(_CPU)


def alone_if_short(attempt: Callable[[bool], tuple[T, bool]], *, shares: bool) -> T:
    """Return what an attempt comes to; it says as well whether it ran out of memory.

    One that did is made anew, with True, while nobody else uses the GPU, where it
    `shares` one.
    """
    result, is_short = attempt(False)
    if is_short and shares:
        result, _ = attempt(True)
    return result


def is_short(error: BaseException | None) -> bool:
    """Return whether an error of the judge, or one that led to it, is of memory."""
    while error is not None:
        if isinstance(error, Refused) and error.verdict == OUT_OF_MEMORY:
            return True
        if is_exhaustion(error):
            return True
        error = error.__cause__
    return False
