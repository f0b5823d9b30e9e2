"""Definitions needed by one module of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Need:
    """A definition that a module needs.

    `name` is the definition that families make. `also` are names of the dataset that
    serve as well, if they have the constants: those that are part of a name are not
    part of every name. `constants` are those that the interface does not carry, with
    the model's values; `dtypes` are dtypes of inputs, by the input's name. `at` are the
    modules of transformers that it computes, by the end of their paths.
    """

    module: str
    op_type: str
    name: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    at: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that serves."""
        return (self.name, *self.also)


def norm(
    module: str,
    size: int,
    constants: Mapping[str, Any],
    *at: str,
    fused: bool = False,
) -> Need:
    """Return the need of an RMS norm over `size` columns.

    A fused one adds the residual first, and returns the sum as well. FlashInfer asks
    for a name without eps, which serves the models that have the definition's.
    """
    kernel = "fused_add_rmsnorm_residual" if fused else "rmsnorm"
    prefix = "gemma_" if constants["unit_offset"] else ""
    name = f"{prefix}{kernel}_eps_{exponent(constants['eps'])}_h{size}"
    # published for Gemma 3 without the word
    also = dict.fromkeys((f"{prefix}{kernel}_h{size}", f"{kernel}_h{size}"))
    return Need(module, "rmsnorm", name, constants, tuple(also), at=at)


def exponent(eps: float) -> str:
    """Return a name's word for a number: `1em5` of 1e-5."""
    digits, _, exponent = f"{eps:e}".partition("e-")
    return f"{float(digits):g}em{int(exponent)}".replace(".", "p")
