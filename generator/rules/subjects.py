"""A loaded definition as the subject that checks take, as its rendered file has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import generator.running.sglang  # noqa: F401 - has SGLang called in its process
from generator.dataset.definition import LoadedDefinition, declarations
from generator.ops.op_values import op_of
from generator.ops.registry import op_specs
from generator.ops.serving import spec_of, why_not_served
from generator.rules.basis import basis_of
from generator.rules.constants import resolve_constants, why_unresolved
from generator.rules.proofs import Text, proof_of
from generator.running.own_oracle import BackwardOracle, TextOracle
from kernel_judge.definition import Definition, Interface
from kernel_judge.reference import load_run
from kernel_judge.subject import Op, Subject


def subject_of(
    definition: LoadedDefinition,
    axes: Mapping[str, int] | None = None,
    tolerance: float | None = None,
    dataset: Path | None = None,
) -> Subject:
    """Return a definition as a subject; none of its code is executed before a check.

    `axes` replace constant axes of the definition, `tolerance` every atol and rtol.
    `dataset` has what proves a definition that no op serves.
    """
    spec = spec_of(definition)
    constants = resolve_constants(definition, spec)[0] if spec is not None else ()
    unresolved = why_unresolved(definition.op_type, spec, constants)
    if spec is None and definition.op_type in op_specs():
        unresolved = why_not_served(definition)
    return Subject(
        declared_definition(definition, axes),
        op_of(definition.op_type)
        if spec is not None
        else _op_alone(definition, dataset),
        partial(load_run, definition.reference),
        unresolved=unresolved,
        dependent_constants=tuple(c.name for c in constants if not c.independent),
        run_tolerance=tolerance,
        sha256=basis_of(definition),
    )


def _op_alone(definition: LoadedDefinition, dataset: Path | None) -> Op:
    """Return the op of a definition that no op_type serves: guessed inputs, its oracle."""
    op = Op(guesses_inputs=True)
    proof = proof_of(dataset, definition) if dataset is not None else ""
    if isinstance(proof, str):
        return op
    load = partial(load_run, proof.source)
    if isinstance(proof, Text):
        return TextOracle(load).op(op)
    inputs = tuple(proof.definition.inputs)
    return BackwardOracle(load, inputs, proof.gradients, proof.wanted, proof.saved).op(
        op
    )


def declared_definition(
    definition: LoadedDefinition, axes: Mapping[str, int] | None = None
) -> Definition:
    """Return what an op's functions need of a definition; `axes` replace constant axes."""
    spec = spec_of(definition)
    resolved = resolve_constants(definition, spec)[0] if spec is not None else ()
    constants = {constant.name: constant.value for constant in resolved}
    interface = Interface(
        declarations(definition.inputs),
        declarations(definition.outputs),
        definition.constraints,
    )
    # a constant that is an axis as well has the value that its source says
    lengths = {**definition.const_axes, **(axes or {}), **constants}
    specs = (*interface.input_specs.values(), *interface.output_specs.values())
    used = dict.fromkeys(axis for spec in specs for axis in spec.shape or ())
    return Definition(
        definition.name,
        definition.op_type,
        interface,
        {axis: lengths[axis] for axis in used if axis in lengths},
        constants,
    )
