"""Canaries' shared code: it makes the outputs of a reference wrong.

The text of this file stands in front of the canaries (see canary.py), beside rendered
tests. It imports nothing of the generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Run = Callable[..., Any]


def wrong(reference: Callable[[], Run]) -> Callable[[], Run]:
    """Return what loads a `run()` whose every output is wrong, of the same shape.

    It also takes its inputs by other names than any definition has.
    """

    def load() -> Run:
        run = reference()

        def run_wrongly(*whatever_is_given: Any) -> tuple[Any, ...]:
            returned = run(*whatever_is_given)
            outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
            return tuple(spoiled(output) for output in outputs)

        return run_wrongly

    return load


def spoiled(output: Any) -> Any:
    """Return a value of the same kind that no tolerance lets pass for this one.

    What is finite stays so, where the dtype has room: a judge must find it wrong by
    measuring.
    """
    if not isinstance(output, torch.Tensor):
        return not output if isinstance(output, bool) else -output - 1
    if output.dtype is torch.bool:
        return ~output
    if not (output.is_floating_point() or output.is_complex()):
        return output + 1
    values = output.double()
    finite = values[values.isfinite()]
    size = float(finite.abs().max()) if finite.numel() else 0.0
    # each is off by more than twice the largest one; -inf becomes +inf
    return (-values - 4.0 * size - 1.0).to(output.dtype)
