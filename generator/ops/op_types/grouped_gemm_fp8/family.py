"""Experts of float8 models on one device of several: rows that routing has sorted."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.grouped_gemm_fp8 import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import (
    MEMORY_LIMIT,
    Structure,
    fits_a_blob,
    split,
)

# captured gemms whose rows are a batch's tokens
DEEPSEEK, QWEN = "gemm_n256_k7168", "gemm_n2048_k4096"
BLOCK = 128
CONTIGUOUS, MASKED = "grouped_gemm_fp8_contiguous", "grouped_gemm_fp8_masked"
# decodes alone have places for rows
_MOST_TOKENS = 2048
# fewer are divided among experts alike
_FEWEST_ROWS = 4
_FP8 = "float8_e4m3fn"
_TEXTS = {
    CONTIGUOUS: (
        "m_indices has the expert of each row; rows of an expert follow each other, in "
        "whole blocks of 128, of which those that pad have -1: there the output is 0 "
        "here, and kernels leave what they like."
    ),
    MASKED: (
        "An expert has max_m places, and its first masked_m rows are there; beyond them "
        "the output is 0 here, and kernels leave what they like."
    ),
}


@dataclass(frozen=True)
class GroupedMixture:
    """The figures of a model's experts; `ep` devices share them."""

    models: tuple[str, ...]
    experts: int
    top_k: int
    hidden: int
    intermediate: int
    ep: int
    captured_from: str

    @property
    def layers(self) -> tuple[tuple[int, int, str], ...]:
        """Return output and input features, and the use, of both products."""
        return (
            (2 * self.intermediate, self.hidden, "gate and up projections"),
            (self.hidden, self.intermediate, "down projections"),
        )


MIXTURES = (
    GroupedMixture(("deepseek-v3", "deepseek-r1"), 256, 8, 7168, 2048, 64, DEEPSEEK),
    GroupedMixture(("qwen3-235b-a22b",), 128, 8, 4096, 1536, 16, QWEN),
    GroupedMixture(("qwen3-30b-a3b",), 128, 8, 2048, 768, 8, QWEN),
    GroupedMixture(("minimax-m2",), 256, 8, 3072, 1536, 32, QWEN),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        product_spec(kind, mixture, *layer)
        for kind in (CONTIGUOUS, MASKED)
        for mixture in MIXTURES
        for layer in mixture.layers
    )


def product_spec(kind: str, mixture: GroupedMixture, n: int, k: int, use: str) -> Spec:
    """Return the definition of one product of a device's experts."""
    experts = mixture.experts // mixture.ep
    rows = ("M",) if kind == CONTIGUOUS else ("num_experts", "max_m")
    named = {"m_indices": Tensor(("M",), "int32", "The expert of each row, or -1.")}
    counts = {"masked_m": Tensor(("num_experts",), "int32", "Rows of each expert.")}
    lengths = {
        CONTIGUOUS: {"M": Axis("Rows of all experts, padding included.")},
        MASKED: {"max_m": Axis("Places for rows that an expert has.")},
    }
    name = f"{kind}_e{experts}_n{n}_k{k}"
    return Spec(
        name=name,
        description=(
            f"Rows of float8 activations times the weight of their expert: {use} of "
            f"{experts} of {mixture.experts} experts, {k} to {n} features. Each {BLOCK} "
            f"elements of a row share a scale, and each block of {BLOCK} x {BLOCK} of a "
            f"weight. In float32, rounded to bfloat16 at the end. {_TEXTS[kind]}"
        ),
        op_type="grouped_gemm_fp8",
        tags=(
            *(f"model:{model}" for model in mixture.models),
            f"quantization:{_FP8}",
            f"ep:{mixture.ep}",
            *SPEC.kernel_tags(name),
        ),
        axes={
            **lengths[kind],
            "num_experts": Axis("Experts of the device.", experts),
            "N": Axis("Output features.", n),
            "K": Axis("Input features.", k),
            "num_n_blocks": Axis(f"Blocks of {BLOCK} along N.", n // BLOCK),
            "num_k_blocks": Axis(f"Blocks of {BLOCK} along K.", k // BLOCK),
        },
        inputs={
            "a": Tensor((*rows, "K"), _FP8, "Activations, one row a token's expert."),
            "b": Tensor(("num_experts", "N", "K"), _FP8, "One weight an expert."),
            "a_scale": Tensor(
                (*rows, "num_k_blocks"), "float32", "Factor of each block of a row."
            ),
            "b_scale": Tensor(
                ("num_experts", "num_n_blocks", "num_k_blocks"),
                "float32",
                "Factor of each block of a weight.",
            ),
            **(named if kind == CONTIGUOUS else counts),
        },
        outputs={"out": Tensor((*rows, "N"), "bfloat16", "The products.")},
        constraints=(
            f"num_k_blocks == K // {BLOCK}",
            f"num_n_blocks == N // {BLOCK}",
        ),
        reference=reference_text("grouped_gemm_fp8", kind),
        captured_from=mixture.captured_from,
        captured_op_type="gemm",
        structure=_routed if kind == CONTIGUOUS else _placed,
        fits=_fits if kind == CONTIGUOUS else _decodes,
    )


def _counts(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> list[int]:
    """Return the rows of each expert of a device for a batch's tokens, 8 experts each."""
    experts = spec.const("num_experts")
    return split(_rows(spec, captured), experts, 0, rng)


def _rows(spec: Spec, captured: CapturedWorkload) -> int:
    (ep,) = (int(tag[3:]) for tag in spec.tags if tag.startswith("ep:"))
    return max(captured.axes["M"] * 8 // ep, 1)


def _routed(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the experts of rows, in whole blocks."""
    named: list[int] = []
    for expert, count in enumerate(_counts(spec, captured, rng)):
        named += [expert] * count + [-1] * (-count % BLOCK)
    return Structure({"M": len(named)}, {"m_indices": named})


def _placed(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the numbers of rows, and places for the largest in whole blocks."""
    counts = _counts(spec, captured, rng)
    return Structure({"max_m": -(-max(counts) // BLOCK) * BLOCK}, {"masked_m": counts})


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether numbers of experts fit in a blob, and float32 rows in memory."""
    few = _rows(spec, captured) < _FEWEST_ROWS
    most = _rows(spec, captured) + BLOCK * spec.const("num_experts")
    longest = max(spec.const("N"), spec.const("K"))
    return not few and fits_a_blob(4 * most) and 4 * most * longest <= MEMORY_LIMIT


def _decodes(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch is of a decode's size."""
    return _rows(spec, captured) >= _FEWEST_ROWS and captured.axes["M"] <= _MOST_TOKENS
