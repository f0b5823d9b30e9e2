"""grouped_gemm_fp8: rows times the weight of their expert, float8 with scales of blocks.

Contiguous: rows of an expert follow each other, in whole blocks of 128 rows, each with
its expert's number, -1 in rows that pad. Masked: an expert has a place for many rows and
the number of those that are there. DeepGEMM has both on Hopper, which SGLang's complete
installation brings; FlashInfer's copies of it are for compute capability 10.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.op_types.grouped_gemm_fp8.relations import grouped_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_ONCE = "float32 sums of elements of about 1, rounded once: half an ulp is 2^-8 at most"
_BLOCKS = (
    "tensor cores keep 14 bits of a sum of 32 products, and kernels add four of these in "
    "float32: 4 * 2^-13 of a block's sum, 5e-4 of the RMS for all blocks; both sides "
    "round once, to neighbours at most"
)
TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    Override("out", Tolerance(8e-3, 4e-3, 5e-6), _BLOCKS),
)
BLOCK = 128
_CODE_STD, _SCALE_RMS = 100.0, math.sqrt(7.0)
# rows of the first experts, of the last one, and the size of each case
_ROWS: dict[str, tuple[str, tuple[int, ...], int]] = {
    "one-row": ("small", (1,), 0),
    "first-and-last": ("small", (3, 2), 1),
    "whole-blocks": ("medium", (128, 5), 128),
    "past-limits": (LIMITS, (8_200,), 3),
    "prefill": ("large", (300, 77, 512, 1), 129),
}
_MASKED: dict[str, tuple[str, tuple[int, ...], int]] = {
    "one-row": ("small", (1,), 0),
    "first-and-last": ("small", (3, 0), 2),
    "whole-blocks": ("medium", (128, 17), 5),
    "past-limits": (LIMITS, (1_030, 5), 3),
    "large-batch": ("large", (300, 77, 512, 1), 129),
}


def is_masked(definition: Definition) -> bool:
    """Return whether experts have places for rows."""
    return "masked_m" in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return few rows of the first and the last expert, whole blocks, and long groups."""
    table = _MASKED if is_masked(definition) else _ROWS
    usual = [
        case_of(definition, name, size, rows_of(definition, first, last))
        for name, (size, first, last) in table.items()
    ]
    return [
        *usual,
        *far_apart(usual[1], "a_scale", against=("b_scale",)),
        *far_codes(usual[1], a=1, a_scale=-1, b=1, b_scale=-1),
    ]


def rows_of(
    definition: Definition, first: tuple[int, ...], last: int
) -> tuple[int, ...]:
    """Return the rows of each expert, of which the middle ones have none."""
    experts = definition.axes["num_experts"]
    rows = [*first[: experts - 1], *[0] * experts][:experts]
    rows[-1] = last
    return tuple(rows)


