"""Variants of attention beside the causal softmax: window, cap, mask, bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_judge.definition import Definition


@dataclass(frozen=True)
class Variant:
    """The constants of attention that no interface carries.

    A query at position p sees the keys p - window_left … p; a negative window_left
    means all keys up to p. A logit l becomes soft_cap · tanh(l / soft_cap), where
    soft_cap is positive. Without the causal mask every query sees every key, or those
    that the input `custom_mask` says. `slopes`, one a query head, are those of ALiBi:
    the logit of the key at position j grows by slope · (j - p).
    """

    window_left: int = -1
    soft_cap: float = 0.0
    causal: bool = True
    slopes: tuple[float, ...] = ()


def variant_of(definition: Definition) -> Variant:
    """Return the variant that a definition's name states, plain attention where none."""
    constants = definition.constants
    biased = constants.get("alibi", False)
    return Variant(
        constants.get("window_left", -1),
        float(constants.get("logits_soft_cap", 0.0)),
        not (constants.get("noncausal", False) or constants.get("custom_mask", False)),
        alibi_slopes(definition.axes["num_qo_heads"]) if biased else (),
    )


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """Return ALiBi's slopes: a geometric series from 2^(-8/n) for n heads.

    Where the number of heads is no power of 2, n is the largest one below it, and the
    other heads have every second slope of 2n heads. Source: get_slopes of Press, Smith
    and Lewis, "Train short, test long", ICLR 2022.
    """
    whole = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * (h + 1) / whole) for h in range(whole)]
    between = [2.0 ** (-8.0 * (h + 1) / (2 * whole)) for h in range(2 * whole)]
    return (*slopes, *between[0::2][: heads - whole])


def has_sinks(definition: Definition) -> bool:
    """Return whether the softmax has one logit more a head, the input `sinks`."""
    return "sinks" in definition.interface.inputs


def has_mask(definition: Definition) -> bool:
    """Return whether the input `custom_mask` says which keys a query sees."""
    return bool(definition.constants.get("custom_mask", False))
