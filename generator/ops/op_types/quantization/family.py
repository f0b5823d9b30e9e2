"""Quantising ahead of float8 and fp4 products, and fp4 weights back to bfloat16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.quantization import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.products import rows
from generator.ops.workloads.structure import MEMORY_LIMIT

# captured gemms whose rows are a batch's tokens
DEEPSEEK, LLAMA, QWEN = "gemm_n256_k7168", "gemm_n28672_k4096", "gemm_n2048_k4096"
_DEEPSEEK = ("deepseek-v3", "deepseek-r1", "deepseek-v3.2", "kimi-k2")
_GPT_OSS = ("gpt-oss-20b", "gpt-oss-120b")
_HOPPER = (
    " On GPUs before compute capability 10 FlashInfer's kernel writes nothing to its "
    "outputs: there it is no source."
)


@dataclass(frozen=True)
class QuantizationKind:
    """One kind: its block, what its codes and scales are, its tags.

    A byte holds `packed` codes; `scale` is the dtype of a block's scale.
    """

    block: int
    description: str
    scale: str
    tags: tuple[str, ...]
    packed: int = 1
    dequantises: bool = False
    is_global: bool = False


_NVFP4 = ("quantization:nvfp4",)
_MXFP4 = ("quantization:mxfp4",)
KINDS = {
    "per_token_group_quant_fp8": QuantizationKind(
        128,
        "Quantise activations to float8_e4m3fn: the scale of each 128 elements of a row "
        "is their largest magnitude, at least 1e-10, divided by 448; the codes are the "
        "elements divided by it.",
        "float32",
        (
            "quantization:float8_e4m3fn",
            "fi_api:flashinfer.quantization.per_token_group_quant_8bit",
        ),
    ),
    "mxfp8_quantize": QuantizationKind(
        32,
        "Quantise activations to mxfp8: each 32 elements of a row share a power of two, "
        "a 448th of their largest magnitude rounded up; its exponent plus 127 is the "
        "scale's byte, 0 for a block of zeros. Scales lie row by row." + _HOPPER,
        "int8",
        ("quantization:mxfp8", "gpu:sm100", "layout:linear"),
    ),
    "mxfp4_quantize": QuantizationKind(
        32,
        "Quantise activations to mxfp4: each 32 elements of a row share a power of two, "
        "a sixth of their largest magnitude rounded up; its exponent plus 127 is the "
        "scale's byte, 0 for a block of zeros. Codes are e2m1, ties go to even; the "
        "first of two is in the lower half of a byte. Scales lie row by row." + _HOPPER,
        "int8",
        (*_MXFP4, "gpu:sm100", "layout:linear"),
        packed=2,
    ),
    "nvfp4_quantize": QuantizationKind(
        16,
        "Quantise activations to nvfp4: the scale of each 16 elements of a row is a "
        "sixth of their largest magnitude times global_scale, as float8_e4m3fn. Codes "
        "are e2m1 of the elements times global_scale divided by the stored scale, ties "
        "go to even; the first of two is in the lower half of a byte. Scales lie row by "
        "row." + _HOPPER,
        "float8_e4m3fn",
        (*_NVFP4, "gpu:sm100", "layout:linear"),
        packed=2,
        is_global=True,
    ),
    "mxfp4_dequantize": QuantizationKind(
        32,
        "Values of mxfp4: the e2m1 code, the first of two in the lower half of a byte, "
        "times two to the power of the scale's byte less 127, one for 32 elements.",
        "int8",
        _MXFP4,
        packed=2,
        dequantises=True,
    ),
    "nvfp4_dequantize": QuantizationKind(
        16,
        "Values of nvfp4: the e2m1 code, the first of two in the lower half of a byte, "
        "times the scale of its 16 elements, times global_scale, which is the reciprocal "
        "of the factor that they were quantised with.",
        "float8_e4m3fn",
        (*_NVFP4, "fi_api:flashinfer.quantization.nvfp4_kv_dequantize"),
        packed=2,
        dequantises=True,
        is_global=True,
    ),
}
_GROUPS = "per_token_group_quant_fp8"
# kind, length of a row, models that have it, where batches come from
ROWS = (
    (_GROUPS, 1536, _DEEPSEEK, DEEPSEEK),
    (_GROUPS, 2048, _DEEPSEEK, DEEPSEEK),
    (_GROUPS, 3072, ("minimax-m2",), QWEN),
    (_GROUPS, 7168, _DEEPSEEK, DEEPSEEK),
    ("mxfp8_quantize", 2880, _GPT_OSS, QWEN),
    ("mxfp8_quantize", 4096, ("llama-3.1-8b",), LLAMA),
    ("mxfp4_quantize", 2880, _GPT_OSS, QWEN),
    ("mxfp4_quantize", 4096, ("llama-3.1-8b",), LLAMA),
    ("nvfp4_quantize", 4096, ("llama-3.1-8b",), LLAMA),
    ("nvfp4_quantize", 7168, ("deepseek-r1",), DEEPSEEK),
    ("mxfp4_dequantize", 2880, _GPT_OSS, QWEN),
    ("nvfp4_dequantize", 7168, ("deepseek-r1",), DEEPSEEK),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(quantization_spec(*row) for row in ROWS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind, length = name.rpartition("_k")[0], sizes.get("k", 0)
    if kind not in KINDS or not length or length % KINDS[kind].block:
        return None
    return quantization_spec(kind, length, (model,), QWEN)


def quantization_spec(
    name: str, length: int, models: tuple[str, ...], captured_from: str
) -> Spec:
    """Return the definition of one kind for rows of one length."""
    kind = KINDS[name]
    wide = Tensor(("M", "K"), "bfloat16", "Values, one row a token.")
    codes = Tensor(("M", "K"), "float8_e4m3fn", "One code an element.")
    if kind.packed == 2:
        codes = Tensor(
            ("M", "K_packed"), "int8", "Two codes a byte, whose bits these are."
        )
    scales = Tensor(("M", "num_blocks"), kind.scale, "One scale a block.")
    first, second = ("x_q", "x_s") if name == _GROUPS else ("quantized", "scales")
    pair = {first: codes, second: scales}
    inputs = pair if kind.dequantises else {"x" if name == _GROUPS else "input": wide}
    if kind.is_global:
        factor = Tensor(None, "float32", "Factor of all elements.")
        inputs = {**inputs, "global_scale": factor}
    packed = {"K_packed": Axis("Bytes of a row.", length // 2)}
    return Spec(
        name=f"{name}_k{length}",
        description=kind.description,
        op_type="quantization",
        tags=(
            *(f"model:{model}" for model in models),
            *kind.tags,
            *SPEC.kernel_tags(f"{name}_"),
        ),
        axes={
            "M": Axis("Number of rows."),
            "K": Axis("Length of a row.", length),
            **(packed if kind.packed == 2 else {}),
            "num_blocks": Axis("Blocks of a row.", length // kind.block),
        },
        inputs=inputs,
        outputs={"output": wide} if kind.dequantises else pair,
        constraints=(
            *(("K_packed == K // 2",) if kind.packed == 2 else ()),
            f"num_blocks == K // {kind.block}",
        ),
        reference=reference_text("quantization", name),
        captured_from=captured_from,
        captured_op_type="gemm",
        scalars={"global_scale": 0.002 if kind.dequantises else 512.0},
        structure=rows,
        fits=_fits,
    )


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the rows fits in memory."""
    return 4 * captured.axes["M"] * spec.const("K") <= MEMORY_LIMIT
