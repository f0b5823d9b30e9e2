"""Write a dataset's card: the README.md that the Hub shows, and the tables it names.

The card's metadata declares the tables as configurations with their columns' types, so
that the Hub's viewer and `datasets` need not guess them: a column may be empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.hub.failures import NOT_INSTALLED
from generator.hub.tables import COLUMNS, Row, Tables, as_jsonl, tables_of
from generator.problems.failure import Failure
from generator.problems.messages import one_line, plural
from generator.reports.markdown import inert, table
from generator.results.sources import ORACLE
from generator.results.verification_report import summary

CARD = "README.md"
FOLDER = "tables"
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
_ABOUT = {
    "definitions": "what each kernel computes: axes, inputs, outputs, and the "
    "PyTorch reference",
    "workloads": "the sizes and tensors that the kernels are called with",
    "verification": "what each reference was compared with, on which machine, and how "
    "far off it was",
}
_LAYOUT = """\
| path | content |
|---|---|
| `definitions/<op_type>/<name>.json` | one definition, with its PyTorch `reference` |
| `workloads/<op_type>/<name>.jsonl` | its workloads, one a line |
| `blob/workloads/<op_type>/<name>/` | tensors that the workloads name |
| `blob/ground_truth/<op_type>/<name>.safetensors` | what production kernels returned |
| `solutions/`, `traces/` | kernels, and how they did |
| `verification/*.json` | the evidence behind the table of verification |
| `tests/references/` | tests of the references; they run with pytest and torch |
| `tables/*.jsonl` | the tables above, made out of the other files |"""


@dataclass(frozen=True)
class Settings:
    """Hold what the dataset's own files don't say; empty for what nobody said.

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
        text = (dataset / CARD).read_text("utf-8")
    except FileNotFoundError:
        return Settings(repo=repo)
    except (OSError, UnicodeDecodeError):
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
    known = str(data.get("license") or "")
    return Settings(
        str(data.get("pretty_name") or TITLE),
        repo,
        known if LICENSE_ID.fullmatch(known) else "",
    )


def card_files(dataset: Path, settings: Settings | None = None) -> dict[str, bytes]:
    """Return path → content of the card and its tables; the same dataset, the same bytes.

    Raises Failure, where a file of the dataset can't be read.
    """
    settings = settings or Settings()
    tables = tables_of(dataset)
    names = [name for name in COLUMNS if tables.rows(name)]
    files = {_path(name): as_jsonl(tables.rows(name)) for name in names}
    known = settings.license or license_of(dataset)
    return {CARD: _card(tables, names, settings, known).encode("utf-8"), **files}


def all_paths() -> tuple[str, ...]:
    """Return every path that a card may have."""
    return (CARD, *map(_path, COLUMNS))


def license_of(dataset: Path) -> str:
    """Return the Hub's identifier of the dataset's LICENSE, empty if not recognised."""
    try:
        with open(dataset / "LICENSE", "rb") as stream:
            head = stream.read(400)
    except OSError:
        return ""
    return next((name for known, name in _LICENSES if known.match(head)), "")


def _path(name: str) -> str:
    return f"{FOLDER}/{name}.jsonl"


def _card(tables: Tables, names: Sequence[str], settings: Settings, known: str) -> str:
    title = one_line(settings.title, 200)
    parts = [
        _metadata(tables, names, title, known),
        f"# {inert(title)}" if settings.title != TITLE else f"# {TITLE}",
        MARK,
        _OPENING,
        summary(tables.evidence),
        "## Tables",
        table(
            ("table", "rows", "what it holds"),
            ([f"`{n}`", str(len(tables.rows(n))), _ABOUT[n]] for n in names),
        ),
        "## How to load it",
        _loading(settings.repo or "OWNER/NAME", names),
        "## Op types",
        _op_types(tables),
        "## Verification",
        _verification(tables),
        "## Files",
        _LAYOUT,
    ]
    if known:
        parts += ["## License", f"{inert(known)}, see `LICENSE` if there is one."]
    return "\n\n".join(parts) + "\n"


_OPENING = (
    "A trace dataset: what GPU kernels of large language models compute, as definitions "
    "with a\nPyTorch reference each, the workloads they are called with, and what the "
    "references were\ncompared with. People and agents write fast kernels against the "
    "definitions."
)


