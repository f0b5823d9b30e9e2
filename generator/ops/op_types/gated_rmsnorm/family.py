"""Gated RMS norms: the norm before the gate, and groups of columns behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text

ROWS = ("batch_size", "hidden_size")


@dataclass(frozen=True)
class GatedNorm:
    """The constants of one definition; with groups, the gate comes first.

    `word` is what its name says of eps.
    """

    hidden_size: int
    models: tuple[str, ...]
    eps: float
    num_groups: int = 0
    tp: int = 1
    word: str = ""


NORMS = (
    GatedNorm(128, ("qwen3-next-80b-a3b",), 1e-06),
    GatedNorm(8192, ("nemotron-h-8b",), 1e-05, 8),
    GatedNorm(4096, ("nemotron-h-8b",), 1e-05, 4, 2),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(norm_spec(norm) for norm in NORMS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another gate than silu."""
    kernel = "gated_group_rmsnorm" if "ng" in sizes else "gated_rmsnorm"
    word = name.partition("_h")[0].removeprefix(kernel)
    if word and not word.startswith("_eps_"):
        return None
    groups, eps = sizes.get("ng", 0), constants["eps"]
    return norm_spec(GatedNorm(sizes["h"], (model,), eps, groups, word=word))


def norm_spec(norm: GatedNorm) -> Spec:
    """Return the definition for one set of constants."""
    size, groups = norm.hidden_size, norm.num_groups
    kind, name = "gated_rmsnorm", f"gated_rmsnorm{norm.word}_h{size}"
    text = (
        "Gated RMS normalisation of the heads of a delta net, one row a head: x *"
        f" rsqrt(mean(x^2) + {norm.eps}) * weight * silu(gate), silu(g) = g *"
        " sigmoid(g)"
    )
    if groups:
        kind = "gated_group_rmsnorm"
        name = f"{kind}{norm.word}_h{size}_ng{groups}"
        text = (
            "Gated RMS normalisation of what a Mamba layer gives: y = x * silu(gate)"
            f" with silu(g) = g * sigmoid(g), then y * rsqrt(mean(y^2) + {norm.eps}) *"
            f" weight, where the mean is that of one of {groups} groups of columns"
        )
    return Spec(
        name=name,
        description=f"{text}. In float32, rounded to bfloat16 at the end.",
        op_type="gated_rmsnorm",
        tags=(*(f"model:{model}" for model in norm.models), f"tp:{norm.tp}"),
        axes={
            "batch_size": Axis("Number of rows to normalise."),
            "hidden_size": Axis("Length of a row.", size),
            **(_group_axes(size, groups) if groups else {}),
        },
        inputs={
            "hidden_states": Tensor(ROWS, "bfloat16", "Rows to normalise."),
            "gate": Tensor(ROWS, "bfloat16", "Gates, before silu."),
            "weight": Tensor(
                ("num_groups", "group_size") if groups else ("hidden_size",),
                "bfloat16",
                "Scale of each column.",
            ),
        },
        outputs={"output": Tensor(ROWS, "bfloat16", "The gated, normalised rows.")},
        constraints=("group_size == hidden_size // num_groups",) if groups else (),
        reference=reference_text("gated_rmsnorm", kind, EPS=norm.eps),
        captured_from="rmsnorm_h4096" if groups else "rmsnorm_h128",
        captured_op_type="rmsnorm",
    )


def _group_axes(size: int, groups: int) -> dict[str, Axis]:
    return {
        "num_groups": Axis("Groups of columns, each with a mean.", groups),
        "group_size": Axis("Columns of a group.", size // groups),
    }
