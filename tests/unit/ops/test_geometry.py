"""The shorter axes of audits still obey what the definitions say of their axes."""

from __future__ import annotations

import pytest

from generator.dataset.python_source import parse_expression
from generator.ops import geometry
from generator.ops.family import every_spec
from generator.rules.constraints import names_in
from kernel_judge.constraints import evaluate

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
