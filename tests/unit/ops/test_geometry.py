"""The shorter axes of audits still obey what the definitions say of their axes."""

from __future__ import annotations

import pytest

from generator.dataset.python_source import parse_expression
from generator.ops import geometry
from generator.ops.family import every_spec
from generator.rules.constraints import names_in
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from kernel_judge.constraints import evaluate
from tests.builders import ROOT

SHORTER = (geometry.reduced, geometry.tiny, geometry.for_limits, geometry.unrounded)


def _broken(spec, shrink):
    """Return the constraints of constant axes alone that shorter ones break."""
    axes = {n: a.value for n, a in spec.axes.items() if a.value is not None}
    shorter = {**axes, **shrink(spec.op_type, axes)}
    return [
        constraint
        for constraint in spec.constraints
        if names_in(constraint) <= axes.keys()
        and not evaluate(parse_expression(constraint), shorter)
    ]


@pytest.mark.parametrize("shrink", SHORTER, ids=lambda shrink: shrink.__name__)
def test_shorter_axes_keep_constraints(shrink):
    broken = {spec.name: _broken(spec, shrink) for spec in every_spec()}
    assert {name: lines for name, lines in broken.items() if lines} == {}


def test_some_constraints_are_of_constant_axes():
    asked = [
        spec.name
        for spec in every_spec()
        if any(
            names_in(c) <= {n for n, a in spec.axes.items() if a.value is not None}
            for c in spec.constraints
        )
    ]
    assert "patch_embed_bias_c4_s128_p2_h1152" in asked


def _of_each_interface():
    """Return one definition of each interface of an op_type."""
    definitions = load_definitions(ROOT).definitions
    return {(d.op_type, d.shapes): d for d in reversed(definitions)}.values()


def test_on_audited_axes_each_interface_has_inputs_that_its_reference_takes():
    wrong = {}
    for definition in _of_each_interface():
        short = geometry.reduced(definition.op_type, definition.const_axes)
        subject = subject_of(definition, short)
        case = subject.cases(("small",))[0]
        try:
            assert subject.trial(case).outputs
        except Exception as error:  # noqa: BLE001 - of whatever op
            wrong[definition.name] = repr(error)
    assert wrong == {}
