"""Write a dataset's card: the README.md that the Hub shows, and the tables it names.

The card's metadata declares the tables as configurations with their columns' types, so
that the Hub's viewer and `datasets` need not guess them: a column may be empty.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition, LoadedTensor
from generator.dataset.file_reading import (
    is_absent,
    opened,
    read_at_most,
    read_text,
)
from generator.dataset.paths import discover_definitions
from generator.dataset.schema import read_checked_lines
from generator.hub.failures import NOT_INSTALLED
from generator.problems import Failure, Problem, has_errors
from generator.problems.messages import one_line, plural
from generator.rendering.render import environment
from generator.reports.markdown import inert
from generator.results.audits import CAUGHT, Audited, read_audits
from generator.results.evidence import kept_runs
from generator.results.sources import ORACLE
from generator.results.verification import (
    Verification,
    VerificationLine,
    agreed,
    table_of,
)
from generator.results.verification_report import summary
from generator.rules.load import load_definitions

CARD = "README.md"
MARK = "<!-- Written by `trace-dataset card`. Don't edit. -->"
TITLE = "GPU kernel definitions with ground truth"
LICENSE_ID = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}")

# as the Hub names them: at least one fewer than the number, which is exclusive
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_LARGEST = "10M<n<100M"
_TAG = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_TAGS = ("benchmark", "cuda", "flashinfer", "gpu-kernels")
_LICENSES = (
    (re.compile(rb"\s*Apache License\s+Version 2\.0"), "apache-2.0"),
    (re.compile(rb"\s*(The )?MIT License"), "mit"),
    (re.compile(rb"\s*BSD 3-Clause"), "bsd-3-clause"),
)
_LISTED = 1_000

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
    **dict.fromkeys(("models", "fi_api", "tags", "var_axes"), ("list", "string")),
    **dict.fromkeys(("inputs", "outputs", "constraints"), ("list", "string")),
    **dict.fromkeys(("agrees_with", "random", "blobs"), ("list", "string")),
    **dict.fromkeys(("workloads", "cases", "skipped"), ("dtype", "int64")),
    **dict.fromkeys(("planted_defects", "caught_defects"), ("dtype", "int64")),
    **dict.fromkeys(("nmse", "lse_error", "hit_ratio"), ("dtype", "float64")),
    "stale": ("dtype", "bool"),
    "date": ("dtype", "date32"),
}
"""Column → its type, as the Hub's viewer and `datasets` name it; the others hold text."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Facts that the dataset's own files lack; empty where unknown.

    `repo` is OWNER/NAME, `license` an identifier of the Hub's list.
    """

    title: str = TITLE
    repo: str = ""
    license: str = ""


def settings_of(dataset: Path, repo: str) -> Settings:
    """Return the settings of the card that the dataset has, for a repository.

    Raises Failure, for a README.md that `trace-dataset card` did not write.
    """
    from huggingface_hub import DatasetCard

    try:
        text = read_text(dataset, CARD)
    except FileNotFoundError:
        return Settings(repo=repo)
    except OSError:
        text = ""
    if MARK not in text:
        raise Failure(
            f"{CARD} was not written by trace-dataset card, which makes the card that is "
            "pushed: trace-dataset card --force."
        )
    try:
        data = DatasetCard(text).data
    except Exception:  # noqa: BLE001 - the YAML library's kinds; somebody edited it
        raise Failure(f"{CARD} has broken metadata: trace-dataset card.") from None
    title, known = data.get("pretty_name") or TITLE, str(data.get("license") or "")
    known = known if LICENSE_ID.fullmatch(known) else ""
    return Settings(str(title), repo, known)


def card_files(dataset: Path, settings: Settings | None = None) -> dict[str, bytes]:
    """Return path → content of the card and its tables; the same dataset, the same bytes.

    Raises Failure, where a file of the dataset can't be read.
    """
    settings = settings or Settings()
    rows, evidence = _tables(dataset)
    current: dict[str, list[Row]] = {}
    for line in rows.get("verification", ()):
        if not line["stale"]:
            current.setdefault(line["definition"], []).append(line)
    title = one_line(settings.title, 200)
    known = settings.license or license_of(dataset)
    jinja = environment()
    jinja.filters["inert"] = inert
    text = jinja.get_template("card.md.jinja").render(
        card_data=_metadata(rows, title, known),
        title=inert(title) if settings.title != TITLE else TITLE,
        mark=MARK,
        summary=summary(evidence),
        rows=rows,
        about=TABLES,
        repo=settings.repo or "OWNER/NAME",
        current=current,
        listed=_LISTED,
        oracle=ORACLE,
        inert=inert,
        plural=plural,
        license=inert(known) if known else "",
    )
    lines = {
        name: "".join(f"{json.dumps(row)}\n" for row in rows[name]) for name in rows
    }
    files = {_path(name): text.encode("ascii") for name, text in lines.items()}
    return {CARD: text.encode("utf-8"), **files}


def all_paths() -> tuple[str, ...]:
    """Return every path that a card may have."""
    return (CARD, *map(_path, TABLES))


def license_of(dataset: Path) -> str:
    """Return the Hub's identifier of the dataset's LICENSE, empty if not recognised."""
    try:
        with opened(dataset, "LICENSE") as descriptor:
            head = read_at_most(descriptor, 400)
    except OSError:
        return ""
    return next((name for known, name in _LICENSES if known.match(head)), "")


def _path(name: str) -> str:
    return f"tables/{name}.jsonl"


def _metadata(tables: Mapping[str, Sequence[Row]], title: str, known: str) -> str:
    """Return the YAML block. Raises Failure without huggingface_hub."""
    try:
        from huggingface_hub import DatasetCardData
    except ImportError:
        raise Failure(NOT_INSTALLED) from None

    op_types = {str(row["op_type"]) for row in tables["definitions"]}
    count = sum(map(len, tables.values()))
    data = DatasetCardData(
        pretty_name=title,
        license=known or None,
        language=["en"],
        size_categories=[next((s for most, s in _SIZES if count < most), _LARGEST)],
        tags=sorted({*_TAGS, *filter(_TAG.fullmatch, op_types)}),
        configs=[
            {
                "config_name": name,
                "data_files": [{"split": "train", "path": _path(name)}],
                **({"default": True} if name == "definitions" else {}),
            }
            for name in tables
        ],
        dataset_info=[
            {
                "config_name": name,
                "features": [
                    dict([("name", column), _TYPES.get(column, ("dtype", "string"))])
                    for column in rows[0]
                ],
            }
            for name, rows in tables.items()
        ],
    )
    return str(data.to_yaml())


def _tables(dataset: Path) -> tuple[Mapping[str, Sequence[Row]], Verification]:
    """Return the rows of each of TABLES, in order, and the evidence behind them.

    The files of a dataset can't be shown as tables themselves: each definition's `axes`
    and `inputs` have keys of their own, so that no two files have the same columns.
    Raises Failure, where a file can't be read as what it should be.
    """
    loaded = load_definitions(dataset)
    definitions = loaded.definitions
    if not loaded.files or len(definitions) < len(loaded.files):
        usable = {definition.path for definition in definitions}
        bad = [p for p in loaded.problems if p.file not in usable and has_errors([p])]
        raise _unfit(bad or loaded.problems)
    discovered = discover_definitions(dataset)
    try:
        runs, audits = kept_runs(dataset), read_audits(dataset)
        evidence = table_of(dataset, discovered, runs, audits)
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
    agreeing = agreed(evidence.lines)
    audited = {line.definition: line.current for line in evidence.audits}
    workloads = {d.name: list(_workloads(dataset, d)) for d in definitions}
    tables = {
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
        "verification": list(map(_verification, evidence.lines)),
    }
    rows = {name: list(map(_readable, one)) for name, one in tables.items() if one}
    return rows, evidence


def _unfit(problems: Sequence[Problem]) -> Failure:
    what = "(trace-dataset validate says everything that is wrong.)"
    return Failure(f"{problems[0]} {what}")


def _definition(
    d: LoadedDefinition, workloads: int, sources: Sequence[str], audited: Audited | None
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


def _tensor(tensor: LoadedTensor) -> str:
    """Return `q: bfloat16[batch_size, num_qo_heads]`, or `scale: float32 scalar`."""
    optional = ", optional" if tensor.optional else ""
    return f"{tensor.name}: {tensor.declared}{optional}"


def _workloads(dataset: Path, d: LoadedDefinition) -> Iterator[Row]:
    path = f"workloads/{d.op_type}/{d.name}.jsonl"
    if is_absent(dataset, path):
        return
    read = read_checked_lines(dataset, path, "workload")
    if has_errors(read.problems):
        raise _unfit([p for p in read.problems if has_errors([p])])
    for _, line in read.lines:
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


def _verification(line: VerificationLine) -> Row:
    figures = line.figures
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
        "date": _date(line.run.date),
        **{name: line.run.machine.get(name) or "" for name in _MACHINE},
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
