"""Dense models quantised as W4A8: int4 weights in groups of 128, float8 activations."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure
from generator.ops.workloads.tokens import LLAMA

GROUP = 128
_SCALE = 0.03125
# features out and in: models, tp
PRODUCTS = {
    (6144, 4096): (("llama-3.1-8b",), 1),
    (4096, 4096): (("llama-3.1-8b",), 1),
    (28672, 4096): (("llama-3.1-8b",), 1),
    (4096, 14336): (("llama-3.1-8b",), 1),
    (1280, 8192): (("llama-3.1-70b", "llama-3.3-70b"), 8),
    (8192, 1024): (("llama-3.1-70b", "llama-3.3-70b"), 8),
    (7168, 8192): (("llama-3.1-70b", "llama-3.3-70b"), 8),
    (8192, 3584): (("llama-3.1-70b", "llama-3.3-70b"), 8),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        product_spec(n, k, models, tp) for (n, k), (models, tp) in PRODUCTS.items()
    )


def product_spec(n: int, k: int, models: tuple[str, ...], tp: int) -> Spec:
    """Return the definition for one weight."""
    return Spec(
        name=f"w4a8_fp8_n{n}_k{k}",
        description=(
            "Product of e4m3 activations, of one scale, and 4-bit weights, of a scale for"
            f" each {GROUP} terms of an output. A byte has two weights, numbers from -8 to"
            " 7 in two's complement: the lower four bits are of the even term. In float32,"
            " rounded once to bfloat16."
        ),
        op_type="gemm_w4a8",
        tags=(
            *(f"model:{model}" for model in models),
            *([f"tp:{tp}"] if tp > 1 else []),
        ),
        axes={
            "M": Axis("Rows of the activations."),
            "N": Axis("Output features.", n),
            "K": Axis("Input features.", k),
            "half_k": Axis("Bytes of an output's weights.", k // 2),
            "num_groups": Axis("Groups of an output's weights.", k // GROUP),
        },
        inputs={
            "a": Tensor(("M", "K"), "float8_e4m3fn", "Activations over their scale."),
            "qweight": Tensor(("N", "half_k"), "int8", "Two weights a byte."),
            "w_scale": Tensor(("N", "num_groups"), "bfloat16", "The groups' scales."),
            "a_scale": Tensor(None, "float32", "The activations' scale."),
        },
        outputs={"out": Tensor(("M", "N"), "bfloat16", "The product.")},
        constraints=("half_k == K // 2", f"num_groups == K // {GROUP}"),
        reference=reference_text("gemm_w4a8", "w4a8_fp8"),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=rows,
        fits=rows_fit,
    )


def rows(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the captured gemm's rows, and a scale of calibrated activations."""
    scale = _SCALE * rng.randint(4, 64) / 16
    return Structure({"M": captured.axes["M"]}, scalars={"a_scale": scale})


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether float32 copies of activations and outputs fit in memory."""
    most = max(spec.const("N"), spec.const("K"))
    return 4 * captured.axes["M"] * most <= MEMORY_LIMIT
