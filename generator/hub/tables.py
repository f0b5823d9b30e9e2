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
from generator.problems import Failure, Problem, has_errors
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

TABLES = {
    "definitions": "what each kernel computes: axes, inputs, outputs, and the "
    "PyTorch reference",
    "workloads": "the sizes and tensors that the kernels are called with",
    "verification": "what each reference was compared with, on which machine, and how "
    "far off it was",
}
"""Table → what it holds."""

_MACHINE = ("gpu", "torch", "cuda", "flashinfer", "sglang")
_TYPES = {
    **dict.fromkeys(("models", "fi_api", "tags", "var_axes"), "list string"),
    **dict.fromkeys(("inputs", "outputs", "constraints"), "list string"),
    **dict.fromkeys(("agrees_with", "random", "blobs"), "list string"),
    **dict.fromkeys(("workloads", "cases", "skipped"), "int64"),
    **dict.fromkeys(("planted_defects", "caught_defects"), "int64"),
    **dict.fromkeys(("nmse", "lse_error", "hit_ratio"), "float64"),
    "stale": "bool",
    "date": "date32",
}
"""Column → its type, as the Hub's viewer and `datasets` name it; the others hold text."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """Hold the rows of each of TABLES, and the evidence behind them."""

    rows: Mapping[str, Sequence[Row]]
    evidence: Verification


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
    workloads = {d.name: list(_workloads(dataset, d)) for d in definitions}
    made = {
        "definitions": [
            _definition(
                d,
                len(workloads[d.name]),
                agreeing.get(d.name, ()),
                audited.get(d.name),
            )
            for d in definitions
        ],
        "workloads": [row for of_one in workloads.values() for row in of_one],
        "verification": [_verification(line, evidence) for line in evidence.lines],
    }
    rows = {name: [_readable(row) for row in found] for name, found in made.items()}
    return Tables(rows, evidence)


def features_of(row: Row) -> list[dict[str, str]]:
    """Return the columns of a row's table and their types, for the card's metadata."""
    found = []
    for column in row:
        key, _, of = _TYPES.get(column, "string").rpartition(" ")
        found.append({"name": column, key or "dtype": of})
    return found


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
        "description": d.description,
        "models": list(d.tag_values("model")),
        "fi_api": list(d.tag_values("fi_api")),
        "tags": list(d.tags),
        "const_axes": ", ".join(const),
        "var_axes": list(d.var_axes),
        "inputs": [_tensor(tensor) for tensor in d.inputs.values()],
        "outputs": [_tensor(tensor) for tensor in d.outputs.values()],
        "constraints": list(d.constraints),
        "reference": d.reference,
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
    return f"{tensor.name}: {tensor.dtype}{shape}{optional}"


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
            "uuid": workload["uuid"],
            "axes": json.dumps(workload["axes"]),
            "random": [n for n, v in inputs if v["type"] == "random"],
            "scalars": json.dumps(scalars),
            "blobs": sorted(b.removeprefix("./") for b in blobs),
        }


def _verification(line: VerificationLine, evidence: Verification) -> Row:
    run = evidence.runs[line.run - 1] if line.run else None
    figures = line.figures
    machine = run.machine if run is not None else {}
    return {
        "definition": line.definition,
        "op_type": line.op_type,
        "compared_with": line.source,
        "verdict": line.verdict,
        "stale": line.stale,
        "cases": figures.cases if figures else 0,
        "skipped": figures.skipped if figures else 0,
        "nmse": figures.nmse if figures else None,
        "lse_error": figures.lse if figures else None,
        "hit_ratio": figures.hit_ratio if figures else None,
        "note": line.note,
        # readers take what looks like a date for one, whatever the column is said to be
        "date": _date(run.date) if run is not None else None,
        **{name: machine.get(name) or "" for name in _MACHINE},
    }


def _date(text: str) -> str | None:
    """Return a day as it is written, None for what is none."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _readable(row: Row) -> Row:
    """Return a row whose text every reader of JSON takes.

    Halves of characters are escaped, and figures that JSON has no number for are none:
    the verdict says it.
    """
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_value(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
