"""gemm_backward: grad_C @ B, and grad_C.T @ A over all tokens, with float32 sums.

The production kernel is cuBLAS, which PyTorch's autograd of linear layers calls with one
factor transposed. The oracle is float64 autograd of a product of its own.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.op_types.gemm_backward.relations import gradient_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_ONCE = (
    "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, its square 2^-16"
)
_SUMS = (
    "float32 sums of at most 28672 products, of about 1 in all: off by 2^-24 of a partial "
    "sum in each step, of which the root of 28672 is left, 1e-5, four deviations 4e-5"
)
# Fasi, Higham, Mikaitis and Pranesh 2021, doi 10.7717/peerj-cs.330: sums are truncated
_TENSOR_CORES = (
    "tensor cores cut off what lies below float32 instead of rounding, 16 products at a "
    "time: 512 times 2^-23 for 8192 tokens; n partial sums shrink by n/2 times 2^-24"
)


def _size(definition: Definition, case: Case) -> float:
    """Return how large a case's outputs are."""
    return float(case.params.get("std", 1.0))


TOLERANCES = (
    *(
        Override(
            output,
            Tolerance(rtol=rtol, atol=atol, nmse=1.6e-5),
            f"{_ONCE}{more}; {_SUMS}",
            source=source,
            growth=_size,
        )
        for output in ("grad_A", "grad_B")
        for source, rtol, atol, more in (
            ("oracle", 4e-3, 4e-5, ""),
            (None, 8e-3, 1.2e-4, f", or neighbours of two such; {_TENSOR_CORES}"),
        )
    ),
    Override(
        "main_grad", Tolerance(1e-6, 1e-5, 1e-11), _SUMS, source="oracle", growth=_size
    ),
    Override(
        "main_grad",
        Tolerance(1e-6, 7e-5, 1e-9, bias=260 * 2.0**-24),
        _TENSOR_CORES,
        source="pytorch",
        growth=_size,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, an odd number, more than a tile, and more than 4,096."""
    return [
        Case("one-token", "small", {"M": 1}),
        Case("odd-tokens", "small", {"M": 7}),
        Case("small-gradients", "small", {"M": 5}, {"std": 2.0**-12}),
        Case("batch", "medium", {"M": 67}),
        Case("past-limits", LIMITS, {"M": 8_219}),
        Case("long-batch", "large", {"M": 4_096}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return grad_C bfloat16 [M, N] and the other factor; outputs are about 1."""
    m, n, k = case.axes["M"], definition.axes["N"], definition.axes["K"]
    is_wgrad = "A" in definition.interface.inputs
    deviation = case.params.get("std", 1.0) / math.sqrt(m if is_wgrad else n)
    grad = stream.child("grad_C").values((m, n), deviation).to(torch.bfloat16)
    if is_wgrad:
        x = stream.child("A").values((m, k)) + 0.1
        return {"grad_C": grad, "A": x.to(torch.bfloat16)}
    return {"grad_C": grad, "B": stream.child("B").matrix(n, k, 1.0, torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the gradient, float64, by autograd of a product."""
    grad = inputs["grad_C"].double()
    is_wgrad = "A" in inputs
    rows, size = grad.shape
    known = inputs["A" if is_wgrad else "B"].double()
    shape = (size if is_wgrad else rows, known.shape[1])
    leaf = torch.zeros(shape, dtype=known.dtype, device=known.device).requires_grad_()
    with torch.enable_grad():
        pair = (known, leaf) if is_wgrad else (leaf, known)
        product = torch.einsum("mk,nk->mn", *pair)
        return torch.autograd.grad(product, leaf, grad)[0]


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return cuBLAS, which PyTorch calls on CUDA."""
    return (Backend("cublas"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the product that autograd of a linear layer asks for."""
    grad = inputs["grad_C"]
    if "B" in inputs:
        return torch.mm(grad, inputs["B"])
    if "main_grad" in definition.interface.outputs:
        return torch.mm(grad.T, inputs["A"], out_dtype=torch.float32)
    return torch.mm(grad.T, inputs["A"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gradient_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
