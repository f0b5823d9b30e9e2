"""Relations of a matrix product: independent rows and columns, shards of N and K."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from generator.ops.row_relations import last_half_twice, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_VALUES = 256
_ALIKE = {
    "float16": Bound(
        Tolerance(rtol=1e-3, atol=4e-5, nmse=1e-7),
        "float32 sums of up to 28672 products of about 1/170 in another order: 4e-5 at "
        "most where they cancel; both sides round once, to neighbours at most: 2^-10",
    ),
    "bfloat16": Bound(
        Tolerance(rtol=8e-3, atol=4e-5, nmse=1e-6),
        "float32 sums in another order, 4e-5 at most where they cancel; both sides round "
        "once, to neighbours at most: 2^-7, and that is rare",
    ),
    "float32": Bound(
        Tolerance(rtol=1e-6, atol=2e-5, nmse=2e-11),
        "float32 sums of 7168 products at most in another order, on both sides",
    ),
}
_ADDED = {
    "float16": Bound(
        Tolerance(rtol=5e-4, atol=4e-3, nmse=1.5e-7),
        "both parts and the whole are rounded to float16, half an ulp of values up to 5, "
        "2^-11 each; three such of 4e-8 (2^-11/sqrt(3)/1.44, squared), of which the parts "
        "have half the power, are 8e-8 of the power",
    ),
    "bfloat16": Bound(
        Tolerance(rtol=4e-3, atol=3.2e-2, nmse=1e-5),
        "as in float16, with roundings of 2^-8 instead of 2^-11: eight times the error, "
        "64 times its square",
    ),
    "float32": Bound(
        Tolerance(rtol=1e-6, atol=3e-5, nmse=3e-11),
        "three float32 sums of 7168 products at most",
    ),
}


def gemm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of C = A·Bᵀ."""
    (output,) = definition.interface.outputs
    alike = {output: _ALIKE[_dtype(definition)]}
    # the mean square of fewer errors than these is no mean
    rows = max(3, math.ceil(_VALUES / definition.axes["N"]))
    axes = {"M": 3 * rows}
    cases = [RelatedCase("rows-in-two", "small", axes, {}, _rows_with_parts)]
    batches, orders = "", ["M", "N"]
    if "batch_size" in definition.axes:
        batches, orders = "batches-", ["batch_size", *orders]
    return [
        reordered(f"{batches}rows-and-columns-reversed", orders, alike, cases),
        Relation("k-in-two", _k_in_two, cases),
        reordered("n-shards-concatenate", ["N"], alike, cases, last_half_twice),
    ]


def _dtype(definition: Definition) -> str:
    (spec,) = definition.interface.output_specs.values()
    return spec.dtype


def _rows_with_parts(definition: Definition, case: Case, stream: Stream) -> Inputs:
    """Return A [M, K] and B [N, K] for both relations, or batches, and a bias.

    A has M / 3 rows, then the same with only the first third of K, then with only the
    rest; the other elements are 0. One product serves both relations, as it is slow.
    """
    n, k = definition.axes["N"], definition.axes["K"]
    dtype = dtype_of(definition.interface.input_specs["A"].dtype)
    batch = definition.axes.get("batch_size", 1)
    a = stream.child("A").values((batch * (case.axes["M"] // 3), k), 1.0, dtype)
    b = stream.child("B").matrix(batch * n, k, 1.0 / math.sqrt(k), dtype)
    if "batch_size" in definition.axes:
        a, b = a.view(batch, -1, k), b.view(batch, n, k)
    early = torch.arange(k) < k // 3
    parts = torch.cat([a, a.where(early, 0.0), a.where(~early, 0.0)], dim=-2)
    if "bias" not in definition.interface.inputs:
        return {"A": parts, "B": b}
    return {"A": parts, "B": b, "bias": stream.child("bias").values((n,), 1.0, dtype)}


def _k_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the products of the two parts of K; both have the bias, and the whole one."""
    (output,) = subject.whole
    whole, early, late = subject.whole[output].double().chunk(3, dim=-2)
    if "bias" in subject.inputs:
        whole = whole + subject.inputs["bias"].double()
    yield Claim(output, early + late, whole, _ADDED[_dtype(subject.definition)])
