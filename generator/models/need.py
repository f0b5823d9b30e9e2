"""What a module of a model needs, and the products of its linear layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.models.config import Config
from generator.problems.messages import show

FP8_BLOCK = "fp8"
MXFP4 = "mxfp4"
_BLOCK = [128, 128]


@dataclass(frozen=True)
class Need:
    """Name the definition that a module needs.

    `constants` are those that the definition's interface does not carry, with the
    model's values. `stated` is another name that serves: one that states these
    constants, since a definition of `name` may be another model's, or another dtype.
    """

    module: str
    op_type: str
    name: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    stated: str = ""


def norm(
    module: str, size: int, constants: Mapping[str, Any], *, fused: bool = False
) -> Need:
    """Return the need of an RMS norm over `size` columns."""
    kernel = "fused_add_rmsnorm" if fused else "rmsnorm"
    digits, _, exponent = f"{constants['eps']:e}".partition("e-")
    stated = f"{kernel}_eps_{float(digits):g}em{int(exponent)}_h{size}"
    if constants["unit_offset"]:
        stated = f"gemma_{kernel}_h{size}"
    return Need(module, "rmsnorm", f"{kernel}_h{size}", constants, stated)


def quantisation(config: Config) -> str:
    """Return how weights are quantised: empty, or one of the names above.

    Raises Failure for another quantisation.
    """
    stated = config.get("quantization_config")
    if stated is None:
        return ""
    method = stated.get("quant_method") if isinstance(stated, dict) else None
    if method == FP8_BLOCK and stated.get("weight_block_size") == _BLOCK:
        return FP8_BLOCK
    if method == MXFP4:
        return MXFP4
    why = f"is {show(method)}: only fp8 in blocks of 128 x 128, and mxfp4, are known"
    config.refuse("quantization_config.quant_method", why)


@dataclass(frozen=True)
class Projections:
    """Name the definitions of linear layers by their features, output first."""

    config: Config

    def linear(self, module: str, n: int, k: int) -> Iterator[Need]:
        """Yield a layer's product, in float8 where the model's layers are."""
        if quantisation(self.config) == FP8_BLOCK:
            yield Need(module, "gemm_fp8", f"fp8_blockscale_gemm_sm90_n{n}_k{k}")
        else:
            yield from self.head(module, n, k)

    def head(self, module: str, n: int, k: int) -> Iterator[Need]:
        """Yield the product of a layer that is never quantised."""
        sizes = f"n{n}_k{k}"
        yield Need(module, "gemm", f"gemm_{sizes}", stated=f"gemm_bf16_{sizes}")
