"""What a kernel rounds is known by the reference's statement, and nothing else is."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch

from generator.rules.load import load_definitions
from tests.builders import ROOT
from tools.rounded_by_kernels import ROUNDINGS, rounding_of

SOFTMAX = "logits.softmax(dim=-1) → logits.softmax(dim=-1).bfloat16().float()"


def test_every_statement_stands_in_a_reference_of_each_op_type():
    texts = defaultdict(str)
    for one in load_definitions(ROOT, op_types=[], names=[]).definitions:
        texts[one.op_type] += one.reference
    for one in ROUNDINGS:
        before = one.change.partition(" → ")[0]
        assert any(before in texts[op_type] for op_type in one.op_types), one.change
    # the softmax has one statement in all of them
    assert all(SOFTMAX.split(" → ")[0] in texts[name] for name in ROUNDINGS[0].op_types)


@pytest.mark.parametrize(
    ("op_type", "defect", "is_kernels"),
    [
        ("gqa_single", f"precision 17:46 {SOFTMAX}", True),
        ("comm", "dropped 11:8 hidden_states.float() → hidden_states", True),
        ("rmsnorm", "dropped 11:8 hidden_states.float() → hidden_states", False),
        ("gqa_single", f"constant 17:46 {SOFTMAX}", False),
        ("gqa_single", "precision 9:4 q.float() → q.float().bfloat16().float()", False),
        ("moe", "constant 13:26 0xFFFF → 65534", False),
        ("rope", "constant 5:13 500000 → 499999", True),
        ("rope", "constant 5:13 500000 → 500001", False),
        ("rope", "precision 5:13 500000 → 499999", False),
        (
            "moe",
            "precision 9:4 states[tokens] @ w13.T → (states[tokens] @ w13...",
            True,
        ),
    ],
)
def test_defect_is_a_kernels_where_it_rounds_what_that_rounds(
    op_type, defect, is_kernels
):
    assert bool(rounding_of(op_type, defect)) == is_kernels


@pytest.mark.parametrize("position", [4_095, 32_767, 131_071])
def test_base_that_is_one_less_turns_as_float32_does(position):
    # both grow in proportion to the position: no case tells them apart
    steps = torch.arange(0, 128, 2, dtype=torch.float64) / 128
    exact, other = 500_000.0**-steps, 499_999.0**-steps
    by_powers = 1 / torch.tensor(500_000.0) ** steps.float()
    by_exponents = (-torch.tensor(500_000.0).log2() * steps.float()).exp2()
    positions = torch.arange(position - 999, position + 1, dtype=torch.float64)[:, None]
    defect = (position * (exact - other)).abs()
    worst = defect.argmax()

    def off(frequencies):
        angles = (positions.float() * frequencies).double()
        return (angles - positions * exact).abs().amax(0)

    assert off(by_powers).max() > defect.max()
    assert off(by_exponents)[worst] > 0.8 * defect.max()
