"""Reference tests of op_type segment_gemm.

Rendered: don't edit. `gen-tests --op-type segment_gemm` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.segment_gemm.relations import segment_relations
from generator.ops.op_types.segment_gemm.segments import axes_of, segment_inputs
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.segment_gemm.relations

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


# ---- the interfaces

INTERFACE_SEGMENT_GEMM_FP16 = Interface(
    inputs={
        "x": "float16[total_rows, K]",
        "weights": "float16[num_weights, N, K]",
        "seg_indptr": "int64[len_indptr]",
        "weight_indices": "int64[num_segments]",
    },
    outputs={"y": "float16[total_rows, N]"},
    constraints=(
        "len_indptr == num_segments + 1",
        "total_rows == seg_indptr[-1].item()",
    ),
)

# ---- the tests


class SegmentGemmTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of segment_gemm share."""

    op_type = "segment_gemm"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.


# FlashInfer's SegmentGEMMWrapper computes them.
# model:llama-3.1-8b, fi_api:flashinfer.gemm.SegmentGEMMWrapper
# Tolerances:
#   output  source              rtol   atol   NMSE   reason
#   y       oracle, flashinfer  0.001  0.001  1e-06  default
def reference_segment_gemm_fp16():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        weights: torch.Tensor,
        seg_indptr: torch.Tensor,
        weight_indices: torch.Tensor,
    ) -> torch.Tensor:
        y = torch.zeros(len(x), weights.shape[1], dtype=torch.float16, device=x.device)
        bounds = seg_indptr.tolist()
        for segment, index in enumerate(weight_indices.tolist()):
            rows = slice(bounds[segment], bounds[segment + 1])
            y[rows] = (x[rows].float() @ weights[index].float().T).to(torch.float16)
        return y

    return run


class SegmentGemmFp16Base(SegmentGemmTests):
    reference = staticmethod(reference_segment_gemm_fp16)
    interface = INTERFACE_SEGMENT_GEMM_FP16

# The next 2: Products y_s = x_s @ W[i_s].T in float16 with float32 accumulation, for
# segments of rows that choose their weight: low-rank adapters of requests in a batch,
# from rank K.
class TestSegmentGemmFp16K16N4096(SegmentGemmFp16Base):
    name = "segment_gemm_fp16_k16_n4096"
    axes = {"N": 4096, "K": 16}
    sha256 = "947ff6c1de384a99251c90a09053aeb4d3f67213bbe532d658c2b7900f6d2e95"

class TestSegmentGemmFp16K64N4096(SegmentGemmFp16Base):
    name = "segment_gemm_fp16_k64_n4096"
    axes = {"N": 4096, "K": 64}
    sha256 = "2712b1c44b16ba6a4c0aba878149a7eeb949c2fb0108ffb477d52d89c3185a65"

# The next 2: Products y_s = x_s @ W[i_s].T in float16 with float32 accumulation, for
# segments of rows that choose their weight: low-rank adapters of requests in a batch,
# to rank N.
class TestSegmentGemmFp16K4096N16(SegmentGemmFp16Base):
    name = "segment_gemm_fp16_k4096_n16"
    axes = {"N": 16, "K": 4096}
    sha256 = "b1f7c629eb6256f6b56e561b5ce64a8931ef60c814dc9a846db9ce607a736888"

class TestSegmentGemmFp16K4096N64(SegmentGemmFp16Base):
    name = "segment_gemm_fp16_k4096_n64"
    axes = {"N": 64, "K": 4096}
    sha256 = "f3197c11a88c2e51e37737760ac41ef1cc25b89faa9e180d70d160e3993db8b7"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
