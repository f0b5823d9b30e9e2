"""gemm: C = A @ B.T in float16 or bfloat16 with float32 accumulation.

The production kernel is cuBLAS through PyTorch, which a reference may call itself.
FlashInfer's grouped GEMM, of one group here, is CUTLASS: independent of it, as the
float64 oracle is. Measured on an H100, both backends are within NMSE 4.4e-8 of that
oracle in float16, a rounding: they need no tolerance of their own. cuBLASLt through
FlashInfer's mm_bf16 is a third, for bfloat16.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.op_types.gemm.relations import gemm_relations
from kernel_judge.comparison.tolerance import Override
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.repeated import past_limits
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op

TOLERANCES: tuple[Override, ...] = ()
_WORKSPACE_BYTES = 32 * 2**20
# rows of B that the oracle converts to float64 at a time
_BLOCK = 4096


def cases(definition: Definition) -> list[Case]:
    """Return the cases: one row, an odd number, and more rows than a tile."""
    return [
        Case("one-row", "small", {"M": 1}),
        Case("odd-rows", "small", {"M": 7}),
        Case("rows", "medium", {"M": 65}),
        past_limits("M", 8_219),
        Case("many-rows", "large", {"M": 2048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return A [M, K] and B [N, K] of C's dtype; elements of C are about 1."""
    n, k = definition.axes["N"], definition.axes["K"]
    dtype = dtype_of(definition.interface.output_specs["C"].dtype)
    return {
        "A": stream.child("A").values((case.axes["M"], k), 1.0, dtype),
        "B": stream.child("B").matrix(n, k, 1.0 / math.sqrt(k), dtype),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64 [M, N], a block of B's rows at a time."""
    a = inputs["A"].double()
    return torch.cat([a @ block.double().T for block in inputs["B"].split(_BLOCK)], 1)


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between products of related matrices."""
    return gemm_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of both generations, and for bfloat16 cuBLASLt."""
    grouped = (Backend("sm80", min_sm=80), Backend("sm90", min_sm=90, max_sm=90))
    if definition.interface.output_specs["C"].dtype == "float16":
        return grouped
    return (*grouped, Backend("cublaslt", min_sm=80))


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the product [M, N], as mm_bf16 or as the one segment of a grouped GEMM."""
    from flashinfer.gemm import SegmentGEMMWrapper, mm_bf16

    if backend == "cublaslt":
        return mm_bf16(inputs["A"], inputs["B"].T, backend=backend)
    a, b = inputs["A"], inputs["B"]
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.int8, device=a.device)
    # lengths of segments would be rounded to float16: 2049 rows to 2048
    indptr = torch.tensor([0, len(a)], dtype=torch.int64, device=a.device)
    wrapper = SegmentGEMMWrapper(workspace, backend=backend)
    return wrapper.run(a, b[None], 1, True, seg_indptr=indptr)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return cuBLAS, which PyTorch calls on CUDA."""
    return (Backend("cublas"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the product [M, N] by torch.nn.functional.linear as in serving."""
    return torch.nn.functional.linear(inputs["A"], inputs["B"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=relations,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
