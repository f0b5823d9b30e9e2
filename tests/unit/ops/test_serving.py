"""A definition with another interface than its op_type's gets generic tests, and a reason."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from generator.dataset.definition import LoadedDefinition
from generator.ops.family import every_spec
from generator.ops.registry import op_packages
from generator.ops.serving import spec_of, why_not_served
from generator.problems import Severity
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from generator.rules.unproven import why_unproven
from generator.validation.validate import (
    Counts,
    make_plan,
    run_plan,
    validation_report,
)
from tests.builders import ROOT


@cache
def all_loaded() -> dict[str, LoadedDefinition]:
    return {d.name: d for d in load_definitions(ROOT).definitions}


def loaded(name: str) -> LoadedDefinition:
    return all_loaded()[name]


@cache
def one_of_each_interface() -> list[str]:
    found = {}
    for spec in every_spec():
        tensors = {**spec.inputs, **spec.outputs}.items()
        key = (spec.op_type, tuple((name, tensor.shape) for name, tensor in tensors))
        found.setdefault(key, spec.name)
    return sorted(found.values())


def renamed(definition: LoadedDefinition, old: str, new: str) -> LoadedDefinition:
    """Return a definition in which an axis or a tensor has another name."""

    def names(group):
        return {new if n == old else n: tensor for n, tensor in group.items()}

    def shapes(group):
        return {
            n: replace(
                t, shape=t.shape and tuple(new if a == old else a for a in t.shape)
            )
            for n, t in group.items()
        }

    return replace(
        definition,
        axes=names(definition.axes),
        inputs=names(shapes(definition.inputs)),
        outputs=names(shapes(definition.outputs)),
    )


def without(definition: LoadedDefinition, name: str) -> LoadedDefinition:
    inputs = {n: t for n, t in definition.inputs.items() if n != name}
    return replace(definition, inputs=inputs)


def test_every_definition_is_served():
    served = {loaded(name).op_type for name in one_of_each_interface()}
    assert served == set(op_packages())
    for spec in every_spec():
        assert why_not_served(loaded(spec.name)) is None


@pytest.mark.parametrize("name", one_of_each_interface())
def test_an_interface_that_lacks_or_renames_anything_is_another(name):
    definition = loaded(name)
    tensors = (*definition.inputs.values(), *definition.outputs.values())
    axes = {axis for tensor in tensors for axis in tensor.shape or ()}
    for old in (*axes, *definition.inputs, *definition.outputs):
        reason = why_not_served(renamed(definition, old, "other_name"))
        assert (reason or "").startswith(f"{definition.op_type}: "), old
    for old in definition.inputs:
        # one that is optional in the family makes another interface of the op
        reason = why_not_served(without(definition, old))
        assert reason is None or reason.startswith(f"{definition.op_type}: ")
        if reason is None:
            assert subject_of(without(definition, old)).op.oracle is not None


def test_a_constant_axis_that_varies_is_named():
    definition = loaded("rmsnorm_h128")
    axes = definition.axes
    varied = {**axes, "hidden_size": replace(axes["hidden_size"], value=None)}
    reason = why_not_served(replace(definition, axes=varied))
    assert reason == "rmsnorm: axis hidden_size is variable, not constant"


@pytest.mark.parametrize("op_type", sorted(op_packages()))
def test_it_gets_the_generic_tests_and_no_traceback(op_type):
    (name, *_) = (n for n in one_of_each_interface() if loaded(n).op_type == op_type)
    definition = loaded(name)
    axis = next(a for t in definition.inputs.values() for a in t.shape or ())
    other = renamed(definition, axis, "other_name")
    assert spec_of(other) is None
    subject = subject_of(other)
    assert subject.op.oracle is None
    assert subject.unresolved == why_not_served(other)
    assert [case.name for case in subject.cases(("small",))] == ["generic"]


def test_nothing_is_compared_with_a_misspelt_op_type(tmp_path):
    misspelt = replace(loaded("rmsnorm_h128"), op_type="rmsnrom", tags=())
    reason = why_unproven(tmp_path, misspelt)
    assert reason == "no op module for rmsnrom (did you mean rmsnorm?)"
    backward = replace(misspelt, op_type="rmsnorm_backward")
    assert why_unproven(tmp_path, backward) == (
        "no op module for rmsnorm_backward; the dataset has no definition of rmsnorm"
    )
    assert why_unproven(tmp_path, loaded("rmsnorm_h128")) is None


def test_a_tag_names_a_ground_truth_and_only_a_run_proves_it(tmp_path):
    tagged = replace(loaded("rmsnorm_h128"), op_type="rmsnrom")
    assert "flashinfer.norm.rmsnorm" in (why_unproven(tmp_path, tagged) or "")
    assert why_unproven(tmp_path, tagged, lambda name, basis: True) is None


def test_validation_warns_of_it_and_names_it_in_the_summary(tmp_path):
    path = tmp_path / "definitions/rmsnrom/rmsnrom_h128.json"
    path.parent.mkdir(parents=True)
    text = (ROOT / loaded("rmsnorm_h128").path).read_text()
    text = text.replace('"op_type": "rmsnorm"', '"op_type": "rmsnrom"')
    path.write_text(text.replace('"name": "rmsnorm_h128"', '"name": "rmsnrom_h128"'))
    counts = Counts()
    found = list(run_plan(make_plan(tmp_path), counts))
    (problem,) = (p for p in found if p.rule == "reference-unproven")
    assert problem.severity is Severity.WARNING
    assert "did you mean rmsnorm?" in problem.message
    summary = validation_report((), counts).conclude().summary
    assert "NOTHING COMPARED with 1 definition: rmsnrom_h128 (" in summary
