"""Linear layers of models with 8-bit weights and activations, as they are published."""

from __future__ import annotations

from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.products import rows, rows_fit

# captured gemms whose rows are a batch's tokens
LLAMA, QWEN = "gemm_n28672_k4096", "gemm_n2048_k4096"
QKV, OUT = "fused query, key and value projection", "attention output projection"
UP, DOWN = "fused gate and up projection", "down projection"
FP8, TENSOR, INT8, AZP, SUMS = (
    "w8a8_fp8",
    "w8a8_fp8_tensor",
    "w8a8_int8",
    "w8a8_int8_azp",
    "int8_mm",
)
_EIGHT_BITS = "Matrix product out = x @ weight.T of {dtype} codes: {use}, {k} to {n} "
_FEATURES = "features"
_SCALED = (
    ". A row of the activations, a token, has a scale, and a row of the weight, an output "
    "feature. The scales multiply sums, in float32; rounded to bfloat16 at the end."
)
_TEXTS = {
    FP8: _SCALED,
    TENSOR: (
        ". The activations have one scale and the weight one, both tensors without axes. "
        "The scales multiply sums, in float32; rounded to bfloat16 at the end."
    ),
    INT8: _SCALED,
    AZP: (
        ". A row of the activations has a scale and a zero, the code that stands for 0; a "
        "row of the weight has a scale. The scales multiply exact sums, in float32; "
        "rounded to bfloat16 at the end."
    ),
    SUMS: ", in int32 and exact, before any scale.",
}
_WORDS = {FP8: (), TENSOR: ("tensor",), INT8: (), AZP: ("azp",), SUMS: ()}


@dataclass(frozen=True)
class ScaledLayer:
    """The features of a layer of a model, of one of `tp` devices."""

    n: int
    k: int
    use: str
    model: str
    captured_from: str
    tp: int = 1


@dataclass(frozen=True)
class DenseModel:
    """The figures of a dense model's layers."""

    name: str
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    captured_from: str
    tp: int = 1
    head_dim: int = 128

    def layers(self) -> tuple[ScaledLayer, ...]:
        """Return the four linear layers of a device."""
        of_heads = self.heads * self.head_dim // self.tp
        of_kv = max(self.kv_heads // self.tp, 1) * self.head_dim
        inner = self.intermediate // self.tp
        sizes = (
            (of_heads + 2 * of_kv, self.hidden, QKV),
            (self.hidden, of_heads, OUT),
            (2 * inner, self.hidden, UP),
            (self.hidden, inner, DOWN),
        )
        return tuple(
            ScaledLayer(n, k, use, self.name, self.captured_from, self.tp)
            for n, k, use in sizes
        )


_LLAMA_8B = DenseModel("llama-3.1-8b", 4096, 32, 8, 14336, LLAMA)
_LLAMA_70B = DenseModel("llama-3.3-70b", 8192, 64, 8, 28672, LLAMA, tp=8)
_QWEN_32B = DenseModel("qwen3-32b", 5120, 64, 8, 25600, QWEN, tp=4)
_QWEN_7B = DenseModel("qwen2.5-7b", 3584, 28, 4, 18944, QWEN)
# of its dense layers; down and the attention's output are of one size on 8 devices
_GLM = DenseModel("glm-4.6", 5120, 96, 8, 12288, QWEN, tp=8)
# checkpoints of compressed-tensors have scales of channels and tokens, those of
# ModelOpt scales of tensors
PUBLISHED = (
    (FP8, _LLAMA_8B.layers()),
    (FP8, _LLAMA_70B.layers()),
    (FP8, _QWEN_32B.layers()),
    (FP8, _GLM.layers()[:3]),
    (TENSOR, _LLAMA_8B.layers()),
    (TENSOR, _LLAMA_70B.layers()),
    (INT8, _LLAMA_8B.layers()),
    (INT8, _QWEN_7B.layers()),
    (AZP, _LLAMA_8B.layers()),
    (SUMS, _LLAMA_8B.layers()[:2]),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(layer_spec(kind, layer) for kind, some in PUBLISHED for layer in some)


def layer_spec(kind: str, layer: ScaledLayer) -> Spec:
    """Return the definition of one kind of codes and scales for a layer."""
    dtype = "float8_e4m3fn" if kind in (FP8, TENSOR) else "int8"
    whole = Tensor((), "float32", "Factor of all elements.")
    scales = {
        "x_scale": Tensor(("M",), "float32", "Factor of each row of x."),
        "weight_scale": Tensor(("N",), "float32", "Factor of each row of weight."),
    }
    if kind == TENSOR:
        scales = dict.fromkeys(scales, whole)
    zeros = {"x_zero": Tensor(("M",), "int8", "The code of 0 in each row of x.")}
    exact = kind == SUMS
    text = _EIGHT_BITS.format(dtype=dtype, use=layer.use, k=layer.k, n=layer.n)
    return Spec(
        name=f"{kind}_n{layer.n}_k{layer.k}",
        description=f"{text}{_FEATURES}{_TEXTS[kind]}",
        op_type="gemm_w8a8",
        tags=(
            f"model:{layer.model}",
            f"quantization:{dtype}",
            *((f"tp:{layer.tp}",) if layer.tp > 1 else ()),
        ),
        axes={
            "M": Axis("Number of tokens."),
            "N": Axis("Output features.", layer.n),
            "K": Axis("Input features.", layer.k),
        },
        inputs={
            "x": Tensor(("M", "K"), dtype, "Activations, one row a token."),
            "weight": Tensor(("N", "K"), dtype, "One row an output feature."),
            **({} if exact else scales),
            **(zeros if kind == AZP else {}),
        },
        outputs={"total": Tensor(("M", "N"), "int32", "The sums.")}
        if exact
        else {"out": Tensor(("M", "N"), "bfloat16", "The product.")},
        reference=reference_text(
            "gemm_w8a8", kind.removesuffix("_tensor").removesuffix("_azp"), _WORDS[kind]
        ),
        captured_from=layer.captured_from,
        captured_op_type="gemm",
        structure=rows,
        fits=rows_fit,
    )
