"""The harness's tests of a class with live kernels that stand-ins pretend."""

from __future__ import annotations

import json

import pytest

from generator.ops.op_types.gemm import op as gemm
from generator.running import harness
from kernel_judge.checks import sources
from kernel_judge.definition import Backend
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    run_of,
    skip_reason,
    trial_of,
)


@pytest.fixture
def usable(monkeypatch):
    """Pretend that every provider can be called on the CPU."""
    monkeypatch.setattr(sources, "backend_obstacle", lambda *_: None)
    monkeypatch.setattr(
        sources,
        "usable_sources",
        lambda subject, device: [("pytorch", b) for b in subject.backends("pytorch")],
    )


def gemm_class(**changes):
    name = "gemm_n128_k2048"
    return class_of(gemm, known(name), run_of(loaded(name).reference), **changes)


def test_a_live_kernel_is_compared_with_the_reference(usable):
    cls = gemm_class()
    trial = trial_of(cls, cases_of(cls)[1])
    records = []
    cls().test_matches_pytorch(
        trial, Backend("cublas"), lambda name, value: records.append(json.loads(value))
    )
    (record,) = records
    assert (record["source"], record["verdict"]) == ("pytorch/cublas", "PASSED")
    assert record["rows_left_out"] == 0


def test_a_kernel_that_differs_is_red(usable):
    def ground_truth(definition, inputs, backend):
        return inputs["A"] @ inputs["B"].T * 2

    cls = gemm_class(pytorch_ground_truth=staticmethod(ground_truth))
    trial = trial_of(cls, cases_of(cls)[1])
    with pytest.raises(AssertionError, match="against pytorch/cublas, odd-rows: FAIL"):
        cls().test_matches_pytorch(trial, Backend("cublas"), ignore_property)


def test_ground_truths_are_held_against_each_other(usable):
    factors = {"one": 1.0, "two": 1.0, "three": 1.5}

    def ground_truth(definition, inputs, backend):
        return inputs["A"] @ inputs["B"].T * factors[backend]

    def with_backends(*names):
        made = tuple(map(Backend, names))
        return gemm_class(
            pytorch_backends=staticmethod(lambda definition: made),
            pytorch_ground_truth=staticmethod(ground_truth),
        )

    records = []
    cls = with_backends("one", "two")
    trial = trial_of(cls, cases_of(cls)[1])
    cls().test_ground_truths_agree(trial, lambda name, value: records.append(value))
    (record,) = map(json.loads, records)
    assert record["source"] == "pytorch/one ~ pytorch/two"
    cls = with_backends("one", "three")
    with pytest.raises(AssertionError, match="FAILED"):
        cls().test_ground_truths_agree(trial_of(cls, trial.case), ignore_property)
    cls = with_backends("one")
    reason = skip_reason(
        lambda: cls().test_ground_truths_agree(
            trial_of(cls, trial.case), ignore_property
        )
    )
    assert reason == "fewer than two ground truths are usable here: pytorch/one"


def test_an_unresolved_definition_is_skipped_with_the_reason():
    cls = gemm_class(unresolved="no source knows eps")
    trial, test = trial_of(cls, cases_of(cls)[0]), cls()
    calls = {
        "oracle": lambda: test.test_matches_oracle(trial, ignore_property),
        "pytorch": lambda: test.test_matches_pytorch(
            trial, Backend("cublas"), ignore_property
        ),
    }
    for source, call in calls.items():
        assert skip_reason(call) == f"{source}: UNRESOLVED: no source knows eps"


def test_the_contract_names_a_wrong_order_of_parameters():
    cls = class_of(gemm, known("gemm_n128_k2048"), lambda B, A: A @ B.T)
    with pytest.raises(AssertionError, match="called with the inputs positionally"):
        cls().test_contract(trial_of(cls, cases_of(cls)[0]))


def test_main_is_pytests_exit_status(monkeypatch):
    given = []
    monkeypatch.setattr(pytest, "main", lambda arguments: given.append(arguments) or 3)
    assert harness.main("file.py", ["-q"]) == 3
    assert given == [["file.py", "-q"]]
