"""segment_gemm: rows of segments times the weight that each segment names, in float16.

FlashInfer's kernels of both generations are CUTLASS's grouped GEMM. Measured with one
segment on an H100, they are a rounding to float16 from a float64 oracle.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.op_types.segment_gemm.relations import segment_relations
from generator.ops.op_types.segment_gemm.segments import axes_of, segment_inputs
from kernel_judge.comparison.tolerance import Override
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES: tuple[Override, ...] = ()
_WORKSPACE_BYTES = 128 * 2**20
# (lengths of segments, number of weights) of each case
_LENGTHS: dict[str, tuple[str, tuple[int, ...], int]] = {
    "one-row": ("small", (1,), 1),
    "decode": ("small", (1, 1, 1, 1, 1), 3),
    "empty-segments": ("small", (0, 3, 0, 5, 1, 0), 5),
    "unused-weights": ("small", (4, 2), 6),
    "ragged": ("medium", (33, 1, 65, 7, 16), 4),
    "past-limits": (LIMITS, (2_060, *[60] * 35), 17),
    "prefill": ("large", (512, 37, 1024, 255, 1, 640), 8),
}


def cases(definition: Definition) -> list[Case]:
    """Return decodes, empty segments, weights that no segment uses, long segments."""
    return [
        Case(name, size, axes_of(lengths, weights), {"lengths": lengths})
        for name, (size, lengths, weights) in _LENGTHS.items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return float16 rows and weights of which the products are about 1."""
    n, k = definition.axes["N"], definition.axes["K"]
    weights = case.axes["num_weights"]
    drawn = stream.child("weights").matrix(
        weights * n, k, 1.0 / math.sqrt(k), torch.float16
    )
    return {
        "x": stream.child("x").values((case.axes["total_rows"], k), 1.0, torch.float16),
        "weights": drawn.view(weights, n, k),
        **segment_inputs(case.params["lengths"], weights, stream.child("segments")),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the products, float64 [total_rows, N]: all rows of one weight at a time."""
    x, bounds = inputs["x"].double(), inputs["seg_indptr"]
    rows = torch.arange(len(x), device=x.device)
    # a row is in the last segment that begins at it or before
    segments = torch.searchsorted(bounds, rows, right=True) - 1
    chosen = inputs["weight_indices"][segments]
    total = torch.zeros(len(x), definition.axes["N"], dtype=x.dtype, device=x.device)
    for index, weight in enumerate(inputs["weights"]):
        in_segment = (chosen == index)[:, None]
        total += torch.where(in_segment, x, 0.0) @ weight.double().T
    return total


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of both generations."""
    return (Backend("sm80", min_sm=80), Backend("sm90", min_sm=90, max_sm=90))


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's wrapper; return float16 [total_rows, N]."""
    from flashinfer.gemm import SegmentGEMMWrapper

    x, indices = inputs["x"], inputs["weight_indices"]
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.int8, device=x.device)
    return SegmentGEMMWrapper(workspace, backend=backend).run(
        x,
        inputs["weights"],
        len(indices),
        True,
        seg_indptr=inputs["seg_indptr"],
        weight_indices=indices,
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=segment_relations,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
