"""Plan a rendered file: everything that the template prints, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from generator.dataset.definition import LoadedDefinition, declarations
from generator.ops.op_source import OpSource, op_source
from generator.ops.registry import op_specs
from generator.ops.serving import why_not_served
from generator.ops.spec import OpSpec
from generator.problems import Problem
from generator.rendering.custom import Custom
from generator.rendering.embedding import can_be_nested
from generator.rendering.names import base_class, class_names, shared_names
from generator.rules.basis import basis_of
from generator.rules.constants import Constant, resolve_constants, why_unresolved
from generator.rules.proofs import Forward, Text

SIZES = ("small", "medium", "large")
DEFAULT_SIZES = ("small", "medium")
OWN, CUSTOM, OTHER = "", "_custom_inputs", "_other_interface"
"""What a test file's name says of the functions that its tests have."""


def module_name(op_type: str, kind: str) -> str:
    """Return the name of a rendered file, without `.py`."""
    return f"test_{op_type}{kind}"


@dataclass(frozen=True)
class RenderOptions:
    """The options of a rendering; a tolerance of None keeps every default.

    `standalone` is whether the support package is written beside the tests; None keeps
    the state of the output folder.
    """

    sizes: tuple[str, ...] = DEFAULT_SIZES
    tolerance: float | None = None
    standalone: bool | None = None


@dataclass(frozen=True)
class SharedInterface:
    """The inputs, outputs and constraints that several definitions share."""

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    constraints: tuple[str, ...]
    definitions: tuple[str, ...]


@dataclass(frozen=True)
class Reference:
    """One reference's source and the definitions that have it.

    `nestable` is False if the source has another meaning inside a function; then it is
    executed as a module of its own.
    """

    name: str
    source: str
    nestable: bool
    definitions: tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """The proof of a definition without an op: a text, and the outputs of its `run`."""

    found: Text | Forward
    text: Reference

    @property
    def value(self) -> str:
        """Return the source of the oracle that the rendered class has."""
        proof, name = self.found, self.text.name
        if isinstance(proof, Text):
            return f"TextOracle({name})"
        parts = tuple(proof.definition.inputs), proof.gradients
        return (
            f"BackwardOracle({name}, {parts[0]!r}, {parts[1]!r}, "
            f"{dict(proof.wanted)!r}, {dict(proof.saved)!r})"
        )


@dataclass(frozen=True)
class TestClass:
    """One definition's test class."""

    class_name: str
    definition: LoadedDefinition
    interface: str
    reference: str
    axes: Mapping[str, int]
    constants: tuple[Constant, ...]
    unresolved: str | None
    # FlashInfer's functions that tags name, for an op_type without a module
    fi_apis: tuple[str, ...] = ()
    custom: Custom | None = None
    proof: Proof | None = None

    @property
    def basis(self) -> str:
        """Return the hash of what a run of the tests depends on."""
        return basis_of(self.definition)

    @property
    def constant_names(self) -> tuple[str, ...]:
        """Return the names of the constants."""
        return tuple(constant.name for constant in self.constants)

    @property
    def dependent_constants(self) -> tuple[str, ...]:
        """Return the constants that were read from the reference under test."""
        return tuple(c.name for c in self.constants if not c.independent)


@dataclass(frozen=True)
class TestPlan:
    """The content of one rendered file; `op` is None without an op module.

    It is None as well where the definitions have another interface than the op's.
    """

    op_type: str
    base_class: str
    op: OpSource | None
    interfaces: tuple[SharedInterface, ...]
    references: tuple[Reference, ...]
    classes: tuple[TestClass, ...]
    options: RenderOptions
    problems: tuple[Problem, ...] = field(default=())
    has_other_interface: bool = False

    @property
    def module(self) -> str:
        """Return the rendered file's name without `.py`."""
        return module_name(self.op_type, self.kind)

    @property
    def kind(self) -> str:
        """Return which functions the tests have: the op's own, or which others."""
        if self.has_custom_inputs:
            return CUSTOM
        return OTHER if self.has_other_interface else OWN

    @cached_property
    def is_matched_by_name(self) -> bool:
        """Return whether FlashInfer's parameters are matched by the inputs' names."""
        return any(planned.fi_apis for planned in self.classes)

    @cached_property
    def proofs(self) -> tuple[Proof, ...]:
        """Return what proves definitions of no op."""
        return tuple(c.proof for c in self.classes if c.proof is not None)

    @cached_property
    def has_custom_inputs(self) -> bool:
        """Return whether the definitions have inputs of their own: all have, or none."""
        return self.classes[0].custom is not None


