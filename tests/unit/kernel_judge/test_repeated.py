"""Long axes at a low price: what repeats, what the oracle sees, what is noticed."""

from __future__ import annotations

import pytest
import torch

from generator.ops.limit_cases import lengthened, past_limits
from kernel_judge import checks
from kernel_judge.definition import LIMITS, Case, Definition, Interface
from kernel_judge.inputs.repeated import DISTINCT, positions, sampled
from kernel_judge.subject import Op, Subject

INTERFACE = Interface(
    {"x": "float32[rows, width]", "code": "float8_e4m3fn[width, rows]", "k": "int32"},
    {"y": "float32[rows, width]"},
)
DEFINITION = Definition("made_up", "made_up", INTERFACE, {"width": 3})
LONG = 4_099
seen = []


def make_inputs(definition, case, stream):
    rows = case.axes["rows"]
    x = stream.child("x").values((rows, 3))
    code = stream.child("code").values((3, rows)).to(torch.float8_e4m3fn)
    return {"x": x, "code": code, "k": 2}


def oracle(definition, inputs):
    seen.append(len(inputs["x"]))
    return inputs["x"].double() * inputs["k"] + inputs["code"].double().T


def right(x, code, k):
    return x * k + code.float().T


def subject(run=right, case=None):
    op = Op(
        cases=lambda definition: [case or past_limits("rows", LONG)],
        make_inputs=make_inputs,
        oracle=oracle,
    )
    return Subject(DEFINITION, op, lambda: run)


def checked(run):
    one = subject(run)
    (case,) = one.cases((LIMITS,))
    return checks.oracle(one, one.trial(case))


def test_slices_come_in_turn_along_each_dimension_of_the_axis():
    one = subject()
    inputs = one.trial(one.cases((LIMITS,))[0]).inputs
    x, code = inputs["x"], inputs["code"].float()
    assert x.shape == (LONG, 3)
    assert code.shape == (3, LONG)
    assert torch.equal(x[DISTINCT : 2 * DISTINCT], x[:DISTINCT])
    assert torch.equal(code[:, 4_000], code[:, 4_000 % DISTINCT])
    assert len(x[:DISTINCT].unique(dim=0)) == DISTINCT
    assert inputs["k"] == 2


def test_the_oracle_sees_few_and_the_right_ones_pass():
    seen.clear()
    found = checked(right)
    assert found.passed
    assert seen == [len(positions(LONG))]
    assert max(seen) < 64
    assert found.comparisons[0].record["size"] == LIMITS


@pytest.mark.parametrize("limit", [2**k for k in range(1, 13)])
def test_a_run_that_is_right_up_to_a_limit_is_wrong(limit):
    def wrong(x, code, k):
        y = right(x, code, k)
        y[limit:] = 0
        return y

    assert not checked(wrong).passed


@pytest.mark.parametrize("back", [2**k for k in range(1, 13)])
def test_a_slice_read_some_power_of_two_too_early_shows(back):
    def wrong(x, code, k):
        y = right(x, code, k)
        y[back:] = y[:-back].clone()
        return y

    assert not checked(wrong).passed


@pytest.mark.parametrize("rows", [1, LONG - 1, LONG + 1])
def test_another_number_of_rows_is_wrong(rows):
    found = checked(lambda x, code, k: torch.zeros(rows, 3))
    assert "shape" in found.defect


def test_a_case_that_does_not_repeat_is_its_own_sample():
    one = subject(case=Case("long", LIMITS, {"rows": 5}))
    trial = one.trial(one.cases((LIMITS,))[0])
    assert sampled(trial) is trial


def test_a_lengthened_case_keeps_its_parameters_and_other_axes():
    case = Case("batch", "medium", {"rows": 7, "heads": 2}, {"std": 2.0})
    found = lengthened(case, "rows", 8_219)
    assert (found.size, found.repeats) == (LIMITS, "rows")
    assert found.axes == {"rows": 8_219, "heads": 2}
    assert found.params == {"std": 2.0}


@pytest.mark.parametrize("length", [1, 2, 3, 61, 8_219])
def test_positions_are_on_both_sides_of_each_power_of_two(length):
    found = positions(length).tolist()
    assert found == sorted({*found})
    assert found[0] == 0
    assert found[-1] == length - 1
    for power in (1 << k for k in range(20)):
        assert {p for p in (power - 1, power) if p < length} <= {*found}


def test_inputs_that_break_a_constraint_fail_where_no_other_test_looks():
    interface = Interface(INTERFACE.inputs, INTERFACE.outputs, ("k == 3",))
    one = subject()
    wrong = Subject(
        Definition("made_up", "made_up", interface, {"width": 3}), one.op, lambda: right
    )
    trial = wrong.trial(wrong.cases((LIMITS,))[0])
    with pytest.raises(AssertionError, match="k == 3"):
        checks.oracle(wrong, trial)
