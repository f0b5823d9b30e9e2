"""Lay a dataset out as flat tables, one row an object with the same columns.

The files of a dataset can't be shown as tables themselves: each definition's `axes` and
`inputs` have keys of their own, so that no two files have the same columns.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.definition import Definition, Tensor
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import discover_definitions
from generator.dataset.schema import check
from generator.problems import Problem, has_errors
from generator.problems.failure import Failure
from generator.results.audit_result import CAUGHT
from generator.results.audits import Audited, read_audits
from generator.results.evidence import kept_runs
from generator.results.verification import (
    Verification,
    VerificationLine,
    agreed,
    table_of,
)
from generator.rules.load import load_definitions

STRING, INTEGER, NUMBER, FLAG, DATE = "string", "int64", "float64", "bool", "date32"
_MACHINE = ("gpu", "torch", "cuda", "flashinfer", "sglang")
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "definitions": {
        "name": STRING,
        "op_type": STRING,
        "description": STRING,
        "models": f"list {STRING}",
        "fi_api": f"list {STRING}",
        "tags": f"list {STRING}",
        "const_axes": STRING,
        "var_axes": f"list {STRING}",
        "inputs": f"list {STRING}",
        "outputs": f"list {STRING}",
        "constraints": f"list {STRING}",
        "reference": STRING,
        "workloads": INTEGER,
        "agrees_with": f"list {STRING}",
        "planted_defects": INTEGER,
        "caught_defects": INTEGER,
        "path": STRING,
        "sha256": STRING,
    },
    "workloads": {
        "definition": STRING,
        "op_type": STRING,
        "uuid": STRING,
        "axes": STRING,
        "random": f"list {STRING}",
        "scalars": STRING,
        "blobs": f"list {STRING}",
    },
    "verification": {
        "definition": STRING,
        "op_type": STRING,
        "compared_with": STRING,
        "verdict": STRING,
        "stale": FLAG,
        "cases": INTEGER,
        "skipped": INTEGER,
        "nmse": NUMBER,
        "lse_error": NUMBER,
        "hit_ratio": NUMBER,
        "note": STRING,
        "date": DATE,
        **dict.fromkeys(_MACHINE, STRING),
    },
}
"""Table → its columns and their types, as the Hub's viewer and `datasets` name them."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """Hold a dataset's tables: the rows of each, and the evidence behind them."""

    definitions: Sequence[Row]
    workloads: Sequence[Row]
    verification: Sequence[Row]
    evidence: Verification

    def rows(self, name: str) -> Sequence[Row]:
        """Return the rows of the table with a name of COLUMNS."""
        found: Sequence[Row] = getattr(self, name)
        return found


def tables_of(dataset: Path) -> Tables:
    """Return the tables of a dataset, always in the same order.

    Raises Failure, where a file can't be read as what it should be.
    """
    definitions = _loaded(dataset)
    discovered = discover_definitions(dataset)
    try:
        runs, audits = kept_runs(dataset), read_audits(dataset)
        evidence = table_of(dataset, discovered, runs, audits)
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
    agreeing = agreed(evidence.lines)
    audited = {line.definition: line.current for line in evidence.audits}
    rows, workloads = [], []
    for definition in definitions:
        of_one = list(_workloads(dataset, definition))
        workloads += of_one
        sources = agreeing.get(definition.name, ())
        found = audited.get(definition.name)
        rows.append(_definition(definition, len(of_one), sources, found))
    verification = [_verification(line, evidence) for line in evidence.lines]
    return Tables(rows, workloads, verification, evidence)


def as_jsonl(rows: Iterable[Row]) -> bytes:
    """Return the rows as JSON Lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode("ascii")


def _loaded(dataset: Path) -> Sequence[Definition]:
    loaded = load_definitions(dataset)
    if not loaded.files or len(loaded.definitions) < len(loaded.files):
        usable = {definition.path for definition in loaded.definitions}
        bad = [p for p in loaded.problems if p.file not in usable and has_errors([p])]
        raise Failure(_unfit(bad[0] if bad else loaded.problems[0]))
    return loaded.definitions


