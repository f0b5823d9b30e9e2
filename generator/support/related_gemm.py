"""Relations of a matrix product: rows and columns are independent, K adds up."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .definition import Definition
from .related_rows import reordered
from .relation import Claim, RelatedCase, Relation, Subject
from .tolerance import Tolerance

_ALIKE = {
    "C": (
        Tolerance(rtol=1e-3, atol=4e-5, nmse=1e-7),
        "float32 sums of up to 28672 products of about 1/170 in another order: 4e-5 at "
        "most where they cancel; both sides round once, to neighbours at most: 2^-10",
    )
}
_ADDED = Tolerance(rtol=5e-4, atol=4e-3, nmse=1.5e-7)
_ADDED_REASON = (
    "both parts and the whole are rounded to float16, half an ulp of values up to 5, "
    "2^-11 each; three such of 4e-8 (2^-11/sqrt(3)/1.44, squared), of which the parts "
    "have half the power, are 8e-8 of the power"
)


def gemm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of C = A·Bᵀ."""
    cases = [RelatedCase("three-rows", "small", {"M": 3})]
    return [
        reordered("rows-and-columns-reversed", ["M", "N"], _ALIKE, cases),
        Relation("k-in-two", _k_in_two, cases),
    ]


def _k_in_two(subject: Subject) -> Iterator[Claim]:
    """Add the products of two parts of K: one call, whose rows have either part."""
    a = subject.inputs["A"]
    rows, cut = len(a), a.shape[1] // 3
    parts = torch.cat([a, a])
    parts[:rows, cut:] = 0.0
    parts[rows:, :cut] = 0.0
    c = subject.run({**subject.inputs, "A": parts})["C"].double()
    yield Claim(
        "C", c[:rows] + c[rows:], subject.whole["C"], _ADDED, _ADDED_REASON
    )
