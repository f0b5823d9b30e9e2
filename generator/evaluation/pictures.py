"""Times against the size of workloads, as a page of HTML for each op_type.

A page is one file without scripts: for each definition and kind of hardware a chart of
solutions, the reference, production kernels where a results.json has them, and the line
of the least time that the hardware needs.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import read_bytes, walk_files
from generator.dataset.paths import DatasetFile
from generator.evaluation.traces import RESULTS
from generator.problems.messages import one_line

LIGHT, REFERENCE = "speed of light", "reference"
_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT, _ABOVE = 720, 380, 64, 44, 16, 12
# colours that differ in lightness as well (Okabe and Ito)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem; color: #1a1a1a; background: #fff }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .25rem } svg { width: 100%; height: auto }
.grid { stroke: #ddd } .axis { stroke: #555 } text { font-size: 12px; fill: #333 }
ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem }
li span { display: inline-block; width: 1.5rem; border-top: 3px solid; margin-right: .4rem;
  vertical-align: middle }
"""


@dataclass
class Chart:
    """The curves of a definition on one kind of hardware: name → size → ms.

    `axis` is the axis of the workloads that varies most.
    """

    definition: str
    hardware: str
    axis: str = ""
    curves: dict[str, dict[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Point:
    definition: str
    hardware: str
    axes: Mapping[str, int]
    times: Mapping[str, float]


def write_pictures(
    root: Path, files: Sequence[DatasetFile], folder: Path
) -> list[Path]:
    """Write a page for each op_type that has times; return their paths."""
    of = {file.name: file.op_type for file in files}
    points = [one for one in _points(root) if one.definition in of]
    written = []
    for op_type in sorted({of[one.definition] for one in points}):
        points_here = [one for one in points if of[one.definition] == op_type]
        name = f"{op_type}.html"
        write_below(folder, name, page(op_type, charts(points_here)).encode("utf-8"))
        written.append(folder / name)
    return written


def charts(points: Sequence[_Point]) -> list[Chart]:
    """Return a chart for each definition and hardware, in order."""
    charts_of_all = []
    for definition, hardware in sorted({(p.definition, p.hardware) for p in points}):
        points_here = [
            p for p in points if (p.definition, p.hardware) == (definition, hardware)
        ]
        values: dict[str, set[int]] = {}
        for one in points_here:
            for name, length in one.axes.items():
                values.setdefault(name, set()).add(length)
        axis = max(values, key=lambda name: (len(values[name]), name), default="")
        chart = Chart(definition, hardware, axis)
        for one in points_here:
            for name, milliseconds in one.times.items():
                curve = chart.curves.setdefault(name, {})
                size = float(max(one.axes.get(axis, 1), 1))
                # of several workloads of one size the last
                curve[size] = milliseconds
        charts_of_all.append(chart)
    return charts_of_all


def page(op_type: str, shown: Sequence[Chart]) -> str:
    """Return a page of charts."""
    text = (
        "Milliseconds of a call against the size of its workload, both logarithmic. "
        "The dashed line is the least time that the hardware needs for the bytes and "
        "operations of the definition."
    )
    title = _text(op_type)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>",
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{text}</p>",
    ]
    for chart in shown:
        title = f"{_text(chart.definition)}, {_text(chart.hardware or 'unknown')}"
        parts.append(f"<h2>{title}</h2>{_svg(chart)}<ul>{_legend(chart)}</ul>")
    return "".join(parts) + "</html>\n"


def _svg(chart: Chart) -> str:
    points = [(x, y) for curve in chart.curves.values() for x, y in curve.items()]
    left, right = _range([x for x, _ in points])
    low, high = _range([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - left) / (right - left)
        up = (math.log10(y) - low) / (high - low)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BELOW - up * (_HEIGHT - _BELOW - _ABOVE),
        )

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">']
    parts += _grid(place, (left, right), (low, high))
    parts.append(
        f'<text x="{(_WIDTH + _LEFT) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f'{_text(chart.axis)}</text><text x="14" y="{_HEIGHT / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {_HEIGHT / 2})">ms</text>'
    )
    for name, colour, dashes in _curves(chart):
        placed = [place(x, y) for x, y in sorted(chart.curves[name].items())]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        dash = ' stroke-dasharray="6 4"' if dashes else ""
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" '
            f'stroke-width="2"{dash}/>'
        )
        if not dashes:
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
                for x, y in placed
            ]
    return "".join(parts) + "</svg>"


