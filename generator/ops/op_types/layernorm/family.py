"""Layer normalisation: bfloat16 rows, scale and bias in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text

ROWS = ("batch_size", "hidden_size")


@dataclass(frozen=True)
class LayerNorm:
    """The constants of one definition; `word` is what its name says of eps."""

    hidden_size: int
    models: tuple[str, ...]
    eps: float
    use: str
    word: str = ""


NORMS = (
    LayerNorm(128, ("deepseek-v3.2",), 1e-06, "the keys of an indexer"),
    LayerNorm(1280, ("whisper-large-v3",), 1e-05, "hidden states", "_eps_1em5"),
    LayerNorm(4096, ("bloom-7b1",), 1e-05, "hidden states", "_eps_1em5"),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(norm_spec(norm) for norm in NORMS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    word = name.rpartition("_h")[0].removeprefix("layernorm")
    eps = constants["eps"]
    return norm_spec(LayerNorm(sizes["h"], (model,), eps, "hidden states", word))


def norm_spec(norm: LayerNorm) -> Spec:
    """Return the definition for one set of constants."""
    columns = ("hidden_size",)
    return Spec(
        name=f"layernorm{norm.word}_h{norm.hidden_size}",
        description=(
            f"Layer normalisation of {norm.use}: (x - mean(x)) * rsqrt(var(x) +"
            f" {norm.eps}) * weight + bias, where var is the mean of the squared"
            " differences. In float32, rounded to bfloat16 at the end."
        ),
        op_type="layernorm",
        tags=(
            *(f"model:{model}" for model in norm.models),
            "fi_api:flashinfer.norm.layernorm",
        ),
        axes={
            "batch_size": Axis("Number of rows to normalise."),
            "hidden_size": Axis("Length of a row.", norm.hidden_size),
        },
        inputs={
            "hidden_states": Tensor(ROWS, "bfloat16", "Rows to normalise."),
            "weight": Tensor(columns, "float32", "Scale of each column."),
            "bias": Tensor(columns, "float32", "Added to each column."),
        },
        outputs={"output": Tensor(ROWS, "bfloat16", "The normalised rows.")},
        reference=reference_text("layernorm", "layernorm", EPS=norm.eps),
        captured_from="rmsnorm_h4096",
        captured_op_type="rmsnorm",
    )
