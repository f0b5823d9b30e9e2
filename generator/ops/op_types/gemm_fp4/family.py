"""Linear layers of models with fp4 weights and activations, as they are published."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.gemm_fp4 import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure

# captured gemms whose rows are a batch's tokens
DEEPSEEK, LLAMA = "gemm_n256_k7168", "gemm_n28672_k4096"
NVFP4, TILED, MXFP4 = "nvfp4_gemm", "nvfp4_gemm_swizzled", "mxfp4_gemm"
_WORDS = {NVFP4: ("nvfp4",), TILED: ("nvfp4", "swizzled"), MXFP4: ("mxfp4",)}
_BLOCKS = {NVFP4: 16, TILED: 16, MXFP4: 32}
_SCALES = {
    NVFP4: (
        "Each 16 codes of a row share a float8_e4m3fn scale, row by row, and alpha "
        "multiplies the product."
    ),
    TILED: (
        "Each 16 codes of a row share a float8_e4m3fn scale, and alpha multiplies the "
        "product. Scales lie as tensor cores take them, in tiles of 128 rows and 4 "
        "blocks: row r and block c of a tile at 16 * (r % 32) + 4 * (r // 32) + c. Rows "
        "of a that pad the last tile have scales, which mean nothing."
    ),
    MXFP4: (
        "Each 32 codes of a row share a power of two, whose exponent plus 127 is the "
        "scale's byte, row by row."
    ),
}


@dataclass(frozen=True)
class Fp4Layer:
    """The features of a layer of one of `tp` devices."""

    n: int
    k: int
    use: str
    model: str
    captured_from: str
    tp: int = 8


_LLAMA_70B = (
    Fp4Layer(
        1280, 8192, "fused query, key and value projection", "llama-3.3-70b", LLAMA
    ),
    Fp4Layer(8192, 1024, "attention output projection", "llama-3.3-70b", LLAMA),
    Fp4Layer(7168, 8192, "fused gate and up projection", "llama-3.3-70b", LLAMA),
    Fp4Layer(8192, 3584, "down projection", "llama-3.3-70b", LLAMA),
)
_SHARED = (
    Fp4Layer(512, 7168, "gate and up of the shared expert", "deepseek-r1", DEEPSEEK),
    Fp4Layer(
        7168, 256, "down projection of the shared expert", "deepseek-r1", DEEPSEEK
    ),
)
LAYERS = ((NVFP4, _LLAMA_70B), (TILED, (*_LLAMA_70B, *_SHARED)), (MXFP4, _LLAMA_70B))


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(layer_spec(kind, layer) for kind, some in LAYERS for layer in some)


def layer_spec(kind: str, layer: Fp4Layer) -> Spec:
    """Return the definition of one kind of scales for a layer."""
    block, tiled = _BLOCKS[kind], kind == TILED
    dtype = "int8" if kind == MXFP4 else "float8_e4m3fn"
    name = f"{kind}_n{layer.n}_k{layer.k}"
    factor = {"alpha": Tensor((), "float32", "Factor of the whole product.")}
    padded = {"padded_m": Axis("Rows of whole tiles of 128.")}
    return Spec(
        name=name,
        description=(
            f"Matrix product out = a @ b.T of e2m1 codes, the first of two in the lower "
            f"half of a byte: {layer.use}, {layer.k} to {layer.n} features. "
            f"{_SCALES[kind]} In float32, rounded to bfloat16 at the end. Kernels are of "
            f"compute capability 10 and later."
        ),
        op_type="gemm_fp4",
        tags=(
            f"model:{layer.model}",
            f"quantization:{'mxfp4' if kind == MXFP4 else 'nvfp4'}",
            "gpu:sm100",
            f"layout:{'swizzled' if tiled else 'linear'}",
            f"tp:{layer.tp}",
            *SPEC.kernel_tags(name),
        ),
        axes={
            "M": Axis("Number of tokens."),
            **(padded if tiled else {}),
            "N": Axis("Output features.", layer.n),
            "bytes_k": Axis("Bytes of a row of codes.", layer.k // 2),
            "num_k_blocks": Axis("Blocks of a row.", layer.k // block),
        },
        inputs={
            "a": Tensor(("M", "bytes_k"), "int8", "Activations, two codes a byte."),
            "b": Tensor(("N", "bytes_k"), "int8", "Weight, two codes a byte."),
            "a_scale": Tensor(
                ("padded_m" if tiled else "M", "num_k_blocks"), dtype, "Of each block."
            ),
            "b_scale": Tensor(("N", "num_k_blocks"), dtype, "Of each block."),
            **({} if kind == MXFP4 else factor),
        },
        outputs={"out": Tensor(("M", "N"), "bfloat16", "The product.")},
        constraints=(
            f"num_k_blocks == bytes_k // {block // 2}",
            *(("padded_m == (M + 127) // 128 * 128",) if tiled else ()),
        ),
        reference=reference_text("gemm_fp4", "gemm_fp4", _WORDS[kind]),
        captured_from=layer.captured_from,
        captured_op_type="gemm",
        structure=_tokens,
        fits=_fits,
    )


def _tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many rows as the captured gemm had."""
    rows = captured.axes["M"]
    return Structure({"M": rows, "padded_m": -(-rows // 128) * 128})


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the larger of input and output fits in memory."""
    longest = max(spec.const("N"), 2 * spec.const("bytes_k"))
    return 4 * captured.axes["M"] * longest <= MEMORY_LIMIT
