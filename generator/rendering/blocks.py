"""The blocks of a rendered file: one reference with the definitions that have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from generator.ops.op_source import op_tolerances
from generator.rendering.descriptions import (
    grouped,
    shared_description,
    shared_tags,
)
from generator.rendering.names import block_classes
from generator.rendering.plan import Reference, TestClass, TestPlan
from generator.rendering.tolerance_table import tolerance_table
from generator.rules.constants import Constant


@dataclass(frozen=True)
class DefinitionRow:
    """One definition of a block: its class, and the lines that only it has.

    `description` is of the rows that follow as well, where it says so.
    """

    planned: TestClass
    description: str
    tags: tuple[str, ...]
    axes: Mapping[str, int]
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class ReferenceBlock:
    """One reference, and what its definitions share.

    `base` is the class that theirs derive from: one of the block, or with a single
    definition that of the file. `tables` are the tolerances in lines of text.
    """

    reference: Reference
    base: str
    description: str
    tags: tuple[str, ...]
    tables: tuple[str, ...]
    axes: Mapping[str, int]
    constants: tuple[Constant, ...]
    rows: tuple[DefinitionRow, ...]

    @property
    def has_class(self) -> bool:
        """Return whether the block has a class that those of its definitions share."""
        return len(self.rows) > 1

    @cached_property
    def interface(self) -> str | None:
        """Return the name of the interface of all definitions, None if they differ."""
        names = {row.planned.interface for row in self.rows}
        return names.pop() if len(names) == 1 else None

    @cached_property
    def constant_names(self) -> tuple[str, ...]:
        """Return the names of the constants, if all definitions have the same."""
        names = {row.planned.constant_names for row in self.rows}
        return names.pop() if len(names) == 1 else ()


def shared_axes(classes: Sequence[TestClass]) -> dict[str, int]:
    """Return the constant axes that all classes have with one value."""
    first, *others = classes
    return {
        name: value
        for name, value in first.axes.items()
        if all(c.axes.get(name) == value for c in others)
    }


def blocks(plan: TestPlan, reasons: dict[str, int]) -> list[ReferenceBlock]:
    """Return the blocks of a plan, in the order of its references.

    The reasons that their tables name by number are added to `reasons`.
    """
    by_name = {planned.definition.name: planned for planned in plan.classes}
    bases = block_classes(plan.base_class, (r.name for r in plan.references))
    tables = Tables(plan, reasons)
    return [
        _block(
            plan, reference, base, [by_name[n] for n in reference.definitions], tables
        )
        for reference, base in zip(plan.references, bases, strict=True)
    ]


def _block(
    plan: TestPlan,
    reference: Reference,
    base: str,
    classes: list[TestClass],
    tables: Tables,
) -> ReferenceBlock:
    definitions = [planned.definition for planned in classes]
    values = [{**c.axes, **_numbers(c.constants)} for c in classes]
    description, others = shared_description(definitions, values)
    tags, alone = shared_tags(definitions), len(classes) == 1
    common = set(tags)
    axes = {} if alone else shared_axes(classes)
    constants = () if alone else _shared_constants(classes)
    shared = {constant.name for constant in constants}
    rows = tuple(
        DefinitionRow(
            planned := classes[place],
            _of_next(text, len(places)) if place == places[0] else "",
            tuple(tag for tag in planned.definition.tags if tag not in common),
            {n: v for n, v in planned.axes.items() if n not in axes},
            tuple(c for c in planned.constants if c.name not in shared),
        )
        for text, places in grouped(others, values)
        for place in places
    )
    tables_of = tuple(tables.lines(reference, classes))
    base = plan.base_class if alone else base
    return ReferenceBlock(
        reference, base, description, tags, tables_of, axes, constants, rows
    )


def _of_next(text: str, count: int) -> str:
    """Return the description of the next definitions, which stand together."""
    return f"The next {count}: {text}" if text and count > 1 else text


def _shared_constants(classes: Sequence[TestClass]) -> tuple[Constant, ...]:
    """Return the constants that all classes have with one value, with all sources."""
    shared = []
    for first in classes[0].constants:
        same = [c for o in classes for c in o.constants if c.name == first.name]
        values = {(repr(c.value), c.independent) for c in same}
        if len(same) == len(classes) and len(values) == 1:
            shared.append(replace(first, source=_sources(c.source for c in same)))
    return tuple(shared)


def _sources(sources: Iterable[str]) -> str:
    """Return the sources of one value: eps of one-model, another and 3 more."""
    whose: dict[str, dict[str, None]] = {}
    for source in sources:
        what, of, model = source.partition(" of ")
        whose.setdefault(what + of, {})[model] = None
    return ", ".join(
        what + (", ".join(models) if len(models) < 4 else _listed([*models]))
        for what, models in whose.items()
    )


def _numbers(constants: tuple[Constant, ...]) -> dict[str, float]:
    return {c.name: c.value for c in constants if isinstance(c.value, (int, float))}


@dataclass(frozen=True)
class Tables:
    """The tables of tolerances of a file: of equal ones all but the first are named."""

    plan: TestPlan
    reasons: dict[str, int]
    seen: dict[tuple[str, ...], str] = field(default_factory=dict)

    def lines(self, reference: Reference, classes: list[TestClass]) -> Iterator[str]:
        """Yield the lines of a reference's tables: one of all classes that share it."""
        op, tolerance = self.plan.op, self.plan.options.tolerance
        if op is None:
            return
        overrides = op_tolerances(self.plan.op_type)
        by_table: dict[tuple[str, ...], list[str]] = {}
        for planned in classes:
            table = tolerance_table(op, overrides, planned, tolerance, self.reasons)
            by_table.setdefault(tuple(table), []).append(planned.definition.name)
        for rows, names in by_table.items():
            of = "" if len(by_table) == 1 else f" of {_listed(names)}"
            if rows in self.seen:
                yield f"Tolerances{of}: those of {self.seen[rows]}."
                continue
            self.seen[rows] = _listed(names) if of else reference.name
            yield f"Tolerances{of}:"
            yield from (f"  {line}".rstrip() for line in rows)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
