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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm.relations import gemm_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_SUMS = (
    "float32 sums of 7168 products at most, each rounded by 2^-24 of a sum of about 1: "
    "5e-6 for the root of 7168 of them"
)
# Fasi, Higham, Mikaitis and Pranesh 2021, doi 10.7717/peerj-cs.330: sums are truncated
_TENSOR_CORES = (
    "tensor cores cut off what lies below float32 instead of rounding, 16 products at a "
    "time: 448 times 2^-23 for a K of 7168. What is cut off has the sum's own sign: of "
    "n partial sums, the j-th of which has j/n of the whole in the mean, each loses half "
    "a last place, 2^-24 of itself, so that the whole shrinks by n/2 times 2^-24, 1.34e-5 "
    "for 448"
)
_ADDED = "the bias is added in float32, and the sum rounded once: half an ulp is 2^-8 at most"
TOLERANCES = (
    Override("out", Tolerance(4e-3, 4e-5, 5e-6), _ADDED, source="oracle"),
    Override("logits", Tolerance(1e-6, 1e-5, 1e-11), _SUMS, source="oracle"),
    Override(
        "logits",
        Tolerance(1e-6, 6e-5, 1e-9, bias=224 * 2.0**-24),
        _TENSOR_CORES,
        source="pytorch",
    ),
)
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
    """Return A [M, K] and B [N, K] of one dtype, or batches; elements of C are about 1.

    A bias, of N, has elements of about 1 as well.
    """
    n, k = definition.axes["N"], definition.axes["K"]
    m, batch = case.axes["M"], definition.axes.get("batch_size", 1)
    dtype = dtype_of(definition.interface.input_specs["A"].dtype)
    a = stream.child("A").values((batch * m, k), 1.0, dtype)
    b = stream.child("B").matrix(batch * n, k, 1.0 / math.sqrt(k), dtype)
    if "batch_size" in definition.axes:
        return {"A": a.view(batch, m, k), "B": b.view(batch, n, k)}
    if "bias" not in definition.interface.inputs:
        return {"A": a, "B": b}
    return {"A": a, "B": b, "bias": stream.child("bias").values((n,), 1.0, dtype)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64, a block of B's rows at a time, and the bias added."""
    a, b = inputs["A"].double(), inputs["B"]
    if a.dim() == 3:
        return torch.bmm(a, b.double().mT)
    product = torch.cat([a @ rows.double().T for rows in torch.split(b, _BLOCK)], 1)
    return product + inputs["bias"].double() if "bias" in inputs else product


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of both generations, and for bfloat16 cuBLASLt.

    None of them has a batch, a bias, or sums in float32.
    """
    interface = definition.interface
    if list(interface.inputs) != ["A", "B"] or "batch_size" in definition.axes:
        return ()
    if "logits" in interface.outputs:
        return ()
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
    """Return the product as in serving: by linear, bmm, or mm with another dtype."""
    a, b = inputs["A"], inputs["B"]
    if a.dim() == 3:
        return torch.bmm(a, b.mT)
    if "logits" in definition.interface.outputs:
        return torch.mm(a, b.T, out_dtype=torch.float32)
    return torch.nn.functional.linear(a, b, inputs.get("bias"))


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gemm_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
