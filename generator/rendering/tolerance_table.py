"""The tolerances of a definition as a table: output, source, bounds, and the reason."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from generator.ops.op_source import OpSource
from generator.rendering.plan import TestClass
from kernel_judge.comparison.tolerance import (
    DEFAULTS,
    EXACT,
    Override,
    Tolerance,
    of_definition,
)

_DEFAULT, _CHOSEN = "default", "--tolerance"
_WIDEST = 32
"""Characters of the sources of a row."""
_CLAUSE = re.compile(r"[:;] |\.\s+(?=[A-Z`])")


@dataclass(frozen=True)
class ToleranceRow:
    """A row: the sources that it is about, its tolerance, and the reason."""

    output: str
    sources: tuple[str, ...]
    condition: str
    tolerance: Tolerance
    reason: str
    grows: bool = False


def tolerance_table(
    op: OpSource,
    overrides: tuple[Override, ...],
    planned: TestClass,
    run_tolerance: float | None,
    reasons: dict[str, int],
) -> list[str]:
    """Return the lines of a definition's table, in the order in which rows count.

    `run_tolerance` is the rendering's `--tolerance`. A row names its reason by a number
    of `reasons`, to which new ones are added: their first clauses, since the derivation
    stands where the bound does.
    """
    names = {constant.name for constant in planned.constants}
    sources = ("oracle", *op.providers)
    bounds = [
        bound
        for output, tensor in planned.definition.outputs.items()
        if output not in op.policies
        for bound in table_bounds(
            of_definition(overrides, names), output, tensor.dtype, sources
        )
    ]
    rows = [
        cells
        for bound in bounds
        for cells in _rows(_with(bound, run_tolerance), reasons)
    ]
    if rows:
        rows.insert(0, ("output", "source", "rtol", "atol", "NMSE", "reason"))
    rows += [
        (output, "every source", *_policy(*policy, reasons))
        for output, policy in op.policies.items()
        if output in planned.definition.outputs
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def table_bounds(
    overrides: Iterable[Override], output: str, dtype: str, sources: Sequence[str]
) -> Iterator[ToleranceRow]:
    """Yield the bounds that count for an output, those of equal text as one."""
    left = list(sources)
    # rows before that are about a source without a condition
    settled: set[str] = set()
    rows: list[ToleranceRow] = []
    for override in overrides:
        if override.output != output or not left:
            continue
        named = override.source
        if named is not None and settled & {named, named.split("/")[0]}:
            continue
        conditions = [f"in {override.case}"] if override.case else []
        conditions += ["of some sizes"] if override.where else []
        about = tuple(left) if named is None else (named,)
        condition = " ".join(conditions)
        rows.append(
            ToleranceRow(
                output,
                about,
                condition,
                override.tolerance,
                override.reason,
                override.growth is not None,
            )
        )
        if not conditions:
            settled |= set(about)
            left = [source for source in left if source not in about]
    if left:
        default = DEFAULTS.get(dtype, EXACT)
        reason = "" if default == EXACT else _DEFAULT
        rows.append(ToleranceRow(output, tuple(left), "", default, reason))
    merged: list[ToleranceRow] = []
    for bound in rows:
        last = merged[-1] if merged else None
        if last is not None and replace(last, sources=bound.sources) == bound:
            merged[-1] = replace(bound, sources=(*last.sources, *bound.sources))
        else:
            merged.append(bound)
    return iter(merged)


def _with(bound: ToleranceRow, run_tolerance: float | None) -> ToleranceRow:
    """Return a bound with the rendering's tolerance in place of rtol and atol."""
    if run_tolerance is None or bound.tolerance == EXACT:
        return bound
    tolerance = replace(bound.tolerance, rtol=run_tolerance, atol=run_tolerance)
    return replace(bound, tolerance=tolerance, reason=_CHOSEN)


def _rows(bound: ToleranceRow, reasons: dict[str, int]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a bound, in rows whose sources are not too long."""
    whole = ", ".join(_short(bound.sources))
    alone = [(source,) for source in bound.sources]
    for sources in [bound.sources] if len(whole) <= _WIDEST else alone:
        yield _cells(replace(bound, sources=sources), reasons)


def _cells(bound: ToleranceRow, reasons: dict[str, int]) -> tuple[str, ...]:
    """Return a row's cells: output, sources, rtol, atol, NMSE, reason."""
    tolerance = bound.tolerance
    sources = ", ".join(_short(bound.sources))
    source = f"{sources} {bound.condition}".strip()
    reason = _CLAUSE.split(bound.reason, maxsplit=1)[0].rstrip(".")
    if bound.reason not in ("", _DEFAULT, _CHOSEN):
        reason = _numbered(reason, reasons)
    if tolerance == EXACT:
        return bound.output, source, "exact", "", "", reason
    beside = _beside(bound)
    if beside:
        reason = f"{reason} {_numbered(beside, reasons)}".lstrip()
    nmse = "" if tolerance.nmse is None else f"{tolerance.nmse:.3g}"
    atol = f"{tolerance.atol:.3g}{'*' * bound.grows}"
    if tolerance.of_row:
        atol += f" + {tolerance.of_row:.2g}·row's RMS"
    numbers = f"{tolerance.rtol:.3g}", atol, nmse
    return bound.output, source, *numbers, reason


def _beside(bound: ToleranceRow) -> str:
    """Return what a tolerance bounds that has no column, in words."""
    tolerance, parts = bound.tolerance, []
    if tolerance.hit_ratio < 1.0:
        parts.append(
            f"{tolerance.hit_ratio:.4g} of the elements are within atol and rtol"
        )
    if tolerance.cosine is not None:
        parts.append(f"the cosine is {tolerance.cosine:.4g} or more")
    if tolerance.norm_ratio is not None:
        low, high = tolerance.norm_ratio
        parts.append(f"the norm is {low:.4g} to {high:.4g} times the expected one")
    if tolerance.bias is not None and bound.reason != _DEFAULT:
        parts.append(f"a factor or an offset of {tolerance.bias:.2g} is allowed")
    return ", ".join(parts)


def _numbered(reason: str, reasons: dict[str, int]) -> str:
    return f"({reasons.setdefault(reason, len(reasons) + 1)})"


def _short(sources: Sequence[str]) -> Iterator[str]:
    """Yield sources, a provider's name once: flashinfer/fa2, fa3."""
    before = ""
    for source in sources:
        provider, slash, backend = source.partition("/")
        yield backend if slash and provider == before else source
        before = provider if slash else ""


def _policy(name: str, module: str, reasons: dict[str, int]) -> tuple[str, ...]:
    """Return the cells of an output that a policy judges, but for the first two."""
    sentence = _first_sentence(name, module)
    return "by", name, "", _numbered(f"{sentence} ({module})", reasons)


@cache
def _first_sentence(name: str, module: str) -> str:
    """Return the first sentence of a class's docstring; the module is not imported."""
    spec = importlib.util.find_spec(module) if "." in module else None
    if spec is None or spec.origin is None:
        return "judged by a policy"
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    nodes = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    docstring = next((ast.get_docstring(node) for node in nodes), None)
    return _CLAUSE.split(docstring or "", maxsplit=1)[0].replace("\n", " ").rstrip(".")
