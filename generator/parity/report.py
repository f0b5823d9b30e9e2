"""Results of a comparison with transformers, as a Report and as a heat map."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.parity.kernel_effect import effect
from generator.problems.messages import plural
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)

Found = Mapping[str, Any]
_TITLES = {
    "stage": "each stage on transformers' own inputs",
    "layer": "each layer, its stages chained",
    "forward": "the whole model",
    "decode": "decoding through a paged cache",
    "train": "steps of SGD",
}
LEGEND = (
    "-log10 of the NMSE by stage and layer: 0 is all wrong, = equal bits, ! broken, "
    "(n) computed without a definition"
)

BACKWARD_LEGEND = (
    "the same of the gradients of what stages write, from the loss back: STAGE: VALUE"
)


@dataclass(frozen=True)
class ComparedModel:
    """A model, and dtype → level → what the worker found.

    `uncovered` are definitions that it needs and nobody has; `there` are those of the
    dataset that it needs.
    """

    model: str
    found: Mapping[str, Mapping[str, Any]]
    uncovered: Sequence[str]
    there: Sequence[str]


def parity_report(geometry: str, models: Sequence[ComparedModel]) -> Report:
    """Return the report of some models at one geometry."""
    sections, reasons, count = [], [], 0
    for one in models:
        for dtype, levels in one.found.items():
            for level, values in levels.items():
                where = f"{one.model}, {dtype}, {level}"
                tables = list(_TABLES[level](values))
                sections.append(Section(f"{where}: {_TITLES[level]}", tables))
                reasons += [f"{where}: {why}" for why in failures(level, values)]
                count += 1
            if " with " in dtype:
                where = f"{one.model}, {dtype}"
                plain = one.found[dtype.split(" with ")[0]]
                tables = list(effect(plain, levels))
                sections.append(Section(f"{where}: beside the references", tables))
    missing = sorted({name for one in models for name in one.uncovered})
    summary = plural(count, "comparison")
    summary += f", first broken: {reasons[0]}" if reasons else " passed"
    if missing:
        summary += f"; not covered: {', '.join(missing)}"
    status = Status.FAILED if reasons else Status.PASSED
    names = ", ".join(one.model for one in models)
    return Report(
        f"Parity of {names} with transformers",
        "trace-dataset parity",
        lambda: Conclusion(status, summary, reasons=tuple(reasons)),
        {
            "geometry": geometry,
            "passed": not reasons,
            "models": [
                {
                    "model": one.model,
                    "not_covered": list(one.uncovered),
                    "found": _plain(one.found),
                }
                for one in models
            ],
        },
        sections,
        about=f"{names}: {geometry} geometry, against transformers",
    )


def _plain(value: Any) -> Any:
    """Return a value that JSON has: what is not finite becomes text."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    is_odd = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_odd else value


def failures(level: str, values: Any) -> Iterator[str]:
    """Yield what broke a bound, in words, the first one first."""
    if level == "stage":
        yield from (_why(entry) for entry in values if not entry["passed"])
    elif level == "layer":
        for entry in values:
            if entry["passed"] is False:
                yield f"layer {entry['layer']}: {_figures(entry)}"
    elif level == "forward":
        if values["passed"] is False:
            yield "; ".join([f"logits {_figures(values)}", *values["flags"]])
    elif level == "decode":
        for entry in values.get("sampled", ()):
            if entry["passed"] is False:
                sizes = " and ".join(map(str, entry["page_sizes"]))
                yield f"drawn tokens differ between pages of {sizes}"
        for entry in (*values["pages"], *values["lengths"]):
            if entry["passed"] is False:
                yield f"{_key(entry)}: {_figures(entry)}"
    elif not values["passed"]:
        yield values["why"]


def _why(entry: Found) -> str:
    where = _place(entry)
    if entry.get("not_finite"):
        return (
            f"{where}: transformers' own values are not finite; the rest is not judged"
        )
    if "odd" in entry:
        return (
            f"{where} ({entry['definition'] or 'no definition'}): NMSE "
            f"{entry['nmse']:.1e} is allowed, but over ten times that of other layers, "
            f"{entry['odd']:.1e}"
        )
    row, column, actual, expected = entry["worst"][0]
    return (
        f"{where} ({entry['definition'] or 'no definition'}): {_figures(entry)}; at "
        f"[{row}, {column}] it is {actual:.6g}, transformers' is {expected:.6g}"
    )


def _place(entry: Found) -> str:
    layer = entry["layer"]
    return entry["stage"] if layer is None else f"layer {layer}, {entry['stage']}"


def _key(entry: Found) -> str:
    if "length" in entry:
        return f"length {entry['length']}"
    return f"pages of {entry['page_size']}"


def _figures(entry: Found) -> str:
    if "ratio" in entry:
        return (
            f"NMSE {entry['nmse']:.1e} is {entry['ratio']:.2f} times transformers' own, "
            f"allowed {entry['bound']:g}"
        )
    words = f"NMSE {entry['nmse']:.1e}, allowed {entry['bound']:.1e}"
    return words + ("" if entry.get("greedy", True) else "; greedy tokens differ")


