"""Root-mean-square normalisation, plain and with a fused residual addition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text

ROWS = ("batch_size", "hidden_size")


@dataclass(frozen=True)
class Norm:
    """Name the constants of one definition of the family.

    `prefix` and `word` are what its name says of the variant, before and behind the
    kernel: FlashInfer's name for a norm has neither eps nor 1 + weight.
    """

    hidden_size: int
    models: tuple[str, ...]
    eps: float
    captured_hidden_size: int
    fused_add: bool = False
    unit_offset: bool = False
    use: str = "hidden states of a transformer layer"
    prefix: str = ""
    word: str = ""


DEEPSEEK = ("deepseek-v3", "deepseek-r1")
GEMMA = ("gemma-3-27b",)
LLAMA = ("llama-3.1-8b",)
MINIMAX = ("minimax-m2",)
LLAMA_4 = ("llama-4-scout", "llama-4-maverick")
QWEN_14B = ("qwen3-14b",)
QWEN_30B = ("qwen3-30b-a3b",)
QWEN_NEXT = ("qwen3-next-80b-a3b",)
HEADS = "query and key heads (one row a head)"

NORMS = (
    Norm(2048, QWEN_30B, 1e-06, 2048, fused_add=True),
    Norm(3072, MINIMAX, 1e-06, 2048, fused_add=True),
    Norm(4096, LLAMA, 1e-05, 4096, fused_add=True),
    Norm(5120, QWEN_14B, 1e-06, 2048, fused_add=True),
    Norm(5376, GEMMA, 1e-06, 4096, fused_add=True, unit_offset=True),
    Norm(7168, DEEPSEEK, 1e-06, 7168, fused_add=True),
    Norm(128, QWEN_30B, 1e-06, 128, use=HEADS),
    Norm(1536, DEEPSEEK, 1e-06, 1536, use="the compressed query of latent attention"),
    Norm(2048, QWEN_30B, 1e-06, 2048),
    Norm(3072, MINIMAX, 1e-06, 2048),
    Norm(4096, LLAMA, 1e-05, 4096),
    Norm(512, DEEPSEEK, 1e-06, 512, use="the compressed KV of latent attention"),
    Norm(5120, QWEN_14B, 1e-06, 2048),
    Norm(5376, GEMMA, 1e-06, 4096, unit_offset=True),
    Norm(7168, DEEPSEEK, 1e-06, 7168),
    Norm(128, GEMMA, 1e-06, 128, unit_offset=True, use=HEADS, prefix="gemma_"),
    Norm(256, QWEN_NEXT, 1e-06, 128, unit_offset=True, use=HEADS, prefix="gemma_"),
    Norm(2048, QWEN_NEXT, 1e-06, 2048, unit_offset=True, prefix="gemma_"),
    Norm(2048, QWEN_NEXT, 1e-06, 2048, True, unit_offset=True, prefix="gemma_"),
    Norm(5120, LLAMA_4, 1e-05, 2048, word="_eps_1em5"),
    Norm(5120, LLAMA_4, 1e-05, 2048, fused_add=True, word="_eps_1em5"),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(norm_spec(norm) for norm in NORMS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kernel = "fused_add_rmsnorm" if "fused_add_rmsnorm" in name else "rmsnorm"
    prefix, found, word = name.rpartition("_")[0].partition(kernel)
    if not found or prefix not in ("", "gemma_"):
        return None
    eps, offset, size = constants["eps"], constants["unit_offset"], sizes["h"]
    fused = kernel != "rmsnorm"
    return norm_spec(
        Norm(size, (model,), eps, size, fused, offset, prefix=prefix, word=word)
    )


def norm_spec(norm: Norm) -> Spec:
    """Return the definition for one set of constants."""
    kernel = "fused_add_rmsnorm" if norm.fused_add else "rmsnorm"
    module = f"gemma_{kernel}" if norm.unit_offset else kernel
    fused = ("fused",) if norm.fused_add else ()
    return Spec(
        name=f"{norm.prefix}{kernel}{norm.word}_h{norm.hidden_size}",
        description=_description(norm),
        op_type="rmsnorm",
        tags=(
            *(f"model:{model}" for model in norm.models),
            *fused,
            f"fi_api:flashinfer.norm.{module}",
        ),
        axes={
            "batch_size": Axis("Number of rows to normalise."),
            "hidden_size": Axis("Length of a row.", norm.hidden_size),
        },
        inputs=_inputs(norm),
        outputs={"output": Tensor(ROWS, "bfloat16", "The normalised rows.")},
        reference=reference_text("rmsnorm", module, EPS=norm.eps),
        captured_from=f"{kernel}_h{norm.captured_hidden_size}",
    )


def _description(norm: Norm) -> str:
    x = "(hidden_states + residual)" if norm.fused_add else "hidden_states"
    scale = "(1 + weight)" if norm.unit_offset else "weight"
    eps = norm.eps
    text = f"RMS normalisation of {norm.use}: x * rsqrt(mean(x^2) + {eps}) * {scale}"
    text += f" with x = {x}, in float32, rounded to bfloat16 at the end."
    if norm.fused_add:
        text += " The sum itself is not an output."
    return text


def _inputs(norm: Norm) -> dict[str, Tensor]:
    hidden_states = Tensor(ROWS, "bfloat16", "Rows to normalise.")
    residual = Tensor(ROWS, "bfloat16", "Added to hidden_states first.")
    scale = "Scale of each column"
    scale += ", stored as its offset from one." if norm.unit_offset else "."
    weight = Tensor(("hidden_size",), "bfloat16", scale)
    if norm.fused_add:
        return {
            "hidden_states": hidden_states,
            "residual": residual,
            "weight": weight,
        }
    return {"hidden_states": hidden_states, "weight": weight}
