"""RMS norms: plain, with a residual added, rounded to e4m3, and with SiLU behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text

ROWS = ("batch_size", "hidden_size")


@dataclass(frozen=True)
class RmsNorm:
    """The constants of one definition of the family.

    `prefix` and `word` are what its name says of the variant, before and behind the
    kernel: FlashInfer's name for a norm has neither eps nor 1 + weight. `then` is what
    follows in the same kernel: "quant" rounds to e4m3, "silu" is the activation, and
    "residual" says that the sum is an output, as calls of the kernel have it.
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
    then: str = ""


DEEPSEEK = ("deepseek-v3", "deepseek-r1")
GEMMA = ("gemma-3-27b",)
LLAMA = ("llama-3.1-8b",)
LLAMA_70B = ("llama-3.1-70b",)
MINIMAX = ("minimax-m2",)
LLAMA_4 = ("llama-4-scout", "llama-4-maverick")
QWEN_14B = ("qwen3-14b",)
QWEN_30B = ("qwen3-30b-a3b",)
QWEN_NEXT = ("qwen3-next-80b-a3b",)
WAN = ("wan2.1-vae",)
HEADS = "query and key heads (one row a head)"
PIXELS = "the channels of a video decoder's pixels (one row a pixel)"
# as a calibration gives it for rows whose largest element is 5.6
SCALE = 0.0125

