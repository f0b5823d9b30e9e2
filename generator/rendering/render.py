"""Write the text of the rendered files from a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import generator
from generator.rendering.embedding import nest, source_lines
from generator.rendering.imports import import_block
from generator.rendering.plan import TestPlan
from generator.rendering.python_text import (
    WIDTH,
    assignment,
    call,
    class_line,
    comment,
    literal,
)

PACKAGE = "generator"
"""The package that rendered files import."""

# provider → the base class that tests against it, and the line of the file's header
_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "flashinfer": ("MatchesFlashInfer", "FlashInfer's kernels, live, on a CUDA device"),
    "sglang": ("MatchesSGLang", "SGLang's layers, live, in a process of their own"),
    "pytorch": ("MatchesPyTorch", "PyTorch's CUDA kernel, live, on a CUDA device"),
}
_RECORDED = "what these kernels returned when they were recorded, anywhere"
_ORACLE = "an independent float64 implementation in PyTorch, `oracle`, anywhere"

_RELATED = "what it returns for related inputs, `relations`, anywhere"


def render_test_file(plan: TestPlan) -> str:
    """Return the text of test_<op_type>.py; the same plan gives the same bytes."""
    providers = plan.op.providers if plan.op is not None else ()
    bases = [_PROVIDERS[provider][0] for provider in providers]
    related = plan.op is not None and "relations" in plan.op.functions
    plain = [] if related else ["ReferenceTests"]
    bases = ["GroundTruthsAgree", *bases] if bases else plain
    own = ["import sys", "from kernel_judge.definition import Interface"]
    if providers:
        bases.append("MatchesRecorded")
    if related:
        bases.append("Metamorphic")
    if plan.is_matched_by_name:
        bases = ["MatchesByName"]
    if plan.has_custom_inputs:
        bases = ["MatchesCustomInputs"]
        customs = [c.custom for c in plan.classes if c.custom is not None]
        if not all(c.nestable for c in customs if c.has_init):
            own.append(f"from {PACKAGE}.running.custom_inputs import load_init")
    own.append(f"from {PACKAGE}.running.harness import {', '.join([*bases, 'main'])}")
    if not all(reference.nestable for reference in plan.references):
        own.append("from kernel_judge.reference import load_reference")
    return (
        environment()
        .get_template("test_file.py.jinja")
        .render(
            plan=plan,
            support=PACKAGE,
            comparisons=[
                *(_PROVIDERS[provider][1] for provider in providers),
                *([_RECORDED] if providers else []),
                _ORACLE,
                *([_RELATED] if related else []),
            ],
            imports=import_block(plan.op.imports if plan.op is not None else (), own),
            bases=bases,
        )
    )


def render_shared_files() -> dict[str, str]:
    """Return the files beside the test files, by path: conftest and options."""
    return {
        name: environment().get_template(f"{name}.jinja").render(support=PACKAGE)
        for name in ("conftest.py", "pytest.ini")
    }


def templates() -> Path:
    """Return the folder of templates, in a checkout or in an installed wheel."""
    package = Path(generator.__file__).parent
    checkout = package.parent / "templates"
    return checkout if checkout.is_dir() else package / "templates"


@cache
def environment() -> Environment:
    """Return Jinja's environment with the filters that write Python source."""
    made = Environment(
        loader=FileSystemLoader(templates()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters |= {
        "assignment": assignment,
        "call": call,
        "class_line": class_line,
        "comment": comment,
        "fit_a_line": _fit_a_line,
        "lines": source_lines,
        "listed": _listed,
        "literal": literal,
        "nest": nest,
        "tuple": _tuple,
    }
    return made


def html_environment() -> Environment:
    """Return Jinja's environment for pages: what it prints is escaped."""
    return Environment(
        loader=FileSystemLoader(templates()),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _listed(names: Sequence[str]) -> str:
    """Return up to three names, or the first one and the count of the others."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more definitions"


def _fit_a_line(constraints: Sequence[str]) -> bool:
    """Return whether a formatter keeps the constraints on one line: a short one."""
    if len(constraints) != 1:
        return False
    return len(f"    constraints={_tuple(constraints)},") <= WIDTH


def _tuple(items: Iterable[str]) -> str:
    """Return a tuple of strings as Python source."""
    texts = [literal(item) for item in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
