"""Linear layers of models in float8: DeepSeek's blocks of 128, or a scale a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.gemm_fp8 import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.products import rows, rows_fit

BLOCK = 128
# captured gemms whose rows are a batch's tokens
DEEPSEEK, LLAMA, QWEN = "gemm_n256_k7168", "gemm_n28672_k4096", "gemm_n2048_k4096"
_DEEPSEEK = ("deepseek-v3", "deepseek-r1", "deepseek-v3.2")
_KIMI = ("kimi-k2",)
_BOTH = (*_DEEPSEEK, *_KIMI)
_DTYPE = "float8_e4m3fn"


@dataclass(frozen=True)
class Float8Layer:
    """The constants of one definition; a `batch` is one of matrices."""

    n: int
    k: int
    models: tuple[str, ...]
    use: str
    captured_from: str = DEEPSEEK
    batch: int = 0


LAYERS = (
    Float8Layer(1536, 7168, _BOTH, "compression of the query"),
    Float8Layer(24576, 1536, _DEEPSEEK, "query projection"),
    Float8Layer(12288, 1536, _KIMI, "query projection"),
    Float8Layer(576, 7168, _BOTH, "compression of key and value"),
    Float8Layer(32768, 512, _DEEPSEEK, "key and value projection"),
    Float8Layer(16384, 512, _KIMI, "key and value projection"),
    Float8Layer(7168, 16384, _DEEPSEEK, "attention output projection"),
    Float8Layer(7168, 8192, _KIMI, "attention output projection"),
    Float8Layer(36864, 7168, _BOTH, "fused gate and up projection of dense layers"),
    Float8Layer(7168, 18432, _BOTH, "down projection of dense layers"),
    Float8Layer(4096, 7168, _BOTH, "fused gate and up projection of the shared expert"),
    Float8Layer(7168, 2048, _BOTH, "down projection of the shared expert"),
    Float8Layer(
        8192, 3072, ("minimax-m2",), "fused query, key and value projection", QWEN
    ),
    Float8Layer(3072, 6144, ("minimax-m2",), "attention output projection", QWEN),
    Float8Layer(
        512, 128, _DEEPSEEK, "queries of 128 heads into the latent space", batch=128
    ),
    Float8Layer(
        128, 512, _DEEPSEEK, "outputs of 128 heads from the latent space", batch=128
    ),
    Float8Layer(512, 128, _KIMI, "queries of 64 heads into the latent space", batch=64),
    Float8Layer(128, 512, _KIMI, "outputs of 64 heads from the latent space", batch=64),
    Float8Layer(6144, 4096, ("llama-3.1-8b",), "query, key and value", LLAMA, 1),
    Float8Layer(28672, 4096, ("llama-3.1-8b",), "gate and up", LLAMA, 1),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(layer_spec(layer) for layer in LAYERS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if not name.startswith("fp8_blockscale_gemm_") or sizes["k"] % BLOCK:
        return None
    return layer_spec(Float8Layer(sizes["n"], sizes["k"], (model,), "linear layer"))


def layer_spec(layer: Float8Layer) -> Spec:
    """Return the definition for one set of constants."""
    models = (f"model:{model}" for model in layer.models)
    tags = (*models, f"quantization:{_DTYPE}")
    return (_batched if layer.batch else _blockwise)(layer, tags)


def _blockwise(layer: Float8Layer, tags: tuple[str, ...]) -> Spec:
    k_blocks, n_blocks = layer.k // BLOCK, -(-layer.n // BLOCK)
    return Spec(
        name=f"fp8_blockscale_gemm_sm90_n{layer.n}_k{layer.k}",
        description=(
            f"Matrix product out = input @ weight.T of float8 values: {layer.use}, "
            f"{layer.k} to {layer.n} features. Each {BLOCK} elements of a row of the "
            f"input share a scale, and each block of {BLOCK} x {BLOCK} of the weight. "
            "In float32, rounded to bfloat16 at the end."
        ),
        op_type="gemm_fp8",
        tags=(*tags, "fi_api:flashinfer.gemm.fp8_blockscale_gemm_sm90"),
        axes={
            "M": Axis("Number of tokens."),
            "N": Axis("Output features.", layer.n),
            "K": Axis("Input features.", layer.k),
            "num_k_blocks": Axis(f"Blocks of {BLOCK} along K.", k_blocks),
            "num_n_blocks": Axis(
                f"Blocks of {BLOCK} along N, the last maybe shorter.", n_blocks
            ),
        },
        inputs={
            "input": Tensor(("M", "K"), _DTYPE, "Activations, one row a token."),
            "weight": Tensor(("N", "K"), _DTYPE, "One row an output feature."),
            "input_scale": Tensor(
                ("M", "num_k_blocks"), "float32", "Factor of each block of a row."
            ),
            "weight_scale": Tensor(
                ("num_n_blocks", "num_k_blocks"), "float32", "Factor of each block."
            ),
        },
        outputs={"out": Tensor(("M", "N"), "bfloat16", "The product.")},
        constraints=("num_k_blocks == K // 128", "num_n_blocks == (N + 127) // 128"),
        reference=reference_text("gemm_fp8", "fp8_blockscale_gemm"),
        captured_from=layer.captured_from,
        captured_op_type="gemm",
        structure=rows,
        fits=rows_fit,
    )


def _batched(layer: Float8Layer, tags: tuple[str, ...]) -> Spec:
    return Spec(
        name=f"bmm_fp8_b{layer.batch}_n{layer.n}_k{layer.k}",
        description=(
            f"Matrix products C = A @ B.T of float8 values: {layer.use}, {layer.k} to "
            f"{layer.n} features. A and B have one scale each. In float32, rounded to "
            "bfloat16 at the end. FlashInfer's bmm_fp8 takes B transposed."
        ),
        op_type="gemm_fp8",
        tags=(*tags, *SPEC.kernel_tags("bmm_fp8_")),
        axes={
            "batch_size": Axis("Number of products.", layer.batch),
            "M": Axis("Number of tokens."),
            "N": Axis("Output features.", layer.n),
            "K": Axis("Input features.", layer.k),
        },
        inputs={
            "A": Tensor(("batch_size", "M", "K"), _DTYPE, "One row a token."),
            "B": Tensor(("batch_size", "N", "K"), _DTYPE, "One row an output feature."),
            "A_scale": Tensor(None, "float32", "Factor of all elements of A."),
            "B_scale": Tensor(None, "float32", "Factor of all elements of B."),
        },
        outputs={"C": Tensor(("batch_size", "M", "N"), "bfloat16", "The products.")},
        reference=reference_text("gemm_fp8", "bmm_fp8"),
        captured_from=layer.captured_from,
        captured_op_type="gemm",
        scalars={"A_scale": 0.02, "B_scale": 0.0005},
        structure=rows,
        fits=rows_fit,
    )
