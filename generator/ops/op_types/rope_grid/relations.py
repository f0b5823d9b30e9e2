"""Relations of RoPE on a grid: heads are for themselves, the first patch stays."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "the same products and sums of the same numbers")
_PRODUCTS = Bound(
    Tolerance(rtol=0.0, atol=0.5, nmse=1e-4),
    "products of two heads of 128 numbers around 1, each rounded by 2^-8 once: 0.5 at "
    "most of numbers of 11 in the mean",
)


def grid_relations(definition: Definition) -> list[Relation]:
    """Return the relations of patches on a grid."""
    is_video = "temporal" in definition.constants
    axes = {"rows": 5, "columns": 6} | ({"frames": 3} if is_video else {})
    shape = definition.interface.input_specs["q"].shape or ()
    axes = {name: axes[name] for name in shape if name in axes}
    cases = [RelatedCase("small-grid", "small", axes)]
    bounds = {"q_out": _SAME, "k_out": _SAME}
    return [
        reordered("heads-reversed", ["num_heads"], bounds, cases),
        Relation("first-patch-stays", _first, cases),
        Relation("queries-as-keys", _exchanged, cases),
        Relation("products-depend-on-distance", _distance, cases),
    ]


def _first(subject: RelatedCalls) -> Iterator[Claim]:
    """Look at the patch in the corner, which turns by no angle."""
    corner = (0,) * (subject.inputs["q"].dim() - 2)
    for name in ("q", "k"):
        actual = subject.whole[f"{name}_out"][corner]
        yield Claim(f"{name}_out", actual, subject.inputs[name][corner], _SAME)


def _exchanged(subject: RelatedCalls) -> Iterator[Claim]:
    """Give keys as queries, and queries as keys."""
    inputs = subject.inputs
    actual = subject.run({"q": inputs["k"], "k": inputs["q"]})
    yield Claim("q_out", actual["q_out"], subject.whole["k_out"], _SAME)
    yield Claim("k_out", actual["k_out"], subject.whole["q_out"], _SAME)


def _distance(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each row of patches the next one's heads: products with neighbours stay."""
    inputs = subject.inputs
    axis = inputs["q"].dim() - 4
    moved = {name: x.roll(-1, axis) for name, x in inputs.items()}
    actual = subject.run(moved)
    count = inputs["q"].shape[axis] - 1

    def products(outputs: dict[str, torch.Tensor], first: int) -> torch.Tensor:
        q = outputs["q_out"].narrow(axis, first, count - 1).float()
        k = outputs["k_out"].narrow(axis, first + 1, count - 1).float()
        return (q * k).sum(dim=-1)

    yield Claim("q_out", products(actual, 0), products(subject.whole, 1), _PRODUCTS)
