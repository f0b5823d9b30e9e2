"""A production kernel is called once a case."""

from __future__ import annotations

from generator.ops.op_types.rmsnorm import op as rmsnorm
from kernel_judge.checks import sources as of_sources
from kernel_judge.definition import Backend
from tests.builders import (
    class_of,
    ignore_property,
    known,
    loaded,
    run_of,
    trial_of,
)


def test_a_kernel_is_asked_once_a_case(monkeypatch):
    asked = []
    backends = (Backend("one"), Backend("two"))

    def adapter(definition, inputs, backend):
        asked.append(backend)
        return cls.op.oracle(definition, inputs).to(inputs["hidden_states"].dtype)

    name = "rmsnorm_h128"
    cls = class_of(
        rmsnorm,
        known(name),
        run_of(loaded(name).reference),
        flashinfer_backends=staticmethod(lambda definition: backends),
        flashinfer_ground_truth=staticmethod(adapter),
    )
    sources = [("flashinfer", backend) for backend in backends]
    monkeypatch.setattr(of_sources, "usable_sources", lambda cls, device: sources)
    monkeypatch.setattr(of_sources, "backend_obstacle", lambda *source: None)
    first, second, *_ = cls.op.cases(cls.definition())
    trial = trial_of(cls, first)
    for backend in backends:
        cls().test_matches_flashinfer(trial, backend, ignore_property)
    cls().test_ground_truths_agree(trial, ignore_property)
    assert asked == ["one", "two"]
    cls().test_ground_truths_agree(trial_of(cls, second), ignore_property)
    assert asked == ["one", "two"] * 2
