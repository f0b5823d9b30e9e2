"""The linear layers of dense and mixture-of-experts models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.gemm import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.products import rows_fit
from generator.ops.workloads.structure import MEMORY_LIMIT

# Where the batch sizes of a model without captured workloads come from.
LLAMA = "gemm_n28672_k4096"
QWEN = "gemm_n2048_k4096"
DEEPSEEK = "gemm_n256_k7168"

QKV = "fused query, key and value projection"
OUT = "attention output projection"
UP = "fused gate and up projection"
DOWN = "down projection"
ROUTER = "expert router"
FUSED_A = "compression of query and of key and value at once"
HEAD = "output head, one row a vocabulary entry"
F16, BF16 = "float16", "bfloat16"
BIAS, ROUTED, BATCH = "gemm_bf16_bias", "gemm_bf16_f32", "bmm_bf16"
_KINDS = {
    BIAS: "Matrix product and bias C = A @ B.T + bias in bfloat16, added in float32",
    ROUTED: "Matrix product logits = A @ B.T of bfloat16, left in float32",
    BATCH: "Matrix products C = A @ B.T of each batch in bfloat16, summed in float32",
}


@dataclass(frozen=True)
class MatrixLayer:
    """The constants of one definition; None: captured itself."""

    n: int
    k: int
    models: tuple[str, ...]
    use: str
    captured_from: str | None = None
    dtype: str = F16
    kind: str = ""
    batch: int = 0
    tp: int = 1


def _bf16(
    n: int, k: int, models: str, use: str, captured_from: str = LLAMA
) -> MatrixLayer:
    return MatrixLayer(n, k, tuple(models.split()), use, captured_from, BF16)


_LLAMA_70B = "llama-3.1-70b llama-3.3-70b"
_QWEN_235B = "qwen3-235b-a22b qwen3-vl-235b-a22b"
LAYERS = (
    MatrixLayer(10240, 8192, ("llama-3.1-70b",), QKV, LLAMA),
    MatrixLayer(128, 2048, ("qwen3-30b-a3b",), ROUTER),
    MatrixLayer(16384, 3072, ("llama-3.2-3b",), UP, LLAMA),
    MatrixLayer(2048, 4096, ("qwen3-30b-a3b",), OUT),
    MatrixLayer(2048, 5376, ("gemma-3-27b",), "key or value projection", LLAMA),
    MatrixLayer(21504, 5376, ("gemma-3-27b",), "gate or up projection", LLAMA),
    MatrixLayer(256, 3072, ("minimax-m2",), ROUTER, QWEN),
    MatrixLayer(256, 7168, ("deepseek-v3", "deepseek-r1"), ROUTER),
    MatrixLayer(28672, 4096, ("llama-3.1-8b",), UP),
    MatrixLayer(3072, 3072, ("llama-3.2-3b",), OUT, LLAMA),
    MatrixLayer(3072, 6144, ("minimax-m2",), OUT, QWEN),
    MatrixLayer(3072, 8192, ("llama-3.2-3b",), DOWN, LLAMA),
    MatrixLayer(34816, 5120, ("qwen3-14b",), UP, QWEN),
    MatrixLayer(3584, 18944, ("qwen2.5-7b",), DOWN, QWEN),
    MatrixLayer(3584, 3584, ("qwen2.5-7b",), OUT, QWEN),
    MatrixLayer(37888, 3584, ("qwen2.5-7b",), UP, QWEN),
    MatrixLayer(4096, 14336, ("llama-3.1-8b",), DOWN),
    MatrixLayer(4096, 4096, ("llama-3.1-8b",), OUT),
    MatrixLayer(4096, 5376, ("gemma-3-27b",), "query projection", LLAMA),
    MatrixLayer(4608, 3584, ("qwen2.5-7b",), QKV, QWEN),
    MatrixLayer(5120, 17408, ("qwen3-14b",), DOWN, QWEN),
    MatrixLayer(5120, 2048, ("qwen3-30b-a3b",), QKV),
    MatrixLayer(5120, 3072, ("llama-3.2-3b",), QKV, LLAMA),
    MatrixLayer(5120, 5120, ("qwen3-14b",), OUT, QWEN),
    MatrixLayer(5376, 21504, ("gemma-3-27b",), DOWN, LLAMA),
    MatrixLayer(5376, 4096, ("gemma-3-27b",), OUT, LLAMA),
    MatrixLayer(57344, 8192, ("llama-3.1-70b",), UP, LLAMA),
    MatrixLayer(6144, 4096, ("llama-3.1-8b",), QKV),
    MatrixLayer(7168, 5120, ("qwen3-14b",), QKV, QWEN),
    MatrixLayer(8192, 28672, ("llama-3.1-70b",), DOWN, LLAMA),
    MatrixLayer(8192, 3072, ("minimax-m2",), QKV, QWEN),
    MatrixLayer(8192, 8192, ("llama-3.1-70b",), OUT, LLAMA),
    _bf16(8, 6144, "mixtral-8x22b", ROUTER),
    _bf16(16, 5120, "llama-4-scout", ROUTER),
    _bf16(32, 2880, "gpt-oss-20b", ROUTER, QWEN),
    _bf16(128, 2048, "qwen3-30b-a3b", ROUTER, QWEN),
    _bf16(128, 2880, "gpt-oss-120b", ROUTER, QWEN),
    _bf16(128, 4096, "qwen3-235b-a22b", ROUTER, QWEN),
    _bf16(160, 5120, "glm-4.6", ROUTER, QWEN),
    _bf16(384, 7168, "kimi-k2", ROUTER, DEEPSEEK),
    _bf16(512, 2048, "qwen3-next-80b-a3b", ROUTER, QWEN),
    _bf16(2048, 4096, "qwen3-30b-a3b qwen3-next-80b-a3b", OUT, QWEN),
    _bf16(
        2112, 7168, "deepseek-v3 deepseek-r1 deepseek-v3.2 kimi-k2", FUSED_A, DEEPSEEK
    ),
    _bf16(1280, 8192, "llama-3.3-70b", f"{QKV} on one of 8 devices"),
    _bf16(8192, 1024, "llama-3.3-70b", f"{OUT} on one of 8 devices"),
    _bf16(7168, 8192, "llama-3.3-70b", f"{UP} on one of 8 devices"),
    _bf16(8192, 3584, "llama-3.3-70b", f"{DOWN} on one of 8 devices"),
    _bf16(16032, 8192, _LLAMA_70B, f"{HEAD}, on one of 8 devices"),
    _bf16(2560, 8192, _LLAMA_70B, f"{QKV} on one of 4 devices"),
    _bf16(8192, 2048, _LLAMA_70B, f"{OUT} on one of 4 devices"),
    _bf16(14336, 8192, _LLAMA_70B, f"{UP} on one of 4 devices"),
    _bf16(8192, 7168, _LLAMA_70B, f"{DOWN} on one of 4 devices"),
    _bf16(32064, 8192, _LLAMA_70B, f"{HEAD}, on one of 4 devices"),
    _bf16(2304, 4096, _QWEN_235B, f"{QKV} on one of 4 devices", QWEN),
    _bf16(4096, 2048, _QWEN_235B, f"{OUT} on one of 4 devices", QWEN),
    _bf16(37984, 4096, _QWEN_235B, f"{HEAD}, on one of 4 devices", QWEN),
    _bf16(1280, 4096, _QWEN_235B, f"{QKV} on one of 8 devices", QWEN),
    _bf16(4096, 1024, _QWEN_235B, f"{OUT} on one of 8 devices", QWEN),
    _bf16(18992, 4096, _QWEN_235B, f"{HEAD}, on one of 8 devices", QWEN),
    _bf16(8, 4096, "mixtral-8x7b", ROUTER),
    _bf16(2048, 2048, "llama-3.2-1b smollm3-3b qwen1.5-moe-a2.7b", OUT),
    _bf16(2048, 8192, "llama-3.2-1b", DOWN),
    _bf16(2048, 11008, "smollm3-3b", DOWN),
    _bf16(3072, 2048, "llama-3.2-1b smollm3-3b", QKV),
    _bf16(3072, 3072, "llama-3.2-3b", OUT),
    _bf16(3072, 8192, "llama-3.2-3b", DOWN),
    _bf16(3584, 3584, "qwen2.5-7b", OUT, QWEN),
    _bf16(3584, 18944, "qwen2.5-7b", DOWN, QWEN),
    _bf16(4096, 12288, "qwen3-8b qwen3-vl-8b", DOWN, QWEN),
    _bf16(4096, 12800, "granite-4.1-8b", DOWN),
    _bf16(5120, 3072, "llama-3.2-3b", QKV),
    _bf16(5120, 5120, "qwen3-14b phi-4-14b llama-4-scout", OUT, QWEN),
    _bf16(5120, 17408, "qwen3-14b", DOWN, QWEN),
    _bf16(5120, 25600, "qwen3-32b", DOWN, QWEN),
    _bf16(5376, 4096, "gemma-3-27b", OUT),
    _bf16(5376, 21504, "gemma-3-27b", DOWN),
    _bf16(7168, 5120, "qwen3-14b exaone-4.0-32b llama-4-scout", QKV, QWEN),
    _bf16(8192, 5376, "gemma-3-27b", QKV),
    _bf16(10240, 5120, "qwen3-32b", QKV, QWEN),
    _bf16(16384, 2048, "llama-3.2-1b", UP),
    _bf16(16384, 3072, "llama-3.2-3b", UP),
    _bf16(22016, 2048, "smollm3-3b", UP),
    _bf16(24576, 4096, "qwen3-8b qwen3-vl-8b", UP, QWEN),
    _bf16(25600, 4096, "granite-4.1-8b", UP),
    _bf16(34816, 5120, "qwen3-14b", UP, QWEN),
    _bf16(37888, 3584, "qwen2.5-7b", UP, QWEN),
    _bf16(43008, 5376, "gemma-3-27b", UP),
    _bf16(51200, 5120, "qwen3-32b", UP, QWEN),
    _bf16(2880, 4096, "gpt-oss-20b gpt-oss-120b", OUT, QWEN),
    _bf16(4096, 4096, "llama-3.1-8b qwen3-8b mistral-7b-v0.1", OUT),
    _bf16(4096, 8192, "qwen3-235b-a22b nemotron-h-8b", OUT, QWEN),
    _bf16(4096, 14336, "llama-3.1-8b mistral-7b-v0.1", DOWN),
    _bf16(5120, 2048, "qwen3-30b-a3b", QKV, QWEN),
    _bf16(5120, 8192, "qwen3-32b", OUT, QWEN),
    _bf16(6144, 4096, "llama-3.1-8b qwen3-8b mistral-7b-v0.1", QKV),
    _bf16(6144, 6144, "mixtral-8x22b", OUT),
    _bf16(28672, 4096, "llama-3.1-8b mistral-7b-v0.1", UP),
    _bf16(32000, 4096, "mistral-7b-v0.1 mixtral-8x7b", HEAD),
    _bf16(100352, 4096, "granite-4.1-8b", HEAD),
    _bf16(128256, 2048, "llama-3.2-1b smollm3-3b", HEAD),
    _bf16(128256, 3072, "llama-3.2-3b", HEAD),
    _bf16(128256, 4096, "llama-3.1-8b", HEAD),
    _bf16(128256, 8192, "llama-3.1-70b", HEAD),
    _bf16(129280, 7168, "deepseek-v3 deepseek-r1 deepseek-v3.2", HEAD, DEEPSEEK),
    _bf16(151936, 2048, "qwen3-30b-a3b qwen3-next-80b-a3b", HEAD, QWEN),
    _bf16(151936, 4096, "qwen3-8b qwen3-235b-a22b", HEAD, QWEN),
    _bf16(151936, 5120, "qwen3-14b qwen3-32b", HEAD, QWEN),
    _bf16(152064, 3584, "qwen2.5-7b", HEAD, QWEN),
    _bf16(163840, 7168, "kimi-k2", HEAD, DEEPSEEK),
    _bf16(200064, 3072, "minimax-m2", HEAD, QWEN),
    _bf16(201088, 2880, "gpt-oss-20b gpt-oss-120b", HEAD, QWEN),
    _bf16(262208, 5376, "gemma-3-27b", HEAD),
)


_GPT_OSS = "gpt-oss-20b gpt-oss-120b"
# attention_bias of a model, and the router of gpt-oss
WITH_BIAS = (
    (4608, 3584, "qwen2.5-7b", QKV, 1),
    (5120, 2880, _GPT_OSS, QKV, 1),
    (2880, 4096, _GPT_OSS, OUT, 1),
    (32, 2880, "gpt-oss-20b", ROUTER, 1),
    (128, 2880, "gpt-oss-120b", ROUTER, 1),
    (14336, 5120, "glm-4.6", QKV, 1),
    (1792, 5120, "glm-4.6", QKV, 8),
)
# engines keep the logits of these routers in float32
ROUTERS = (
    (256, 7168, "deepseek-v3 deepseek-r1 deepseek-v3.2", DEEPSEEK),
    (384, 7168, "kimi-k2", DEEPSEEK),
    (160, 5120, "glm-4.6", QWEN),
    (256, 3072, "minimax-m2", QWEN),
)
_FROM, _TO = "outputs of {} heads from the latent space", "queries of {} heads into it"
# latent attention in bfloat16, whose weights are absorbed; on one GPU and on each of 8
ABSORBED = ((128, "deepseek-v3", 1), (64, "kimi-k2", 1), (16, "deepseek-v3", 8))


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    plain = tuple(layer_spec(layer) for layer in LAYERS)
    others = [
        MatrixLayer(n, k, tuple(models.split()), use, QWEN, BF16, BIAS, tp=tp)
        for n, k, models, use, tp in WITH_BIAS
    ]
    others += [
        MatrixLayer(n, k, tuple(models.split()), ROUTER, captured, BF16, ROUTED)
        for n, k, models, captured in ROUTERS
    ]
    others += [
        MatrixLayer(n, k, (model,), use.format(heads), DEEPSEEK, BF16, BATCH, heads, tp)
        for heads, model, tp in ABSORBED
        for n, k, use in ((512, 128, _TO), (128, 512, _FROM))
    ]
    return (*plain, *(kind_spec(layer) for layer in others))


def kind_spec(layer: MatrixLayer) -> Spec:
    """Return the definition of a product with a bias, a batch, or float32 sums."""
    sizes = f"n{layer.n}_k{layer.k}"
    head = ("batch_size",) if layer.batch else ()
    batch = {"batch_size": Axis("Heads, each with its weight.", layer.batch)}
    bias = {"bias": Tensor(("N",), BF16, "Added to each row.")}
    out = {BIAS: ("out", BF16), ROUTED: ("logits", "float32")}
    output, dtype = out.get(layer.kind, ("C", BF16))
    return Spec(
        name=f"{layer.kind}_b{layer.batch}_{sizes}"
        if head
        else f"{layer.kind}_{sizes}",
        description=f"{_KINDS[layer.kind]}: {layer.use}, {layer.k} to {layer.n} features.",
        op_type="gemm",
        tags=(*(f"model:{m}" for m in layer.models), f"tp:{layer.tp}"),
        axes={
            **(batch if head else {}),
            "M": Axis("Number of tokens."),
            "N": Axis("Output features.", layer.n),
            "K": Axis("Input features.", layer.k),
        },
        inputs={
            "A": Tensor((*head, "M", "K"), BF16, "Activations, one row a token."),
            "B": Tensor((*head, "N", "K"), BF16, "Weight, one row an output feature."),
            **(bias if layer.kind == BIAS else {}),
        },
        outputs={output: Tensor((*head, "M", "N"), dtype, "The product.")},
        reference=reference_text("gemm", layer.kind),
        captured_from=layer.captured_from or "",
        fits=rows_fit,
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = next((k for k in _KINDS if name.startswith(f"{k}_")), None)
    if kind:
        n, k, batch = sizes["n"], sizes["k"], sizes.get("b", 0)
        layer = MatrixLayer(n, k, (model,), "linear layer", LLAMA, BF16, kind, batch)
        return kind_spec(layer)
    if not name.startswith("gemm_"):
        return None
    dtype = BF16 if name.startswith("gemm_bf16_") else F16
    layer = MatrixLayer(sizes["n"], sizes["k"], (model,), "linear layer", LLAMA, dtype)
    return layer_spec(layer)


def layer_spec(layer: MatrixLayer) -> Spec:
    """Return the definition for one set of constants."""
    kind = "gemm" if layer.dtype == F16 else "gemm_bf16"
    name = f"{kind}_n{layer.n}_k{layer.k}"
    return Spec(
        name=name,
        description=(
            f"Matrix product C = A @ B.T in {layer.dtype} with float32 accumulation: "
            f"{layer.use}, {layer.k} to {layer.n} features."
        ),
        op_type="gemm",
        tags=(*(f"model:{m}" for m in layer.models), *SPEC.kernel_tags(name)),
        axes={
            "M": Axis("Number of tokens."),
            "N": Axis("Output features.", layer.n),
            "K": Axis("Input features.", layer.k),
        },
        inputs={
            "A": Tensor(("M", "K"), layer.dtype, "Activations, one row a token."),
            "B": Tensor(("N", "K"), layer.dtype, "Weight, one row an output feature."),
        },
        outputs={"C": Tensor(("M", "N"), layer.dtype, "A @ B.T")},
        reference=reference_text("gemm", kind),
        captured_from=layer.captured_from or name,
        fits=_fits,
    )


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the output fits in memory: a head gives rows of a vocabulary."""
    size = 2 * captured.axes["M"] * spec.const("N")
    return size <= MEMORY_LIMIT or spec.outputs["C"].dtype == F16
