"""Grouped products: padding, rows beyond a count, and what adapters clear."""

from __future__ import annotations

import torch

from generator.ops.op_types.grouped_gemm_fp8 import op
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import loaded, run_of, sized

AXES = {"num_experts": 3, "N": 256, "K": 384, "num_n_blocks": 2, "num_k_blocks": 3}
CONTIGUOUS = "grouped_gemm_fp8_contiguous_e16_n1536_k2048"
MASKED = "grouped_gemm_fp8_masked_e16_n1536_k2048"


def inputs_of(name, case):
    definition = sized(name, **AXES)
    (chosen,) = (c for c in op.cases(definition) if c.name == case)
    return definition, op.make_inputs(definition, chosen, Stream("grouped"))


def test_rows_of_an_expert_fill_whole_blocks():
    definition, inputs = inputs_of(CONTIGUOUS, "first-and-last")
    named = inputs["m_indices"]
    assert len(named) == 3 * 128
    assert named[:4].tolist() == [0, 0, 0, -1]
    assert named[128:131].tolist() == [1, 1, -1]
    assert named[256:258].tolist() == [2, -1]
    assert op.defined_rows(definition, inputs).sum() == 6


def test_padding_is_zero_whatever_lies_there():
    _, inputs = inputs_of(CONTIGUOUS, "first-and-last")
    out = run_of(loaded(CONTIGUOUS).reference)(*inputs.values())
    assert out[:3].any(dim=1).all()
    assert not out[3:128].any()


def test_what_a_kernel_leaves_beyond_a_count_is_cleared():
    _, inputs = inputs_of(MASKED, "first-and-last")
    counts = inputs["masked_m"]
    left = torch.ones(3, 8, 4)
    cleared = op._cleared(left, counts, 8)
    assert cleared.sum(dim=(1, 2)).tolist() == [12.0, 0.0, 8.0]


def test_both_layouts_are_one_product():
    definition, inputs = inputs_of(MASKED, "first-and-last")
    masked = op.oracle(definition, inputs)
    rows = [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]
    flat = {
        "a": torch.stack([inputs["a"][r].view(torch.uint8) for r in rows]),
        "a_scale": torch.stack([inputs["a_scale"][r] for r in rows]),
        "b": inputs["b"],
        "b_scale": inputs["b_scale"],
        "m_indices": torch.tensor([expert for expert, _ in rows], dtype=torch.int32),
    }
    flat["a"] = flat["a"].view(torch.float8_e4m3fn)
    contiguous = op.oracle(sized(CONTIGUOUS, **AXES), flat)
    assert torch.equal(contiguous, torch.stack([masked[row] for row in rows]))
