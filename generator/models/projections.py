"""The products of linear layers, in the data type that the model's layers have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generator.models.config import Config
from generator.models.need import Need
from generator.models.parallel import Deployment
from generator.problems.messages import show

FP8_BLOCK = "fp8"
MXFP4 = "mxfp4"
BLOCK = 128
BF16, F16 = "bfloat16", "float16"
_DTYPES = {BF16: BF16, F16: F16, "float32": F16}
"""A config's dtype → what engines compute in: SGLang makes float16 of float32."""
_EXCLUDED = ("modules_to_not_convert", "ignored_layers")
# of a quantisation's keys: those that are read, and values that say nothing more
_KNOWN = (*_EXCLUDED, "quant_method", "weight_block_size", "activation_scheme")
_USUAL = (("fmt", "e4m3"), ("scale_fmt", "float"))
_NOTHING: tuple[Any, ...] = (None, False, [], {})
_POWERS = "scales of float8 that are powers of two"


def model_dtype(config: Config) -> str:
    """Return the data type of weights and activations. Raises Failure for another one."""
    if config.architecture.unit_offset and config.architecture.scaled:
        # SGLang's exception: Gemma overflows in float16
        known = {**_DTYPES, "float32": BF16}
    else:
        known = _DTYPES
    return config.word("dtype", "torch_dtype", known=known, default=BF16)


def quantisation(config: Config) -> str:
    """Return how weights are quantised: empty, or one of the names above.

    Raises Failure for another quantisation.
    """
    stated = config.get("quantization_config")
    if stated is None:
        return ""
    method = stated.get("quant_method") if isinstance(stated, dict) else None
    if method == FP8_BLOCK and stated.get("weight_block_size") == [BLOCK, BLOCK]:
        if stated.get("activation_scheme", "dynamic") != "dynamic":
            why = f"is {show(stated['activation_scheme'])}: only dynamic is known"
            config.refuse("quantization_config.activation_scheme", why)
        return FP8_BLOCK
    if method == MXFP4:
        return MXFP4
    why = f"is {show(method)}: only fp8 in blocks of 128 x 128, and mxfp4, are known"
    config.refuse("quantization_config.quant_method", why)


@dataclass(frozen=True)
class Projections:
    """The definitions of linear layers by their features, output first.

    `layers` are the numbers of those that have them, empty outside of layers.
    """

    config: Config
    deployment: Deployment
    layers: frozenset[int] = frozenset()

    def linear(
        self,
        module: str,
        n: int,
        k: int,
        *at: str,
        parts: Sequence[int] = (),
        divided: str = "",
        bias: bool = False,
    ) -> Iterator[Need]:
        """Yield a layer's product, in float8 where the model's layers are.

        `parts` are the products that are fused in it, `divided` is the side, "n" or
        "k", that GPUs share, `at` transformers' modules. Raises Failure where blocks of
        float8 don't divide what a GPU has.
        """
        if quantisation(self.config) != FP8_BLOCK:
            yield self.plain(module, n, k, *at, bias=bias)
            return
        excluded = self.excluded(at)
        if excluded is None or (self.layers and excluded >= self.layers):
            yield self.plain(module, n, k, *at, bias=bias)
            return
        if excluded & self.layers:
            where = f"{module}, in {len(excluded & self.layers)} layers"
            yield self.plain(where, n, k, *at, bias=bias)
        self._check_blocks(module, parts or (n,), k, divided)
        yield quantised(f"{module}, input to 8 bits", k)
        word = "bias_" if bias else ""
        name = f"fp8_blockscale_gemm_sm90_{word}n{n}_k{k}"
        yield Need(module, "gemm_fp8", name, at=at)

    def plain(self, module: str, n: int, k: int, *at: str, bias: bool = False) -> Need:
        """Return the product of a layer that is not quantised."""
        word = "" if model_dtype(self.config) == F16 else "bf16_"
        word += "bias_" if bias else ""
        return Need(module, "gemm", f"gemm_{word}n{n}_k{k}", at=at)

    def _check_blocks(
        self, module: str, parts: Sequence[int], k: int, divided: str
    ) -> None:
        """Refuse what SGLang's fp8.py refuses: shards that are no whole blocks."""
        tp = self.deployment.tp
        checked = [*parts] if len(parts) > 1 or (tp > 1 and divided == "n") else []
        checked += [k] if tp > 1 and divided == "k" else []
        for size in checked:
            if size % BLOCK:
                why = f"{module}: {size} of a GPU at tp {tp} is no multiple of {BLOCK}"
                self.config.refuse("quantization_config.weight_block_size", why)

    def excluded(self, at: Sequence[str]) -> frozenset[int] | None:
        """Return the layers whose modules are left as they are; None for all of them."""
        stated = self.config.get("quantization_config")
        layers: set[int] = set()
        for entry in _entries(stated):
            number = re.search(r"(?:^|\.)layers\.(\d+)\.", entry)
            end = entry[number.end() :] if number else entry.removeprefix("model.")
            if any(_is_part(path, end) for path in at):
                if number is None:
                    return None
                layers.add(int(number[1]))
        return frozenset(layers)


def unplaced_of_quantisation(config: Config) -> list[str]:
    """Return what a quantisation states that no definition has, a key each."""
    stated = config.get("quantization_config")
    if not isinstance(stated, dict):
        return []
    return [
        _POWERS
        if (key, value) == ("scale_fmt", "ue8m0")
        else f"what {show(f'quantization_config.{key}')} changes"
        for key, value in sorted(stated.items())
        if not (key in _KNOWN or value in _NOTHING or (key, value) in _USUAL)
    ]


def quantised(module: str, k: int) -> Need:
    """Return the need of rows of k values in float8, a scale for each block of 128."""
    return Need(module, "quantization", f"per_token_group_quant_fp8_k{k}")


def _is_part(path: str, end: str) -> bool:
    """Return whether what an entry names, behind its layer, is or has a module."""
    return (
        f".{end}".endswith(f".{path}")
        or f".{path}".endswith(f".{end}")
        or path.startswith(f"{end}.")
    )


def _entries(stated: Any) -> list[str]:
    lists = [stated.get(key) for key in _EXCLUDED]
    return [e for entries in lists for e in entries or [] if isinstance(e, str)]
