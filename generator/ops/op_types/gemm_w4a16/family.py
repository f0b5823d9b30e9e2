"""Linear layers of models with int4 weights, as AWQ, GPTQ and PyTorch pack them."""

from __future__ import annotations

from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.products import rows, rows_fit

# captured gemms whose rows are a batch's tokens
LLAMA, QWEN = "gemm_n28672_k4096", "gemm_n2048_k4096"
GROUP = 128
AWQ, GPTQ, INT4PACK = "w4a16_awq", "w4a16_gptq", "w4a16_int4pack"
QKV, OUT = "fused query, key and value projection", "attention output projection"
UP, DOWN = "fused gate and up projection", "down projection"
_TEXTS = {
    AWQ: (
        " in AWQ's layout: a word of qweight has eight columns of a row of the weight, "
        "column j at bit 4 * (0, 4, 1, 5, 2, 6, 3, 7)[j], and one of qzeros eight zeros "
        "alike. A weight is (code - zero) * scale rounded to float16."
    ),
    GPTQ: (
        " in GPTQ's layout, without an order of activations: a word of qweight has eight "
        "rows of a column of the weight, the first in the lowest bits, a word of qzeros "
        "eight columns, each one less than the zero. A weight is (code - zero) * scale "
        "rounded to float16."
    ),
    INT4PACK: (
        " as PyTorch's int4 kernel takes them before it packs: the first of two codes is "
        "in the upper half of a byte. A weight is (code - 8) * scale + zero rounded to "
        "bfloat16."
    ),
}


@dataclass(frozen=True)
class PackedLayer:
    """The features of a layer of one of `tp` devices."""

    n: int
    k: int
    use: str
    model: str
    captured_from: str
    tp: int


def _layers(
    model: str, captured_from: str, tp: int, *sizes: int
) -> tuple[PackedLayer, ...]:
    """Return the four layers of a model: their features, out and in."""
    uses = (QKV, OUT, UP, DOWN)
    pairs = zip(sizes[::2], sizes[1::2], uses, strict=True)
    return tuple(
        PackedLayer(n, k, use, model, captured_from, tp) for n, k, use in pairs
    )


_LLAMA_70B = _layers(
    "llama-3.3-70b", LLAMA, 8, 1280, 8192, 8192, 1024, 7168, 8192, 8192, 3584
)
_QWEN_7B = _layers("qwen2.5-7b", QWEN, 4, 1152, 3584, 3584, 896, 9472, 3584, 3584, 4736)
_LLAMA_8B = _layers(
    "llama-3.1-8b", LLAMA, 4, 1536, 4096, 4096, 1024, 7168, 4096, 4096, 3584
)
LAYERS = (
    (AWQ, (*_LLAMA_70B, *_QWEN_7B)),
    (GPTQ, (*_LLAMA_70B, *_QWEN_7B)),
    (INT4PACK, _LLAMA_8B),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(layer_spec(kind, layer) for kind, some in LAYERS for layer in some)


def layer_spec(kind: str, layer: PackedLayer) -> Spec:
    """Return the definition of one layout for a layer."""
    dtype = "bfloat16" if kind == INT4PACK else "float16"
    axes, inputs = _weights(kind, layer)
    return Spec(
        name=f"{kind}_n{layer.n}_k{layer.k}",
        description=(
            f"Matrix product of {dtype} activations and int4 weights{_TEXTS[kind]} "
            f"{GROUP} rows share zero and scale. Sums in float32, rounded to {dtype} at "
            f"the end: {layer.use}, {layer.k} to {layer.n} features."
        ),
        op_type="gemm_w4a16",
        tags=(f"model:{layer.model}", "quantization:int4", f"tp:{layer.tp}"),
        axes={
            "M": Axis("Number of tokens."),
            "N": Axis("Output features.", layer.n),
            "K": Axis("Input features.", layer.k),
            "num_groups": Axis("Groups along K.", layer.k // GROUP),
            **axes,
        },
        inputs={
            "x": Tensor(("M", "K"), dtype, "Activations, one row a token."),
            **inputs,
        },
        outputs={
            "C" if kind == INT4PACK else "out": Tensor(
                ("M", "N"), dtype, "The product."
            )
        },
        constraints=(f"num_groups == K // {GROUP}", *_LENGTHS[kind]),
        reference=reference_text("gemm_w4a16", kind),
        captured_from=layer.captured_from,
        captured_op_type="gemm",
        structure=rows,
        fits=rows_fit,
    )


_LENGTHS = {
    AWQ: ("words_n == N // 8",),
    GPTQ: ("words_k == K // 8", "words_n == N // 8"),
    INT4PACK: ("bytes_k == K // 2", "two == 2"),
}


def _weights(
    kind: str, layer: PackedLayer
) -> tuple[dict[str, Axis], dict[str, Tensor]]:
    """Return the axes of packed weights, and the inputs."""
    words_n = {"words_n": Axis("Words along N.", layer.n // 8)}
    if kind == INT4PACK:
        return {
            "two": Axis("Scale and zero.", 2),
            "bytes_k": Axis("Bytes along K.", layer.k // 2),
        }, {
            "codes": Tensor(("N", "bytes_k"), "int8", "Two codes a byte."),
            "scales_and_zeros": Tensor(
                ("num_groups", "N", "two"),
                dtype="bfloat16",
                description="Of each group.",
            ),
        }
    zeros = Tensor(("num_groups", "words_n"), "int32", "Eight zeros a word.")
    scales = Tensor(("num_groups", "N"), "float16", "Factors of groups.")
    shape = ("K", "words_n") if kind == AWQ else ("words_k", "N")
    words_k = {"words_k": Axis("Words along K.", layer.k // 8)} if kind == GPTQ else {}
    return {**words_n, **words_k}, {
        "qweight": Tensor(shape, "int32", "Eight codes a word."),
        "qzeros": zeros,
        "scales": scales,
    }
