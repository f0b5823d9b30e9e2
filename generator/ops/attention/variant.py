"""What attention does besides a causal softmax over all keys: window, cap, mask."""

from __future__ import annotations

from dataclasses import dataclass

from generator.testing.definition import Definition


@dataclass(frozen=True)
class Variant:
    """Hold the constants of attention that no interface carries.

    A query at position p sees the keys p - window_left … p; a negative window_left
    means all keys up to p. A logit l becomes soft_cap · tanh(l / soft_cap), where
    soft_cap is positive. Without the causal mask every query sees every key.
    """

    window_left: int = -1
    soft_cap: float = 0.0
    causal: bool = True


def variant_of(definition: Definition) -> Variant:
    """Return the variant that a definition's name states, plain attention where none."""
    constants = definition.constants
    return Variant(
        constants.get("window_left", -1),
        float(constants.get("logits_soft_cap", 0.0)),
        not constants.get("noncausal", False),
    )


def has_sinks(definition: Definition) -> bool:
    """Return whether the softmax has one logit more a head, the input `sinks`."""
    return "sinks" in definition.interface.inputs