def case_of(
    definition: Definition, name: str, size: str, rows: tuple[int, ...]
) -> Case:
    """Return the case of some rows an expert."""
    if is_masked(definition):
        longest = max(-(-max(rows) // 8) * 8, 8)
        return Case(name, size, {"max_m": longest}, {"rows": rows})
    padded = sum(-(-count // BLOCK) * BLOCK for count in rows)
    return Case(name, size, {"M": padded}, {"rows": rows})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return codes and scales of which elements of the product are about 1.

    Rows that are padding have codes and scales as all others: nobody may add them.
    """
    axes, rows = definition.axes, case.params["rows"]
    experts, n, k = axes["num_experts"], axes["N"], axes["K"]
    k_blocks, n_blocks = k // BLOCK, n // BLOCK
    masked = is_masked(definition)
    shape = (experts, case.axes["max_m"]) if masked else (case.axes["M"],)
    count = math.prod(shape)
    x = stream.child("a").values((count, k), _CODE_STD, torch.float8_e4m3fn)
    weight = stream.child("b").matrix(experts * n, k, _CODE_STD, torch.float8_e4m3fn)
    x_scale = _scales(stream.child("a_scale"), count * k_blocks, 1.0 / _CODE_STD)
    unit = 1.0 / (_CODE_STD * math.sqrt(k))
    scale = _scales(stream.child("b_scale"), experts * n_blocks * k_blocks, unit)
    tensors = {
        "a": x.view(*shape, k),
        "b": weight.view(experts, n, k),
        "a_scale": x_scale.view(*shape, k_blocks),
        "b_scale": scale.view(experts, n_blocks, k_blocks),
    }
    if masked:
        return {**tensors, "masked_m": torch.tensor(rows, dtype=torch.int32)}
    named = [
        expert if row < number else -1
        for expert, number in enumerate(rows)
        for row in range(-(-number // BLOCK) * BLOCK)
    ]
    return {**tensors, "m_indices": torch.tensor(named, dtype=torch.int32)}


def _scales(stream: Stream, count: int, size: float) -> torch.Tensor:
    """Return float32 [count] of RMS `size`, the largest four times the least."""
    drawn = stream.integer_tensor(0, 2**24, count).double() / 2**24
    return ((1.0 + 3.0 * drawn) * (size / _SCALE_RMS)).float()


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the products, float64: sums of codes block by block, then their scales."""
    a, weights = inputs["a"], inputs["b"]
    if not is_masked(definition):
        chosen = inputs["m_indices"].long()
        total = torch.zeros(*a.shape[:1], weights.shape[1], dtype=torch.float64)
        total = total.to(a.device)
        for expert in sorted(set(chosen.tolist()) - {-1}):
            (places,) = torch.where(chosen == expert)
            total[places] = _product(inputs, expert, a, inputs["a_scale"], places)
        return total
    total = torch.zeros(*a.shape[:2], weights.shape[1], dtype=torch.float64)
    total = total.to(a.device)
    for expert, count in enumerate(inputs["masked_m"].tolist()):
        places = torch.arange(count, device=a.device)
        scales = inputs["a_scale"][expert]
        total[expert, places] = _product(inputs, expert, a[expert], scales, places)
    return total


def _product(
    inputs: dict[str, Any],
    expert: int,
    a: torch.Tensor,
    scales: torch.Tensor,
    places: torch.Tensor,
) -> torch.Tensor:
    """Return some rows times an expert's weight: float64 [places, N]."""
    weight = inputs["b"][expert].double()
    of_columns = inputs["b_scale"][expert].double().repeat_interleave(BLOCK, dim=0)
    codes, of_rows = a.double()[places], scales.double()[places]
    tensors = torch.zeros(
        len(places), len(weight), dtype=codes.dtype, device=codes.device
    )
    for block in range(of_rows.shape[1]):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        factors = of_rows[:, block, None] * of_columns[:, block]
        tensors += codes[:, part] @ weight[:, part].T * factors
    return tensors


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows that have an expert; of the masked kind an adapter clears others."""
    if is_masked(definition):
        return torch.ones(len(inputs["a"]), dtype=torch.bool)
    named: torch.Tensor = inputs["m_indices"] >= 0
    return named


_CLEARED = "outputs rewritten: rows that an expert has not are set to 0"


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return DeepGEMM as FlashInfer has it, for compute capability 10 alone."""
    rewrites = _CLEARED if is_masked(definition) else ""
    return (Backend("deepgemm", min_sm=100, max_sm=103, rewrites=rewrites),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's kernel; return bfloat16 of the output's shape."""
    from flashinfer import gemm

    names = ("a", "b", "a_scale", "b_scale")
    tensors = [inputs[name] for name in names]
    if not is_masked(definition):
        return gemm.group_deepgemm_fp8_nt_groupwise(*tensors, inputs["m_indices"])
    counts = inputs["masked_m"]
    longest = inputs["a"].shape[1]
    out = gemm.batch_deepgemm_fp8_nt_groupwise(*tensors, counts, longest)
    return _cleared(out, counts, longest)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return DeepGEMM, which needs its own package."""
    rewrites = _CLEARED if is_masked(definition) else ""
    return (Backend("deepgemm", min_sm=90, needs=("deep_gemm",), rewrites=rewrites),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call DeepGEMM as SGLang does; return bfloat16 of the output's shape."""
    from sglang.srt.layers.deep_gemm_wrapper import entrypoint

    a, b = inputs["a"], inputs["b"]
    pairs = (a, inputs["a_scale"]), (b, inputs["b_scale"])
    shape = (*a.shape[:-1], b.shape[1])
    out = torch.empty(shape, dtype=torch.bfloat16, device=a.device)
    if not is_masked(definition):
        entrypoint.grouped_gemm_nt_f8f8bf16_contig(*pairs, out, inputs["m_indices"])
        return out
    counts, longest = inputs["masked_m"], a.shape[1]
    entrypoint.grouped_gemm_nt_f8f8bf16_masked(*pairs, out, counts, longest)
    return _cleared(out, counts, longest)


def _cleared(out: Any, counts: torch.Tensor, longest: int) -> Any:
    """Return the output with zeros in rows that an expert has not."""
    beyond = torch.arange(longest, device=counts.device) >= counts[:, None]
    return out.masked_fill(beyond[:, :, None], 0.0)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=grouped_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
