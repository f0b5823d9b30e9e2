"""FlashInfer's functions matched by name: what is called, and why others are not."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
import torch

from generator.running.automatch import (
    UnmatchedFunction,
    bind,
    call_by_name,
    find,
    pair,
)
from generator.running.harness import MatchesByName
from generator.running.parametrize import _over_backends
from kernel_judge.checks import sources
from kernel_judge.definition import Backend, Definition, Interface
from kernel_judge.inputs import generic
from tests.builders import CPU, ignore_property, skip_reason

API = "flashinfer.odd.scaled"
INTERFACE = Interface(
    {"hidden_states": "float32[M, N]", "scale": "float32"}, {"y": "float32[M, N]"}
)
MADE = Definition("d", "odd", INTERFACE, {"N": 4})


@pytest.fixture
def library(monkeypatch):
    """Return flashinfer.odd, in which nothing is yet, callable on the CPU."""
    package, odd = ModuleType("flashinfer"), ModuleType("flashinfer.odd")
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    monkeypatch.setitem(sys.modules, "flashinfer.odd", odd)
    monkeypatch.setattr(sources, "backend_obstacle", lambda *_: None)
    return odd


def rendered(run, apis=(API,), **changes):
    attributes = {
        "name": "d",
        "op_type": "odd",
        "interface": INTERFACE,
        "axes": {"N": 4},
        "reference": staticmethod(lambda: run),
        "unresolved": "no op module for odd",
        "fi_apis": apis,
    }
    return type("Rendered", (MatchesByName,), {**attributes, **changes})


def match(cls, record=ignore_property):
    subject = cls.subject()
    (case,) = subject.cases()
    trial = subject.trial(case)
    (backend,) = subject.backends("flashinfer")
    cls().test_matches_flashinfer(trial, backend, record)


def reference(hidden_states, scale):
    return hidden_states * (scale + 1)


def test_a_function_whose_parameters_are_the_inputs_is_called(library):
    def scaled(input, *, scale, out=None, **more):
        return input * (scale + 1)

    library.scaled = scaled
    records = []
    match(rendered(reference), lambda name, value: records.append(json.loads(value)))
    (record,) = records
    assert (record["source"], record["verdict"]) == ("flashinfer/odd.scaled", "PASSED")


def test_a_function_that_computes_something_else_is_red(library):
    library.scaled = lambda x, scale: x * scale
    with pytest.raises(AssertionError, match="mismatched elements"):
        match(rendered(reference))


def raises(x, scale):
    raise ValueError("head_dim\n4")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, scale, plan: x, f"{API} needs plan, which is no input"),
        (lambda x: x, f"{API} has no parameter for scale"),
        (lambda *args, **named: 0, f"{API} has no parameter for hidden_states, scale"),
        (lambda x, input, scale: x, f"{API} has no parameter for hidden_states"),
        (lambda x, scale: None, f"{API} returns None: "),
        (lambda x, scale: (x, x), f"{API} returns 2 values, the definition declares 1"),
        (raises, f"{API} rejects guessed inputs: ValueError: head_dim 4"),
        (ModuleType, f"{API} is a class: "),
        (7, f"{API} is no function"),
    ],
)
def test_what_can_not_be_matched_is_unresolved_with_the_reason(
    library, function, reason
):
    library.scaled = function
    said = skip_reason(lambda: match(rendered(reference)))
    assert said.startswith(f"flashinfer: UNRESOLVED: {reason}")


@pytest.mark.parametrize(
    ("api", "reason"),
    [
        (API, "no flashinfer.odd.scaled: AttributeError: "),
        ("flashinfer.nowhere.f", "no flashinfer.nowhere.f: ModuleNotFoundError: "),
        ("os.system", "os.system is no path below flashinfer"),
        ("flashinfer.odd.a b", "flashinfer.odd.a b is no path below flashinfer"),
        ("flashinfer..x", "flashinfer..x is no path below flashinfer"),
    ],
)
def test_what_is_not_there_is_unresolved(library, api, reason):
    with pytest.raises(UnmatchedFunction) as caught:
        find(api)
    assert str(caught.value).startswith(reason)


def test_memory_that_runs_out_is_left_to_the_guard(library):
    def scaled(x, scale):
        raise torch.OutOfMemoryError("CUDA out of memory")

    library.scaled = scaled
    with pytest.raises(torch.OutOfMemoryError):
        call_by_name(API, MADE, {"hidden_states": torch.ones(2), "scale": 1.0})


def test_positional_only_parameters_are_given_by_position():
    def function(x, /, scale):
        return x

    assert bind("f", function, {"scale": 2, "x": 1}) == ([1], {"scale": 2})


@pytest.mark.parametrize(
    ("parameters", "inputs", "expected"),
    [
        (["q", "k"], ["k", "q"], {"q": "q", "k": "k"}),
        (["query", "k"], ["q", "k"], {"query": "q", "k": "k"}),
        (["input", "x"], ["x"], {"x": "x"}),
        (["input", "x"], ["hidden_states"], {}),
        (["other"], ["x"], {}),
    ],
)
def test_names_are_paired_where_only_one_is_left(parameters, inputs, expected):
    assert pair(parameters, inputs) == expected


def test_inputs_that_break_a_constraint_or_give_nan_are_not_compared(library):
    library.scaled = lambda x, scale: x
    broken = Interface(INTERFACE.inputs, INTERFACE.outputs, ("scale > 2",))
    said = skip_reason(lambda: match(rendered(reference, interface=broken)))
    assert said == "flashinfer: UNRESOLVED: guessed inputs break ['scale > 2']"
    nan = rendered(lambda hidden_states, scale: hidden_states * float("nan"))
    said = skip_reason(lambda: match(nan))
    assert said == "flashinfer: UNRESOLVED: run() gives NaN in y for guessed inputs"


def test_a_definition_without_a_tag_is_one_skip_with_the_reason(library):
    cls = rendered(reference, apis=())
    said = skip_reason(lambda: match(cls))
    assert said == "flashinfer: UNRESOLVED: the definition has no fi_api tag"
    assert cls.subject().why_unresolved("sglang") == "no op module for odd"
    backends = rendered(reference).subject().backends("flashinfer")
    assert list(backends) == [Backend("odd.scaled")]
    cases = generic.cases(MADE)
    assert len(_over_backends(cls.subject(), "flashinfer", cases, CPU)) == 1
