"""What a rendered file will contain, as a value that a template only prints."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from generator.constants import Constant, resolve_constants
from generator.definition import Definition, Tensor
from generator.ops import OPS, OpSpec
from generator.problems import Problem
from generator.sources import OpSource, can_be_nested, op_source

SIZES = ("small", "medium", "large")
DEFAULT_SIZES = ("small", "medium")


@dataclass(frozen=True)
class Options:
    """Hold what the user chose for a rendering; tolerance None keeps every default."""

    sizes: tuple[str, ...] = DEFAULT_SIZES
    tolerance: float | None = None


@dataclass(frozen=True)
class Interface:
    """Hold inputs, outputs and constraints that several definitions share."""

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    constraints: tuple[str, ...]


@dataclass(frozen=True)
class Reference:
    """Hold one reference text and the definitions that have it.

    `nestable` is False where the text means something else inside a function; it is
    then executed as a module of its own.
    """

    name: str
    source: str
    nestable: bool
    definitions: tuple[str, ...]


@dataclass(frozen=True)
class TestClass:
    """Hold what is particular to one definition's test class."""

    class_name: str
    definition: Definition
    interface: str
    reference: str
    axes: Mapping[str, int]
    constants: tuple[Constant, ...]
    unresolved: str | None
    # FlashInfer's functions that tags name, of an op_type without a module
    fi_apis: tuple[str, ...] = ()

    @property
    def dependent_constants(self) -> tuple[str, ...]:
        """Return the constants that were read from the reference under test."""
        return tuple(c.name for c in self.constants if not c.independent)


@dataclass(frozen=True)
class TestPlan:
    """Hold everything that one rendered file shows; `op` is None without a module."""

    op_type: str
    base_class: str
    op: OpSource | None
    interfaces: tuple[Interface, ...]
    references: tuple[Reference, ...]
    classes: tuple[TestClass, ...]
    options: Options
    problems: tuple[Problem, ...] = field(default=())

    @property
    def is_matched_by_name(self) -> bool:
        """Return whether FlashInfer's functions are matched by the names of inputs."""
        return any(planned.fi_apis for planned in self.classes)


def plan_tests(
    op_type: str,
    definitions: Sequence[Definition],
    options: Options,
    ops: Mapping[str, OpSpec] = OPS,
) -> TestPlan:
    """Return the plan of the file that tests all definitions of one op_type."""
    spec = ops.get(op_type)
    ordered = sorted(definitions, key=lambda d: d.name)
    interfaces = _interfaces(ordered)
    references = _references(ordered)
    problems: list[Problem] = []
    classes = []
    names = _class_names(d.name for d in ordered)
    for definition, class_name in zip(ordered, names, strict=True):
        constants: tuple[Constant, ...] = ()
        if spec is not None:
            constants, found = resolve_constants(definition, spec)
            problems += found
        known = {constant.name for constant in constants}
        classes.append(
            TestClass(
                class_name,
                definition,
                next(i.name for i in interfaces if _same(i, definition)),
                next(r.name for r in references if definition.name in r.definitions),
                {
                    name.upper(): n
                    for name, n in definition.const_axes.items()
                    if name not in known
                },
                constants,
                _unresolved(op_type, spec, constants),
                definition.tag_values("fi_api") if spec is None else (),
            )
        )
    return TestPlan(
        op_type,
        _base_class(op_type),
        op_source(op_type) if spec is not None else None,
        interfaces,
        references,
        tuple(classes),
        options,
        tuple(problems),
    )


def _unresolved(
    op_type: str, spec: OpSpec | None, constants: Iterable[Constant]
) -> str | None:
    """Return why a definition has no ground truth at all, None where it has one."""
    if spec is None:
        return f"no op module for {op_type}"
    unknown = [c.name for c in constants if c.value is None]
    if unknown:
        return f"no source knows {', '.join(unknown)}"
    return None


def _declaration(tensor: Tensor) -> str:
    """Return `bfloat16[batch_size, hidden_size]`, or the dtype alone for a scalar."""
    if tensor.shape is None:
        return tensor.dtype
    return f"{tensor.dtype}[{', '.join(tensor.shape)}]"


def declarations(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return name → declaration, in order."""
    return {name: _declaration(tensor) for name, tensor in tensors.items()}


def _same(interface: Interface, definition: Definition) -> bool:
    """Return whether a definition has this interface, order of inputs included."""
    return (
        list(interface.inputs.items()) == list(declarations(definition.inputs).items())
        and list(interface.outputs.items())
        == list(declarations(definition.outputs).items())
        and interface.constraints == definition.constraints
    )


def _interfaces(definitions: Iterable[Definition]) -> tuple[Interface, ...]:
    found: list[Interface] = []
    for definition in definitions:
        if not any(_same(interface, definition) for interface in found):
            found.append(
                Interface(
                    f"INTERFACE_{len(found) + 1}",
                    declarations(definition.inputs),
                    declarations(definition.outputs),
                    definition.constraints,
                )
            )
    return tuple(found)


def _references(definitions: Iterable[Definition]) -> tuple[Reference, ...]:
    by_text: dict[str, list[str]] = {}
    for definition in definitions:
        by_text.setdefault(definition.reference, []).append(definition.name)
    return tuple(
        Reference(f"reference_{number}", text, can_be_nested(text), tuple(names))
        for number, (text, names) in enumerate(by_text.items(), 1)
    )


def _class_names(names: Iterable[str]) -> list[str]:
    """Return a class name for each definition name; no two are the same.

    `a_b` and `aB` or names that differ by case alone may meet: later ones are numbered.
    """
    taken: set[str] = set()
    result = []
    for name in names:
        base = candidate = f"Test{_pascal(name)}"
        number = 1
        while candidate in taken:
            number += 1
            candidate = f"{base}_{number}"
        taken.add(candidate)
        result.append(candidate)
    return result


def _base_class(op_type: str) -> str:
    """Return the name of the base class; pytest must not take it for a test class."""
    name = f"{_pascal(op_type)}Tests"
    return f"Op{name}" if name.startswith("Test") else name


def _pascal(name: str) -> str:
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return f"{words}_" if keyword.iskeyword(words) else words