def plan_tests(
    op_type: str,
    definitions: Sequence[LoadedDefinition],
    options: RenderOptions,
    ops: Mapping[str, OpSpec] | None = None,
    custom: Mapping[str, Custom] | None = None,
    proofs: Mapping[str, Text | Forward] | None = None,
) -> TestPlan:
    """Return the plan of the file that tests these definitions of one op_type.

    `custom` has the custom inputs of each; the op_type's own functions are not used then,
    nor where the definitions have another interface than the op_type serves: of one
    plan all have, or none. `proofs` has what proves definitions that no op serves.
    """
    ordered = sorted(definitions, key=lambda d: d.name)
    spec = (op_specs() if ops is None else ops).get(op_type) if not custom else None
    foreign = {d.name: why_not_served(d) for d in ordered} if spec is not None else {}
    if any(foreign.values()):
        spec = None
    interfaces = _interfaces(ordered)
    references = _references(ordered)
    interface_of = {name: i.name for i in interfaces for name in i.definitions}
    reference_of = {name: r.name for r in references for name in r.definitions}
    problems: list[Problem] = []
    classes = []
    names = class_names(d.name for d in ordered)
    for definition, class_name in zip(ordered, names, strict=True):
        constants: tuple[Constant, ...] = ()
        if spec is not None:
            constants, wrong = resolve_constants(definition, spec)
            problems += wrong
        known = {constant.name for constant in constants}
        classes.append(
            TestClass(
                class_name,
                definition,
                interface_of[definition.name],
                reference_of[definition.name],
                {
                    name: n
                    for name, n in definition.const_axes.items()
                    if name not in known
                },
                constants,
                foreign.get(definition.name)
                or why_unresolved(op_type, spec, constants),
                definition.tag_values("fi_api") if spec is None and not custom else (),
                custom[definition.name] if custom else None,
                _proof(definition.name, (proofs or {}).get(definition.name)),
            )
        )
    return TestPlan(
        op_type,
        base_class(op_type),
        op_source(op_type) if spec is not None else None,
        interfaces,
        references,
        tuple(classes),
        options,
        tuple(problems),
        any(foreign.values()),
    )


def _proof(name: str, proof: Text | Forward | None) -> Proof | None:
    if proof is None:
        return None
    kind = "oracle" if isinstance(proof, Text) else "forward"
    nestable = can_be_nested(proof.source)
    return Proof(proof, Reference(f"{kind}_{name}", proof.source, nestable, (name,)))


def _interfaces(definitions: Sequence[LoadedDefinition]) -> tuple[SharedInterface, ...]:
    by_interface: dict[tuple[object, ...], list[LoadedDefinition]] = {}
    for definition in definitions:
        by_interface.setdefault(_interface_of(definition), []).append(definition)
    groups = list(by_interface.values())
    return tuple(
        SharedInterface(
            f"INTERFACE_{name.upper()}",
            declarations(group[0].inputs),
            declarations(group[0].outputs),
            group[0].constraints,
            tuple(d.name for d in group),
        )
        for name, group in zip(shared_names(groups), groups, strict=True)
    )


def _interface_of(definition: LoadedDefinition) -> tuple[object, ...]:
    """Return a key that definitions of the same interface share, order included."""
    return (
        tuple(declarations(definition.inputs).items()),
        tuple(declarations(definition.outputs).items()),
        definition.constraints,
    )


def _references(definitions: Iterable[LoadedDefinition]) -> tuple[Reference, ...]:
    by_text: dict[str, list[LoadedDefinition]] = {}
    for definition in definitions:
        by_text.setdefault(definition.reference, []).append(definition)
    names = shared_names(list(by_text.values()))
    return tuple(
        Reference(
            f"reference_{name}", text, can_be_nested(text), tuple(d.name for d in group)
        )
        for name, (text, group) in zip(names, by_text.items(), strict=True)
    )
