"""Write the text of the rendered files from a plan."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from generator.rendering.blocks import blocks
from generator.rendering.embedding import nest, source_lines
from generator.rendering.imports import import_block
from generator.rendering.interfaces import printed
from generator.rendering.plan import TestClass, TestPlan
from generator.rendering.python_text import (
    INDENT,
    WIDTH,
    assignment,
    call,
    class_line,
    comment,
    literal,
)
from generator.reports.templates import templates
from kernel_judge.provider import providers

PACKAGE = "generator"
"""The package that rendered files import."""

# field of OP → what the header of a file calls it
_ELSEWHERE = {
    "oracle": "oracle",
    "tolerances": "bounds",
    "policies": "policies",
    "relations": "relations",
}
JUDGE = "kernel_judge"
_RECORDED = "what these kernels returned when they were recorded, anywhere"
_ORACLE = "an independent float64 implementation in PyTorch, `oracle`, anywhere"

_RELATED = "what it returns for related inputs, `relations`, anywhere"


def render_test_file(plan: TestPlan) -> str:
    """Return the text of test_<op_type>.py; the same plan gives the same bytes."""
    names = plan.op.providers if plan.op is not None else ()
    matches = f"matches({', '.join(map(literal, names))})"
    related = plan.op is not None and "relations" in plan.op.fields
    plain = [] if related else ["ReferenceTests"]
    bases = ["GroundTruthsAgree", matches, "MatchesRecorded"] if names else plain
    imports = ["import sys", "from kernel_judge.definition import Interface"]
    if related:
        bases.append("Metamorphic")
    if plan.is_matched_by_name:
        bases = ["MatchesByName"]
    if plan.has_custom_inputs:
        bases = ["MatchesCustomInputs"]
        customs = [c.custom for c in plan.classes if c.custom is not None]
        if not all(c.nestable for c in customs if c.has_init):
            imports.append(f"from {PACKAGE}.running.custom_inputs import load_init")
    imported = [*(base.partition("(")[0] for base in bases), "main"]
    imports.append(f"from {PACKAGE}.running.harness import {', '.join(imported)}")
    texts = [*plan.references, *(proof.text for proof in plan.proofs)]
    kinds = sorted({proof.value.partition("(")[0] for proof in plan.proofs})
    if kinds:
        imports.append(f"from generator.running.own_oracle import {', '.join(kinds)}")
    if not all(text.nestable for text in texts):
        imports.append("from kernel_judge.reference import load_reference")
    reasons: dict[str, int] = {}
    printed_blocks = blocks(plan, reasons)
    return (
        environment()
        .get_template("test_file.py.jinja")
        .render(
            plan=plan,
            blocks=printed_blocks,
            reasons=reasons,
            has_bounds=any("NMSE" in line for b in printed_blocks for line in b.tables),
            interfaces=printed(plan.interfaces),
            shared=_shared(plan),
            support=PACKAGE,
            comparisons=[
                *(_described(name) for name in names),
                *([_RECORDED] if names else []),
                _ORACLE,
                *([_RELATED] if related else []),
            ],
            imports=import_block(
                plan.op.imports if plan.op is not None else (), imports
            ),
            bases=bases,
        )
    )


def _described(provider: str) -> str:
    known = providers().get(provider)
    return known.described if known is not None else f"kernels of {provider}, live"


def render_shared_files() -> dict[str, str]:
    """Return the files beside the test files, by path: conftest and options."""
    return {
        name: environment().get_template(f"{name}.jinja").render(support=PACKAGE)
        for name in ("conftest.py", "pytest.ini")
    }


@cache
def environment() -> Environment:
    """Return Jinja's environment with the filters that write Python source."""
    environment = Environment(
        loader=FileSystemLoader(templates()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {
        "assignment": assignment,
        "call": call,
        "class_line": class_line,
        "comment": comment,
        "declared": _declared,
        "listed": _listed,
        "tags_fit": _tags_fit,
        "trailing": _trailing,
        "lines": source_lines,
        "axes_line": _axes,
        "literal": literal,
        "nest": nest,
        "table_line": _table_line,
        "tuple": _tuple,
    }
    return environment


def _shared(plan: TestPlan) -> list[str]:
    """Return lines on the modules of ours that hold an op's oracle, bounds and others."""
    if plan.op is None:
        return []
    lines = []
    for field, name in _ELSEWHERE.items():
        modules = [
            m
            for m in plan.op.modules.get(field, ())
            if m.split(".")[0] not in (*sys.stdlib_module_names, "torch", JUDGE)
        ]
        if modules:
            lines.append(f"{name}: {', '.join(modules)}")
    return lines


def _table_line(text: str) -> str:
    """Return a line of a table as a comment: its columns stay."""
    return f"# {text}"


def _axes(axes: Mapping[str, int]) -> str:
    """Return the class attribute `axes`."""
    items = [f"{literal(name)}: {value}" for name, value in axes.items()]
    return _wrapped("axes = {", items, "}")


def _declared(tensors: Mapping[str, str], name: str) -> str:
    """Return the argument of an interface that declares its inputs or outputs."""
    items = [f"{literal(key)}: {literal(text)}" for key, text in tensors.items()]
    return _wrapped(f"{name}={{", items, "},")


def _listed(texts: Sequence[str], name: str) -> str:
    """Return an argument that is a tuple of strings."""
    items = [literal(text) for text in texts]
    close = ",)," if len(items) == 1 else "),"
    return _wrapped(f"{name}=(", items, close, "),")


def _wrapped(start: str, items: Sequence[str], end: str, last: str = "") -> str:
    """Return items on one line, or on a line each, as a formatter wraps them.

    `last` ends the last of several lines, where it is not `end`.
    """
    line = f"{INDENT}{start}{', '.join(items)}{end}"
    if len(line) <= WIDTH:
        return line
    body = "".join(f"{INDENT * 2}{item},\n" for item in items)
    return f"{INDENT}{start}\n{body}{INDENT}{last or end}"


def _tags_fit(planned: TestClass, tags: Sequence[str]) -> bool:
    """Return whether tags fit behind the name of a class's definition."""
    line = f"{INDENT}name = {literal(planned.definition.name)}{_trailing(tags)}"
    return bool(tags) and len(line) <= WIDTH


def _trailing(tags: Sequence[str]) -> str:
    """Return tags as a comment behind code."""
    return f"  {comment(', '.join(tags), width=sys.maxsize)}"


def _tuple(items: Iterable[str]) -> str:
    """Return a tuple of strings as Python source."""
    texts = [literal(item) for item in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
