"""Domain mutants of the RMS norms of query and key heads before they turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from generator.ops.mutants import Change
from kernel_judge.definition import Definition

NAMES = ("q_weight", "k_weight")

Divisor = Callable[[torch.Tensor], torch.Tensor]
"""Mean squares of a token's heads [..., heads, 1] → the divisor for sqrt(ms + eps)."""


def neutral_weight(definition: Definition) -> float:
    """Return the weight that changes nothing: 0 where the norm adds 1 to it, else 1."""
    return 0.0 if definition.constants["unit_offset"] else 1.0


def wrong_weights(definition: Definition) -> Mapping[str, Change]:
    """Return name → weights of another head norm, by name of the defect."""
    neutral = neutral_weight(definition)
    other, sign = ("without", -1.0) if not neutral else ("with", 1.0)

    def weights(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
        return lambda i: {n: change(i[n].float()).to(i[n].dtype) for n in NAMES}

    return {
        "weights of q and k swapped": lambda i: {
            "q_weight": i["k_weight"],
            "k_weight": i["q_weight"],
        },
        "weights missing": weights(lambda w: torch.full_like(w, neutral)),
        "weights of the next dimension": weights(lambda w: w.roll(1)),
        f"weights {other} +1": weights(lambda w: w + sign),
    }


def wrong_divisors(definition: Definition) -> Mapping[str, Divisor]:
    """Return the divisors of wrong norms by name of the defect."""
    eps, size = definition.constants["eps"], definition.axes["head_size"]
    return {
        "eps ten times too large": lambda ms: torch.sqrt(ms + 10.0 * eps),
        "eps missing": torch.sqrt,
        "eps outside the root": lambda ms: torch.sqrt(ms) + eps,
        "sum instead of mean": lambda ms: torch.sqrt(ms * size + eps),
        "norm missing": torch.ones_like,
        "all heads normalised together": lambda ms: torch.sqrt(
            ms.mean(dim=-2, keepdim=True) + eps
        ),
    }


def divided_otherwise(
    normalised: torch.Tensor, heads: torch.Tensor, eps: float, divisor: Divisor
) -> torch.Tensor:
    """Return normalised heads as another divisor would give them; `heads` are the input."""
    ms = heads.double().square().mean(dim=-1, keepdim=True)
    factor = torch.sqrt(ms + eps) / divisor(ms)
    return (normalised.double() * factor).to(normalised.dtype)