def _map(values: Sequence[Found]) -> tuple[list[Row], tuple[str, ...]]:
    """Return rows and columns of a heat map: stages by layers."""
    layers = sorted({e["layer"] for e in values if e["layer"] is not None})
    stages: dict[str, dict[int | None, Found]] = {}
    for entry in values:
        stages.setdefault(entry["stage"], {})[entry["layer"]] = entry
    columns = ("stage", "definition", "outside", *(str(layer) for layer in layers))
    rows = [
        Row(
            (
                stage,
                Quoted(next(iter(of.values())).get("definition") or ""),
                *(cell(of.get(layer)) for layer in (None, *layers)),
            ),
            _status(all(entry["passed"] for entry in of.values())),
            why="; ".join(
                _why(e) for e in of.values() if not e["passed"] and "readers" not in e
            ),
        )
        for stage, of in stages.items()
    ]
    return rows, columns


def _stage_tables(values: Sequence[Found]) -> Iterator[Table]:
    rows, columns = _map(values)
    yield Table(rows, columns, columns[:2], title=LEGEND)
    if first := first_divergence(values):
        yield Table([Row((first,))])


def first_divergence(values: Sequence[Found]) -> str:
    """Return in words the first stage that broke its bound, empty where none did."""
    broken = next((entry for entry in values if not entry["passed"]), None)
    return f"first divergence: {_why(broken)}" if broken else ""


def cell(entry: Found | None) -> str:
    """Return a cell of the heat map: digits of agreement, and what is wrong."""
    if entry is None:
        return ""
    if entry.get("not_finite"):
        return "NaN!"
    error = entry["nmse"]
    digits = "NaN" if math.isnan(error) else "=" if error == 0 else _digits(error)
    if not entry["passed"]:
        return f"{digits}!"
    return digits if entry["definition"] else f"({digits})"


def _digits(error: float) -> str:
    return "0" if math.isinf(error) else f"{max(0.0, -math.log10(error)):.0f}"


def _status(passed: bool | None) -> Status:
    if passed is None:
        return Status.OPEN
    return Status.PASSED if passed else Status.FAILED


def _layer_tables(values: Sequence[Found]) -> Iterator[Table]:
    rows = [
        Row((f"layer {e['layer']}", *_cells(e)), _status(e["passed"])) for e in values
    ]
    yield Table(rows, ("layer", *_COLUMNS), ("layer",))


_COLUMNS = ("NMSE", "transformers' own", "ratio", "allowed")


def _cells(entry: Found) -> tuple[str, ...]:
    theirs = f"{entry['own']:.1e}" if "own" in entry else ""
    ratio = f"{entry['ratio']:.2f}" if "ratio" in entry else ""
    return f"{entry['nmse']:.1e}", theirs, ratio, f"{entry['bound']:.1g}"


def _forward_tables(values: Found) -> Iterator[Table]:
    rows = [Row(("logits", *_cells(values)), _status(values["passed"]))]
    for step in values["growth"]:
        theirs = f"{step['own']:.1e}" if "own" in step else ""
        row = (f"behind layer {step['layer']}", f"{step['nmse']:.1e}", theirs, "", "")
        rows.append(Row(row))
    title = f"top-1 as transformers': {values['top1']:.1%}"
    yield Table(rows, ("values", *_COLUMNS), ("values",), title=title)
    yield Table([Row((flag,)) for flag in values["flags"]])


def _decode_tables(values: Found) -> Iterator[Table]:
    if not values["page_sizes"]:
        yield Table([Row(("No size of pages has definitions for every layer.",))])
        return
    rows = [
        Row((_key(e), *_cells(e)), _status(e["passed"]))
        for e in (*values["pages"], *values["lengths"])
    ]
    yield Table(rows, ("cache", *_COLUMNS), ("cache",))
    for drawn in values.get("sampled", ()):
        sizes = ", ".join(map(str, drawn["page_sizes"]))
        row = (Quoted(drawn["definition"]), str(len(drawn["tokens"])), sizes)
        columns = ("drawn by", "tokens", "equal through pages of")
        yield Table([Row(row, _status(drawn["passed"]))], columns)


def _train_tables(values: Found) -> Iterator[Table]:
    if backwards := values.get("backward"):
        rows, columns = _map(backwards)
        yield Table(rows, columns, columns[:2], title=BACKWARD_LEGEND)
    if values["why"]:
        yield Table([Row((values["why"],))])
    columns = (
        *("step", "loss", "loss apart", "allowed"),
        *("weights apart, of what moved", "allowed", "largest apart", "allowed"),
    )
    rows = [
        Row(
            (
                str(e["step"]),
                f"{e['loss']:.5f}",
                f"{e['loss_apart']:.1e}",
                f"{e['loss_bound']:.1e}",
                f"{e['apart']:.1e}",
                f"{e['bound']:.1e}",
                f"{e['largest']:.1e}",
                f"{e['largest_bound']:.1e}",
            ),
            _status(e["passed"]),
        )
        for e in values["steps"]
    ]
    title = f"gradients: worst {values['gradient_kind']} {values['gradient']:.1e}"
    title += f", of {values['worst']}"
    yield Table(rows, columns, title=title)


_TABLES: Mapping[str, Callable[[Any], Iterator[Table]]] = {
    "stage": _stage_tables,
    "layer": _layer_tables,
    "forward": _forward_tables,
    "decode": _decode_tables,
    "train": _train_tables,
}
