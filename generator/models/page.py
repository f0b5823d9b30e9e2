"""A page of how far models are covered: module by model, with a search."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from generator.models.coverage import Covered, State
from generator.rendering.render import html_environment

_ABOUT = (
    "What each model runs on one GPU, tp 1 and pages of 64, in the order of a forward "
    "pass. A cell's title names the definition, and what agreed with it or why nothing "
    "did. Where a cell is empty the model has no such module, or another one needs the "
    "same definition."
)
_KERNEL, _LAYER, _ORACLE = "kernel", "layer", "oracle"
_UNVERIFIED, _MISSING = "unverified", "missing"
_KINDS = {
    State.KERNEL: _KERNEL,
    State.LAYER: _LAYER,
    State.ORACLE: _ORACLE,
    State.UNVERIFIED: _UNVERIFIED,
}
# from the best to the worst: a mark, since colours alone are not for everybody
_LEGEND = {
    _KERNEL: ("✓", "a kernel agreed"),
    _LAYER: ("≈", "a PyTorch layer of SGLang agreed, no kernel"),
    _ORACLE: ("~", "only the oracle agreed"),
    _UNVERIFIED: ("?", "a definition that nothing agreed with yet"),
    _MISSING: ("✕", "no definition"),
}


def coverage_html(models: Mapping[str, Sequence[Covered]]) -> str:
    """Return HTML that needs nothing else: a column a model, a row a module."""
    cells: dict[str, dict[str, list[Covered]]] = defaultdict(dict)
    places: dict[str, list[float]] = defaultdict(list)
    for model, covered in models.items():
        for number, entry in enumerate(covered):
            cells[entry.need.module].setdefault(model, []).append(entry)
            places[entry.need.module].append(number / len(covered))
    ordered = sorted(cells, key=lambda m: sum(places[m]) / len(places[m]))
    rows = [
        {"module": m, "cells": [_cell(cells[m].get(model, ())) for model in models]}
        for m in ordered
    ]
    counts = Counter(_kind(e) for covered in models.values() for e in covered)
    legend = {
        kind: {"mark": mark, "text": text, "count": counts[kind]}
        for kind, (mark, text) in _LEGEND.items()
    }
    template = html_environment().get_template("coverage.html.jinja")
    return template.render(about=_ABOUT, models=[*models], rows=rows, legend=legend)


def _kind(entry: Covered) -> str:
    return _KINDS.get(entry.state, _MISSING)


def _cell(entries: Sequence[Covered]) -> Mapping[str, Any] | None:
    """Return the worst of what a model's module needs, named with the others."""
    if not entries:
        return None
    kinds = [_kind(entry) for entry in entries]
    title = "; ".join(
        ": ".join(filter(None, [entry.need.name, entry.state.value, entry.note]))
        for entry in entries
    )
    return {"kind": max(kinds, key=[*_LEGEND].index), "title": title}