def _metadata(tables: Tables, names: Sequence[str], title: str, known: str) -> str:
    """Return the YAML block. Raises Failure without huggingface_hub."""
    try:
        from huggingface_hub import DatasetCardData
    except ImportError:
        raise Failure(NOT_INSTALLED) from None

    op_types = {str(row["op_type"]) for row in tables.definitions}
    rows = sum(len(tables.rows(name)) for name in names)
    size = next((label for limit, label in _SIZES if rows < limit), _LARGEST)
    configs: list[dict[str, Any]] = [
        {
            "config_name": name,
            "data_files": [{"split": "train", "path": _path(name)}],
        }
        for name in names
    ]
    configs[0]["default"] = True
    data = DatasetCardData(
        pretty_name=title,
        license=known or None,
        language=["en"],
        size_categories=[size],
        tags=sorted({*_TAGS, *filter(_TAG.fullmatch, op_types)}),
        configs=configs,
        dataset_info=[
            {"config_name": name, "features": _features(name)} for name in names
        ],
    )
    return f"---\n{data.to_yaml()}\n---"


def _features(name: str) -> list[dict[str, str]]:
    found = []
    for column, kind in COLUMNS[name].items():
        key, _, of = kind.rpartition(" ")
        found.append({"name": column, key or "dtype": of})
    return found


def _loading(repo: str, names: Sequence[str]) -> str:
    shown = json.dumps(repo)
    lines = [
        f'{n} = load_dataset({shown}, {json.dumps(n)}, split="train")' for n in names
    ]
    body = "\n".join(lines)
    return (
        f"```python\nfrom datasets import load_dataset\n\n{body}\n```\n\n"
        "`axes` and `scalars` of a workload are JSON, since their keys differ from definition "
        "to\ndefinition. The files themselves, with a check of every hash, and without the blobs "
        "that nobody needs:\n\n"
        f"```sh\ntrace-dataset pull --repo {repo} --all --blobs needed\n```"
    )


def _op_types(tables: Tables) -> str:
    by_type: dict[str, list[Row]] = {}
    for row in tables.definitions:
        by_type.setdefault(row["op_type"], []).append(row)
    rows = []
    for op_type, of_one in by_type.items():
        kernels = sum(any(s != ORACLE for s in row["agrees_with"]) for row in of_one)
        workloads = sum(row["workloads"] for row in of_one)
        cells = (len(of_one), workloads, kernels)
        rows.append([inert(op_type), *map(str, cells)])
    head = ("op_type", "definitions", "workloads", "agree with a production kernel")
    return table(head, rows)


def _verification(tables: Tables) -> str:
    """Return one row a definition: what agreed, what failed, and the largest NMSE."""
    by_name: dict[str, list[Row]] = {}
    for row in tables.verification:
        by_name.setdefault(row["definition"], []).append(row)
    rows = list(_verified(tables.definitions[:_LISTED], by_name))
    more = len(tables.definitions) - len(rows)
    left = f"\n\n{plural(more, 'definition')} more: see the table `verification`."
    head = "definition|agrees with|worst NMSE of these|failed against"
    head += "|planted defects caught"
    return table(head.split("|"), rows) + (left if more else "")


def _verified(
    definitions: Iterable[Row], lines: Mapping[str, Sequence[Row]]
) -> Iterator[list[str]]:
    for row in definitions:
        name = row["name"]
        sources = row["agrees_with"]
        now = [line for line in lines.get(name, ()) if not line["stale"]]
        good = [x for x in now if x["compared_with"] in sources]
        errors = [x["nmse"] for x in good if x["nmse"] is not None]
        failed = sorted(
            {x["compared_with"] for x in now if x["verdict"] in ("FAILED", "ERROR")}
        )
        yield [
            inert(name),
            ", ".join(map(inert, sources)) or "nothing yet",
            f"{max(errors):.1e}" if errors else "",
            ", ".join(map(inert, failed)),
            _caught(row),
        ]


def _caught(row: Row) -> str:
    """Return `157 / 158`, empty where no audit of this text is on record."""
    if row["planted_defects"] is None:
        return ""
    return f"{row['caught_defects']} / {row['planted_defects']}"
