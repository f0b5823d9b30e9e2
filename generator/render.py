"""From a plan to the text of the rendered files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined

from generator import __version__
from generator.imports import import_block
from generator.plan import TestPlan
from generator.pytext import WIDTH, assignment, class_line, comment, literal
from generator.sources import nest, source_lines

SUPPORT_FOLDER = "reference_support"
# provider → the base class that tests against it, and what a reader should know of it
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
    harness = ", ".join([*bases, "main"])
    own = ["import sys", "from reference_support.definition import Interface"]
    if providers:
        bases.append("MatchesRecorded")
        own.append("from reference_support.recorded import MatchesRecorded")
    if related:
        bases.append("Metamorphic")
        own.append("from reference_support.metamorphic import Metamorphic")
    if plan.is_matched_by_name:
        bases, harness = ["MatchesByName"], "main"
        own.append("from reference_support.automatch import MatchesByName")
    own.append(f"from reference_support.harness import {harness}")
    if not all(reference.nestable for reference in plan.references):
        own.append("from reference_support.reference import load_reference")
    return (
        _environment()
        .get_template("test_file.py.jinja")
        .render(
            plan=plan,
            version=__version__,
            sources_hash=sources_hash(),
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
    """Return the files beside the test files, by path: conftest, options, support."""
    environment = _environment()
    files = {
        name: environment.get_template(f"{name}.jinja").render(version=__version__)
        for name in ("conftest.py", "pytest.ini")
    }
    for path, text in _package_texts("support", ".py"):
        files[f"{SUPPORT_FOLDER}/{path}"] = text
    return files


@cache
def sources_hash() -> str:
    """Return a short digest of all that shapes a rendered file but the definitions."""
    digest = hashlib.sha256()
    for folder, suffix in (("templates", ".jinja"), ("support", ".py"), ("ops", ".py")):
        for path, text in _package_texts(folder, suffix):
            digest.update(f"{folder}/{path}\0{text}\0".encode())
    return digest.hexdigest()[:16]


@cache
def _package_texts(folder: str, suffix: str) -> tuple[tuple[str, str], ...]:
    """Return (name, text) of the files of one of the package's folders, sorted."""
    found = sorted((Path(__file__).parent / folder).glob(f"*{suffix}"))
    return tuple((file.name, file.read_text("utf-8")) for file in found)


@cache
def _environment() -> Environment:
    templates = dict(_package_texts("templates", ".jinja"))
    environment = Environment(
        loader=FunctionLoader(templates.get),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {
        "assignment": assignment,
        "class_line": class_line,
        "comment": comment,
        "fit_a_line": _fit_a_line,
        "lines": source_lines,
        "literal": literal,
        "nest": nest,
        "tuple": _tuple,
    }
    return environment


def _fit_a_line(constraints: Sequence[str]) -> bool:
    """Return whether a formatter would put them on one line: a single short one."""
    if len(constraints) != 1:
        return False
    return len(f"    constraints={_tuple(constraints)},") <= WIDTH


def _tuple(items: Iterable[str]) -> str:
    """Return a tuple of strings as Python text."""
    texts = [literal(item) for item in items]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