# widths that other models have with another eps, or that none with a name without eps
# has; between the layers of one that several GPUs share, the norm is the all-reduce's
OTHERS = (
    (2048, ("llama-3.2-1b",), 1e-05, "_eps_1em5", (False, True)),
    (2880, ("gpt-oss-20b", "gpt-oss-120b"), 1e-05, "_eps_1em5", (False, True)),
    (3072, ("llama-3.2-3b",), 1e-05, "_eps_1em5", (False, True)),
    (3584, ("qwen2.5-7b",), 1e-06, "_eps_1em6", (False, True)),
    (4096, ("qwen3-8b", "qwen3-235b-a22b"), 1e-06, "_eps_1em6", (False, True)),
    (8192, ("llama-3.1-70b", "llama-3.3-70b"), 1e-05, "_eps_1em5", (False,)),
)
NORMS = (
    RmsNorm(2048, QWEN_30B, 1e-06, 2048, fused_add=True),
    RmsNorm(3072, MINIMAX, 1e-06, 2048, fused_add=True),
    RmsNorm(4096, LLAMA, 1e-05, 4096, fused_add=True),
    RmsNorm(5120, QWEN_14B, 1e-06, 2048, fused_add=True),
    RmsNorm(5376, GEMMA, 1e-06, 4096, fused_add=True, unit_offset=True),
    RmsNorm(7168, DEEPSEEK, 1e-06, 7168, fused_add=True),
    RmsNorm(128, QWEN_30B, 1e-06, 128, use=HEADS),
    RmsNorm(
        1536, DEEPSEEK, 1e-06, 1536, use="the compressed query of latent attention"
    ),
    RmsNorm(2048, QWEN_30B, 1e-06, 2048),
    RmsNorm(3072, MINIMAX, 1e-06, 2048),
    RmsNorm(4096, LLAMA, 1e-05, 4096),
    RmsNorm(512, DEEPSEEK, 1e-06, 512, use="the compressed KV of latent attention"),
    RmsNorm(5120, QWEN_14B, 1e-06, 2048),
    RmsNorm(5376, GEMMA, 1e-06, 4096, unit_offset=True),
    RmsNorm(7168, DEEPSEEK, 1e-06, 7168),
    RmsNorm(128, GEMMA, 1e-06, 128, unit_offset=True, use=HEADS, prefix="gemma_"),
    RmsNorm(256, QWEN_NEXT, 1e-06, 128, unit_offset=True, use=HEADS, prefix="gemma_"),
    RmsNorm(2048, QWEN_NEXT, 1e-06, 2048, unit_offset=True, prefix="gemma_"),
    RmsNorm(2048, QWEN_NEXT, 1e-06, 2048, True, unit_offset=True, prefix="gemma_"),
    RmsNorm(5120, LLAMA_4, 1e-05, 2048, word="_eps_1em5"),
    RmsNorm(5120, LLAMA_4, 1e-05, 2048, fused_add=True, word="_eps_1em5"),
    *(
        RmsNorm(
            size, models, eps, 4096, is_fused, word=word, then="residual" * is_fused
        )
        for size, models, eps, word, kinds in OTHERS
        for is_fused in kinds
    ),
    # inputs of products whose float8 has one scale a tensor, as checkpoints have it
    *(
        RmsNorm(size, models, eps, captured, fused_add, then="quant")
        for size, models, eps, captured in (
            (4096, LLAMA, 1e-05, 4096),
            (8192, LLAMA_70B, 1e-05, 4096),
            (5120, QWEN_14B, 1e-06, 2048),
        )
        for fused_add in (False, True)
    ),
    # what calls of FlashInfer's fused norms write: both tensors
    *(
        RmsNorm(
            size, models, eps, captured, True, offset, prefix=prefix, then="residual"
        )
        for size, models, eps, captured, offset, prefix in (
            (2048, QWEN_30B, 1e-06, 2048, False, ""),
            (3072, MINIMAX, 1e-06, 2048, False, ""),
            (4096, LLAMA, 1e-05, 4096, False, ""),
            (5120, QWEN_14B, 1e-06, 2048, False, ""),
            (7168, DEEPSEEK, 1e-06, 7168, False, ""),
            (2048, QWEN_NEXT, 1e-06, 2048, True, "gemma_"),
            (5376, GEMMA, 1e-06, 4096, True, "gemma_"),
        )
    ),
    *(
        RmsNorm(size, WAN, 1e-06, 128, use=PIXELS, word="_eps_1em6", then="silu")
        for size in (96, 384)
    ),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(norm_spec(norm) for norm in NORMS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kernels = ("fused_add_rmsnorm_residual", "fused_add_rmsnorm", "rmsnorm")
    kernel = next((kernel for kernel in kernels if kernel in name), "")
    prefix, _, word = name.rpartition("_")[0].partition(kernel or name)
    if prefix not in ("", "gemma_") or (word and not word.startswith("_eps_")):
        return None
    eps, offset, size = constants["eps"], constants["unit_offset"], sizes["h"]
    then = "residual" if kernel.endswith("_residual") else ""
    norm = RmsNorm(size, (model,), eps, 4096, kernel != "rmsnorm", offset)
    return norm_spec(replace(norm, prefix=prefix, word=word, then=then))


def norm_spec(norm: RmsNorm) -> Spec:
    """Return the definition for one set of constants."""
    plain = "fused_add_rmsnorm" if norm.fused_add else "rmsnorm"
    kernel = plain if norm.then != "silu" else "fused_rmsnorm_silu"
    kernel += "_quant" if norm.then == "quant" else ""
    api = f"gemma_{kernel}" if norm.unit_offset else kernel
    text = f"gemma_{kernel}" if norm.unit_offset else kernel
    words: tuple[str, ...] = ()
    if kernel == "fused_add_rmsnorm":
        text = kernel
        words = ("gemma",) * norm.unit_offset + ("residual",) * (
            norm.then == "residual"
        )
    kernel += "_residual" if norm.then == "residual" else ""
    fused = ("fused",) if norm.fused_add or norm.then else ()
    return Spec(
        name=f"{norm.prefix}{kernel}{norm.word}_h{norm.hidden_size}",
        description=_description(norm),
        op_type="rmsnorm",
        tags=(
            *(f"model:{model}" for model in norm.models),
            *fused,
            f"fi_api:flashinfer.norm.{api}",
        ),
        axes={
            "batch_size": Axis("Number of rows to normalise."),
            "hidden_size": Axis("Length of a row.", norm.hidden_size),
        },
        inputs=_inputs(norm),
        outputs=_outputs(norm),
        constraints=("scale > 0",) if norm.then == "quant" else (),
        reference=reference_text("rmsnorm", text, words, EPS=norm.eps),
        captured_from=f"{plain}_h{norm.captured_hidden_size}",
        sm_scale=SCALE if norm.then == "quant" else None,
    )


def _description(norm: RmsNorm) -> str:
    x = "(hidden_states + residual)" if norm.fused_add else "hidden_states"
    scale = "(1 + weight)" if norm.unit_offset else "weight"
    eps = norm.eps
    text = f"RMS normalisation of {norm.use}: x * rsqrt(mean(x^2) + {eps}) * {scale}"
    text += f" with x = {x}"
    if norm.then == "quant":
        text += ", divided by scale and cut off at 448, in float32, rounded to e4m3"
        text += " once at the end."
        rounded = " The sum, rounded to bfloat16, is the second output."
        return text + (rounded if norm.fused_add else "")
    if norm.then == "silu":
        text += ", then y * sigmoid(y) of it"
    text += ", in float32, rounded to bfloat16 at the end."
    if norm.then == "residual":
        text += (
            " The sum, rounded to bfloat16, is the second output: calls of the kernel"
        )
        text += " write both in place. Solutions are installed as"
        text += f" {norm.prefix}fused_add_rmsnorm_h{norm.hidden_size}."
    elif norm.fused_add:
        text += " The sum itself is not an output."
    return text


def _inputs(norm: RmsNorm) -> dict[str, Tensor]:
    hidden_states = Tensor(ROWS, "bfloat16", "Rows to normalise.")
    residual = Tensor(ROWS, "bfloat16", "Added to hidden_states first.")
    scale = "Scale of each column"
    scale += ", stored as its offset from one." if norm.unit_offset else "."
    weight = Tensor(("hidden_size",), "bfloat16", scale)
    by = Tensor(None, "float32", "What the rows are divided by before rounding.")
    return {
        "hidden_states": hidden_states,
        **({"residual": residual} if norm.fused_add else {}),
        "weight": weight,
        **({"scale": by} if norm.then == "quant" else {}),
    }


def _outputs(norm: RmsNorm) -> dict[str, Tensor]:
    outputs = {"output": Tensor(ROWS, "bfloat16", "The normalised rows.")}
    if norm.then == "quant":
        rows = "The normalised rows, in 8 bits."
        outputs = {"output": Tensor(ROWS, "float8_e4m3fn", rows)}
    if norm.fused_add and norm.then:
        outputs["new_residual"] = Tensor(ROWS, "bfloat16", "hidden_states + residual.")
    return outputs
