"""Pages of how far models are covered: in Markdown, and in HTML with a search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from generator.models.coverage import ModuleCoverage, State
from generator.models.survey import COLUMNS, ModelSurvey
from generator.reports.templates import html_environment

_ABOUT = (
    "What each model runs on one GPU in the order of a forward pass, with pages of 64: "
    "a column a parallelism. A definition's line says what agreed with it or why nothing "
    "did."
)
_NONE = " "
_MARKS = {
    State.KERNEL: "k",
    State.LAYER: "l",
    State.ORACLE: "o",
    State.UNVERIFIED: "u",
}
_MISSING = "m"
# a sign, since colours alone are not for everybody; the class of a style sheet; in words
_LEGEND = {
    "k": ("✓", "kernel", "a kernel agreed"),
    "l": ("≈", "layer", "a PyTorch layer of SGLang agreed, no kernel"),
    "o": ("~", "oracle", "only the oracle agreed"),
    "u": ("?", "unverified", "a definition that nothing agreed with yet"),
    _MISSING: ("✕", "missing", "no definition"),
}


def coverage_html(models: Mapping[str, ModelSurvey]) -> str:
    """Return HTML that needs nothing else: a table a model, a row a definition."""
    texts = _Texts()
    entries = [_model(name, surveyed, texts) for name, surveyed in models.items()]
    counts = Counter("".join(row[2] for entry in entries for row in entry["rows"]))
    legend = {
        mark: {"sign": sign, "kind": kind, "text": text, "count": counts[mark]}
        for mark, (sign, kind, text) in _LEGEND.items()
    }
    data = {
        "columns": [*COLUMNS],
        "legend": legend,
        "texts": [*texts.places],
        "models": entries,
    }
    template = html_environment().get_template("coverage.html.jinja")
    return template.render(about=_ABOUT, legend=legend, data=data)


class _Texts:
    """Number texts, so that a page holds each once."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))


def _model(name: str, surveyed: ModelSurvey, texts: _Texts) -> dict[str, Any]:
    """Return a model's rows: module, definition, a mark for each column, and a note."""
    marks: dict[tuple[str, str], dict[str, str]] = {}
    notes: dict[tuple[str, str], str] = {}
    # where a module stands in a forward pass, in each column
    places: dict[str, list[float]] = {}
    for column, covered in surveyed.covered.items():
        for number, entry in enumerate(covered):
            key = (entry.need.module, entry.need.name)
            marks.setdefault(key, {})[column] = _MARKS.get(entry.state, _MISSING)
            notes.setdefault(key, _note(entry))
            places.setdefault(entry.need.module, []).append(number / len(covered))
    ordered = sorted(marks, key=lambda key: (fmean(places[key[0]]), key[0]))
    columns = {
        column: [needed - len(surveyed.missing(column)), needed]
        for column in surveyed.covered
        for needed in [len(surveyed.definitions(column))]
    }
    rows = [
        [
            *map(texts.place, key),
            "".join(marks[key].get(column, _NONE) for column in COLUMNS),
            texts.place(notes[key]),
        ]
        for key in ordered
    ]
    return {"name": name, "there": columns, "refused": surveyed.refused, "rows": rows}


def _note(entry: ModuleCoverage) -> str:
    return ": ".join(filter(None, [entry.state.value, entry.note]))


_PAGE = """# Models and their definitions

How many of the definitions that one GPU runs are there, with pages of 64, for each model
whose figures are here and each parallelism. [coverage.html](coverage.html) has them module
by module, with a search; [models.md](../models.md) explains the states. Written by
`python tools/build_pages.py`. Don't edit.

"""


def coverage_page(models: Mapping[str, ModelSurvey]) -> str:
    """Return Markdown: a row a model, then what is complete, refused, and not made."""
    lines = [_PAGE, _line("model", *COLUMNS), _line("---", *["---:"] * len(COLUMNS))]
    for name, surveyed in models.items():
        lines.append(_line(name, *(_share(surveyed, column) for column in COLUMNS)))
    complete = [*_complete(models)]
    if complete:
        lines.append(
            "\n## What is complete\n\nAnd what agreed with the definitions; what is not "
            "placed has none.\n\n"
        )
        heads, under = ("model", ""), ("---", "---")
        lines += [
            _line(*heads, *_AGREED, "not placed"),
            _line(*under, *_RIGHT, "---"),
        ]
        lines += [_line(*cells) for cells in complete]
    refused = [*_refused(models)]
    if refused:
        lines += ["\n## What is refused\n\n", *refused]
    wanted = _wanted(models)
    if wanted:
        lines.append("\n## What no family makes yet\n\n")
        lines += [_line("op_type", "kind", "models"), _line("---", "---", "---")]
        lines += [
            _line(op_type, f"`{kind}`", ", ".join(names))
            for (op_type, kind), names in wanted
        ]
    return "".join(lines)


def _share(surveyed: ModelSurvey, column: str) -> str:
    if column in surveyed.refused:
        return "refused"
    if column not in surveyed.covered:
        return ""
    count, missing = (
        len(of) for of in (surveyed.definitions(column), surveyed.missing(column))
    )
    return f"{count - missing} of {count}" if missing else f"**all {count}**"


_AGREED = {
    "a kernel": State.KERNEL,
    "a PyTorch layer": State.LAYER,
    "the oracle alone": State.ORACLE,
    "nothing yet": State.UNVERIFIED,
}
_RIGHT = ["---:"] * len(_AGREED)


def _complete(models: Mapping[str, ModelSurvey]) -> Iterator[list[object]]:
    """Yield a row for each model and column of which every definition is there."""
    for name, surveyed in models.items():
        for column in surveyed.covered:
            if not surveyed.missing(column):
                states = Counter(e.state for e in surveyed.definitions(column))
                agreed = (states[state] for state in _AGREED.values())
                yield [name, column, *agreed, ", ".join(surveyed.unplaced)]


def _refused(models: Mapping[str, ModelSurvey]) -> Iterator[str]:
    """Yield a line for each reason of a model, with the columns that it holds in."""
    for surveyed in models.values():
        reasons: dict[str, list[str]] = {}
        for column, reason in surveyed.refused.items():
            reasons.setdefault(reason, []).append(column)
        for reason, columns in reasons.items():
            where = "" if not surveyed.covered else f" ({'; '.join(columns)})"
            yield f"- {reason}{where}\n"


def _wanted(
    models: Mapping[str, ModelSurvey],
) -> list[tuple[tuple[str, str], Sequence[str]]]:
    """Return op_type and kind of what no family makes with the models, most wanted first."""
    wanted: dict[tuple[str, str], dict[str, None]] = {}
    for name, surveyed in models.items():
        for entry in (e for covered in surveyed.covered.values() for e in covered):
            if entry.state is State.NO_FAMILY:
                key = (entry.need.op_type, _kind(entry.need.name))
                wanted.setdefault(key, {})[name] = None
    ordered = sorted(wanted.items(), key=lambda item: -len(item[1]))
    return [(key, [*names]) for key, names in ordered]


def _line(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"


def _kind(name: str) -> str:
    """Return a definition's name without its numbers: of `gemm_n64_k32`, `gemm`."""
    return re.sub(r"_(?:[a-z]+|eps_1em)\d+(?=_|$)", "", name)