def _unfit(problem: Problem) -> str:
    return f"{problem} (trace-dataset validate says everything that is wrong.)"


def _definition(
    d: Definition, workloads: int, sources: Sequence[str], audited: Audited | None
) -> Row:
    const = (f"{name} = {value}" for name, value in d.const_axes.items())
    return {
        "name": d.name,
        "op_type": d.op_type,
        "description": _text(d.description),
        "models": [_text(v) for v in d.tag_values("model")],
        "fi_api": [_text(v) for v in d.tag_values("fi_api")],
        "tags": [_text(tag) for tag in d.tags],
        "const_axes": _text(", ".join(const)),
        "var_axes": [_text(name) for name in d.var_axes],
        "inputs": [_tensor(tensor) for tensor in d.inputs.values()],
        "outputs": [_tensor(tensor) for tensor in d.outputs.values()],
        "constraints": [_text(c) for c in d.constraints],
        "reference": _text(d.reference),
        "workloads": workloads,
        "agrees_with": list(sources),
        "planted_defects": audited.defects if audited else None,
        "caught_defects": audited.counts[CAUGHT] if audited else None,
        "path": d.path,
        "sha256": d.sha256,
    }


def _tensor(tensor: Tensor) -> str:
    """Return `q: bfloat16[batch_size, num_qo_heads]`, or `scale: float32 scalar`."""
    names = tensor.shape
    shape = " scalar" if names is None else f"[{', '.join(names)}]"
    optional = ", optional" if tensor.optional else ""
    return _text(f"{tensor.name}: {tensor.dtype}{shape}{optional}")


def _workloads(dataset: Path, d: Definition) -> Iterator[Row]:
    path = f"workloads/{d.op_type}/{d.name}.jsonl"
    if not (dataset / path).exists():
        return
    lines = read_json_lines(dataset, path)
    if has_errors(lines.problems):
        raise Failure(_unfit(lines.problems[0]))
    for number, line in lines.lines:
        broken = check(line, "workload", path, number)
        if broken:
            raise Failure(_unfit(broken[0]))
        workload = line["workload"]
        inputs = workload["inputs"].items()
        scalars = {n: v.get("value") for n, v in inputs if v["type"] == "scalar"}
        blobs = {v["path"] for _, v in inputs if v["type"] == "safetensors"}
        yield {
            "definition": d.name,
            "op_type": d.op_type,
            "uuid": _text(workload["uuid"]),
            "axes": json.dumps(workload["axes"]),
            "random": [_text(n) for n, v in inputs if v["type"] == "random"],
            "scalars": json.dumps(scalars),
            "blobs": sorted(_text(b).removeprefix("./") for b in blobs),
        }


def _verification(line: VerificationLine, evidence: Verification) -> Row:
    run = evidence.runs[line.run - 1] if line.run else None
    figures = line.figures
    machine = run.machine if run is not None else {}
    return {
        "definition": _text(line.definition),
        "op_type": _text(line.op_type),
        "compared_with": line.source,
        "verdict": line.verdict,
        "stale": line.stale,
        "cases": figures.cases if figures else 0,
        "skipped": figures.skipped if figures else 0,
        "nmse": _finite(figures.nmse if figures else None),
        "lse_error": _finite(figures.lse if figures else None),
        "hit_ratio": _finite(figures.hit_ratio if figures else None),
        "note": _text(line.note),
        # readers take what looks like a date for one, whatever the column is said to be
        "date": _date(run.date) if run is not None else None,
        **{name: _text(machine.get(name) or "") for name in _MACHINE},
    }


def _date(text: str) -> str | None:
    """Return a day as it is written, None for what is none."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _finite(value: float | None) -> float | None:
    """Return a figure, None for what JSON has no number for: the verdict says it."""
    return value if value is not None and math.isfinite(value) else None


def _text(text: str) -> str:
    """Return text that every reader of JSON takes: halves of characters are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
