"""Claims, and the relations that an axis alone gives."""

from __future__ import annotations

import pytest
import torch

from generator.ops.row_relations import backwards, select, taken
from kernel_judge.comparison.compare import ERROR, FAILED, PASSED, Comparison
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition, Interface
from kernel_judge.relation import Bound, Claim, ReferenceCall, alike

CPU = torch.device("cpu")
NEAR = Bound(Tolerance(rtol=0.0, atol=0.5), "for the test")
ONES = torch.ones(2, 3)
INTERFACE = Interface(
    {"x": "float32[M, N]", "y": "float32[N]", "f": "float8_e4m3fn[M]", "s": "float32"},
    {"z": "float32[M, N]"},
)
TWICE = Definition("twice", "twice", INTERFACE, {"N": 3})


@pytest.mark.parametrize(
    ("actual", "bound", "verdict"),
    [
        (ONES + 0.25, NEAR, PASSED),
        (ONES + 0.75, NEAR, FAILED),
        (ONES, Bound(EXACT, ""), PASSED),
        (ONES + 1e-6, Bound(EXACT, ""), FAILED),
        (ONES * float("nan"), NEAR, FAILED),
        (ONES[:1], NEAR, FAILED),
        ("ones", NEAR, FAILED),
    ],
)
def test_a_claim_is_judged_by_its_bound(actual, bound, verdict):
    assert Claim("z", actual, ONES, bound).verdict().verdict == verdict


def test_the_users_tolerance_replaces_all_but_exact_bounds():
    far = ONES + 0.75
    assert Claim("z", far, ONES, NEAR).verdict(run_tolerance=0.5).passed
    assert not Claim("z", ONES + 0.25, ONES, NEAR).verdict(run_tolerance=0.1).passed
    assert not Claim("z", far, ONES, Bound(EXACT, "")).verdict(0.5).passed


def test_zeros_prove_nothing():
    zeros = torch.zeros(3)
    found = Claim("z", zeros, zeros, NEAR).verdict()
    assert (found.verdict, found.passed) == (ERROR, False)
    assert found.findings == ("vacuous: run() returned nothing but zeros",)


def test_a_judge_replaces_the_bound():
    judged = Claim("z", 1, 2, NEAR, lambda a, e: Comparison(PASSED, (f"{a} {e}",)))
    assert judged.verdict().findings == ("1 2",)


def test_only_outputs_that_are_expected_are_claimed():
    claims = list(alike({"z": ONES}, {"z": ONES}, {"z": NEAR, "lse": NEAR}))
    assert [claim.output for claim in claims] == ["z"]


def test_what_is_asked_gets_copies_and_answers_by_name():
    def run(x, y, f, s):
        x.fill_(7.0)
        y.fill_(5.0)
        return x * s

    asked = ReferenceCall(TWICE, run, lambda inputs: ("y",), CPU)
    given = {"x": ONES.clone(), "y": torch.ones(3), "f": None, "s": 2.0}
    answer = asked(given)
    assert list(answer) == ["z", "y"]
    assert torch.equal(answer["z"], 14 * ONES)
    assert torch.equal(answer["y"], torch.full((3,), 5.0))
    assert torch.equal(given["x"], ONES)
    assert torch.equal(given["y"], torch.ones(3))
    with pytest.raises(AssertionError, match=r"run\(\) returned 2 values"):
        ReferenceCall(TWICE, lambda *_: (ONES, ONES), None, CPU)(given)


def test_draws_of_two_calls_differ_and_are_the_same_again():
    def draws():
        asked = ReferenceCall(TWICE, lambda *_: torch.rand(8), None, CPU)
        return [asked({"x": ONES})["z"] for _ in range(2)]

    (first, second), (again, _) = draws(), draws()
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_an_axis_is_reordered_wherever_it_stands():
    x = torch.arange(6.0).reshape(2, 3)
    f = torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn)
    inputs = {"x": x, "y": torch.arange(3.0), "f": f, "s": 1.0, "z": None}
    columns = taken(INTERFACE, inputs, "N", backwards)
    assert torch.equal(columns["x"], x.flip(1))
    assert torch.equal(columns["y"], torch.tensor([2.0, 1.0, 0.0]))
    assert columns["f"] is f
    rows = taken(INTERFACE, inputs, "M", backwards)
    assert torch.equal(rows["x"], x.flip(0))
    assert rows["f"].float().tolist() == [2.0, 1.0]
    assert (rows["s"], rows["z"]) == (1.0, None)
    assert select(x, 1, torch.tensor([2])).is_contiguous()
