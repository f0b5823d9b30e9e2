"""gemm: C = A @ B.T in float16 with float32 accumulation.

FlashInfer has no float16 GEMM; the production kernel is cuBLAS through PyTorch. Since a
reference may well call the same cuBLAS, the float64 oracle is what shows its arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.support.definition import Backend, Case, Definition
from generator.support.related_gemm import gemm_relations
from generator.support.relation import Relation
from generator.support.stream import Stream
from generator.support.tolerance import Override

TOLERANCES: tuple[Override, ...] = ()
# rows of B that the oracle holds in float64 at a time
_BLOCK = 4096


def cases(definition: Definition) -> list[Case]:
    """Return one row, an odd number, and more rows than a tile has."""
    return [
        Case("one-row", "small", {"M": 1}),
        Case("odd-rows", "small", {"M": 7}),
        Case("rows", "medium", {"M": 65}),
        Case("many-rows", "large", {"M": 2048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return float16 A and B that make the elements of C about 1."""
    n, k = definition.axes["N"], definition.axes["K"]
    return {
        "A": stream.child("A").values((case.axes["M"], k), 1.0, torch.float16),
        "B": stream.child("B").matrix(n, k, 1.0 / math.sqrt(k), torch.float16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product in float64, a block of B's rows at a time."""
    a = inputs["A"].double()
    return torch.cat([a @ block.double().T for block in inputs["B"].split(_BLOCK)], 1)


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between products of related matrices."""
    return gemm_relations(definition)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the library that PyTorch calls on CUDA."""
    return (Backend("cublas"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call cuBLAS as serving code does, through torch.nn.functional.linear."""
    return torch.nn.functional.linear(inputs["A"], inputs["B"])