def _grid(
    place: Any, across: tuple[float, float], up: tuple[float, float]
) -> Iterator[str]:
    """Yield lines and labels at powers of ten, and at 2 and 5 times these."""
    for power in range(math.floor(across[0]), math.ceil(across[1]) + 1):
        for step in (1, 2, 5):
            x = step * 10.0**power
            if across[0] <= math.log10(x) <= across[1]:
                at, _ = place(x, 10 ** up[0])
                yield (
                    f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_ABOVE}" '
                    f'y2="{_HEIGHT - _BELOW}"/><text x="{at:.1f}" '
                    f'y="{_HEIGHT - _BELOW + 16}" text-anchor="middle">{x:g}</text>'
                )
    for power in range(math.floor(up[0]), math.ceil(up[1]) + 1):
        for step in (1, 2, 5):
            y = step * 10.0**power
            if up[0] <= math.log10(y) <= up[1]:
                _, at = place(10 ** across[0], y)
                yield (
                    f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" '
                    f'y1="{at:.1f}" y2="{at:.1f}"/><text x="{_LEFT - 6}" '
                    f'y="{at + 4:.1f}" text-anchor="end">{y:g}</text>'
                )


def _legend(chart: Chart) -> str:
    style = {True: "dashed", False: "solid"}
    return "".join(
        f'<li><span style="border-color:{colour};border-top-style:{style[dashes]}">'
        f"</span>{_text(name)}</li>"
        for name, colour, dashes in _curves(chart)
    )


def _curves(chart: Chart) -> Iterator[tuple[str, str, bool]]:
    """Yield name, colour and whether the line is dashed: the light's comes first."""
    names = sorted(chart.curves, key=lambda n: (n != LIGHT, n != REFERENCE, n))
    others = 0
    for name in names:
        if name == LIGHT:
            yield name, "#444", True
        elif name == REFERENCE:
            yield name, "#999", False
        else:
            yield name, _COLOURS[others % len(_COLOURS)], False
            others += 1


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return logarithms around positive values, a tenth of a power wide at least."""
    logs = [math.log10(v) for v in values] or [0.0]
    low, high = min(logs), max(logs)
    margin = max(0.05 * (high - low), 0.05)
    return low - margin, high + margin


def _points(root: Path) -> Iterator[_Point]:
    for path in sorted(walk_files(root, "traces", ".jsonl")):
        for line in read_bytes(root, path).splitlines():
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                yield from _of_trace(json.loads(line))
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        yield from _of_results(json.loads(read_bytes(root, RESULTS)))


def _of_trace(value: Any) -> Iterator[_Point]:
    evaluation = value["evaluation"]
    if evaluation["status"] != "PASSED":
        return
    figures = evaluation["performance"]
    hardware = str(evaluation["environment"]["hardware"])
    times = _times(str(value["solution"]), figures)
    yield _Point(str(value["definition"]), hardware, _axes(value), times)


def _of_results(value: Any) -> Iterator[_Point]:
    hardware = str(value["environment"]["hardware"])
    for solution in value["solutions"]:
        for case in solution["cases"]:
            timing = case["timing"]
            if case["verdict"] != "PASSED" or not timing:
                continue
            times = _times(str(solution["solution"]), timing)
            rivals = {n: _positive(ms) for n, ms in timing.get("rivals", {}).items()}
            times |= {str(n): ms for n, ms in rivals.items() if ms is not None}
            axes = _axes({"workload": case["workload"]})
            yield _Point(str(solution["definition"]), hardware, axes, times)


def _times(solution: str, figures: Mapping[str, Any]) -> dict[str, float]:
    """Return curve → milliseconds; what is no positive number is left out."""
    latency = _positive(figures.get("latency_ms"))
    fraction = _positive(figures.get("fraction_of_light"))
    light = latency * fraction if latency and fraction else None
    times = {
        solution: latency,
        REFERENCE: _positive(figures.get("reference_latency_ms")),
        LIGHT: light,
    }
    return {name: ms for name, ms in times.items() if ms is not None}


def _positive(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0.0 < value < 1e12 else None


def _axes(value: Any) -> dict[str, int]:
    axes = value["workload"]["axes"]
    return {str(n): int(v) for n, v in axes.items() if isinstance(v, int)}


def _text(value: str) -> str:
    return html.escape(one_line(value, 120))
