"""A page with the heat maps of a comparison: error by stage and layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.parity.report import LEGEND, ComparedModel, cell, first_divergence
from generator.reports.report import Report
from generator.reports.templates import html_environment


def page(report: Report, models: Sequence[ComparedModel]) -> str:
    """Return HTML that needs nothing else; of each dtype whose stages were compared."""
    template = html_environment().get_template("parity.html.jinja")
    conclusion = report.conclude()
    return template.render(
        title=report.title,
        summary=conclusion.summary,
        verdict=conclusion.status.value,
        legend=LEGEND,
        maps=list(_maps(models)),
    )


def _maps(models: Sequence[ComparedModel]) -> Iterator[Mapping[str, Any]]:
    for one in models:
        for dtype, levels in one.found.items():
            if "stage" in levels:
                entries = levels["stage"]
                passed = sum(bool(entry["passed"]) for entry in entries)
                counts = f"{passed} of {len(entries)} within their bounds"
                yield {
                    "title": f"{one.model}, {dtype}: {counts}",
                    **_map(entries),
                }


def _map(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    layers = sorted({e["layer"] for e in entries if e["layer"] is not None})
    columns = [None, *layers]
    stages: dict[str, dict[int | None, Mapping[str, Any]]] = {}
    for entry in entries:
        stages.setdefault(entry["stage"], {})[entry["layer"]] = entry
    first = next((entry for entry in entries if not entry["passed"]), None)
    rows = [
        {
            "stage": stage,
            "definition": next(iter(of.values())).get("definition", ""),
            "cells": [_cell(of.get(column), first) for column in columns],
        }
        for stage, of in stages.items()
    ]
    return {
        "columns": ["outside", *map(str, layers)],
        "rows": rows,
        "first": first_divergence(entries),
    }


def _cell(
    entry: Mapping[str, Any] | None, first: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    if entry is None:
        return None
    kinds = [] if entry["passed"] else ["broken"]
    kinds += ["first"] * (entry is first)
    kinds += ["none"] * (entry["passed"] and not entry["definition"])
    error, bound = entry.get("nmse", math.nan), entry.get("bound", 0.0)
    # a bound has all the colour, and a tenth of it none: the rest is as it should be
    share = 0.0
    if error > 0 and bound > 0 and math.isfinite(error):
        share = 1 + math.log10(error / bound)
    return {
        "text": cell(entry),
        "kind": " ".join(kinds),
        "heat": round(100 * min(max(share, 0.0), 1.0)),
        "note": f"NMSE {error:.2e}, allowed {bound:.2e}",
    }
