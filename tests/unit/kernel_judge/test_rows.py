"""Rows that no production kernel defines: which outputs have them."""

from __future__ import annotations

import torch

from kernel_judge.checks.pairs import keep_rows
from kernel_judge.definition import TensorSpec


def test_rows_that_no_kernel_defines_are_told_by_the_axis_not_by_a_length():
    pool = TensorSpec(("slots", "dim"), "bfloat16")
    output = TensorSpec(("batch", "dim"), "bfloat16")
    assert output.leading_axis == "batch"
    assert pool.leading_axis != output.leading_axis
    assert TensorSpec(None, "float32").leading_axis is None
    assert TensorSpec((), "float32").leading_axis is None


def test_rows_of_a_wrong_shape_are_left_to_the_comparison():
    rows = torch.tensor([True, False, True])
    assert keep_rows(torch.arange(3), rows).tolist() == [0, 2]
    assert keep_rows(torch.arange(4), rows).tolist() == [0, 1, 2, 3]
    assert keep_rows("text", rows) == "text"
