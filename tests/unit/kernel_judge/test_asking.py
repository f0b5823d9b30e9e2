"""A kernel whose build fails is tried once a run; any other error is raised each time."""

from __future__ import annotations

from typing import Any

import pytest

from generator.rules.subjects import subject_of
from kernel_judge.checks import asking
from kernel_judge.checks.asking import ask, why_not_built
from kernel_judge.definition import Backend
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import Skip
from tests.builders import CPU, loaded

NINJA = (
    "Error building extension 'norm': [1/2] nvcc -c norm.cu\n"
    'norm.cu(7): error: identifier "x" is undefined\n'
    "ninja: build stopped: subcommand failed."
)


@pytest.fixture(autouse=True)
def forgets(monkeypatch):
    monkeypatch.setattr(asking, "_not_built", {})


def asks(error: Exception, name: str = "rmsnorm_h128", backend: str = "jit") -> Any:
    subject = subject_of(loaded(name))
    trial = subject.trial(subject.cases(("small",))[0], CPU)
    calls = []

    def adapter(*given: Any) -> Any:
        calls.append(given)
        raise error

    try:
        ask(adapter, "flashinfer", Backend(backend), trial, lambda *given: 1)
    except (Exception, Skip) as raised:  # noqa: BLE001 - as a check sees it
        return raised, len(calls)


def test_build_that_failed_is_not_tried_again():
    raised, calls = asks(RuntimeError(NINJA))
    assert str(raised) == NINJA
    assert calls == 1
    raised, calls = asks(RuntimeError(NINJA))
    assert isinstance(raised, Skip)
    assert raised.obstacle.kind == Kind.BROKEN
    assert 'identifier "x" is undefined' in str(raised)
    assert calls == 0


@pytest.mark.parametrize(
    "other", [{"backend": "other"}, {"name": "rmsnorm_h4096"}], ids=["backend", "name"]
)
def test_other_kernels_are_tried(other):
    asks(RuntimeError(NINJA))
    assert asks(RuntimeError(NINJA), **other)[1] == 1


def test_any_other_error_is_raised_each_time():
    for _ in range(2):
        raised, calls = asks(RuntimeError("CUDA error: an illegal memory access"))
        assert isinstance(raised, RuntimeError)
        assert calls == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NINJA, 'norm.cu(7): error: identifier "x" is undefined'),
        ("Ninja build failed", "Ninja build failed"),
        ("nvcc was not found", "nvcc was not found"),
        ("shape mismatch", None),
        ("", None),
    ],
)
def test_reason_is_the_first_error_of_the_compiler(text, why):
    assert why_not_built(RuntimeError(text)) == why
