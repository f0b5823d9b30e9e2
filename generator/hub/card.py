"""Write a dataset's card: the README.md that the Hub shows, and the tables it names.

The card's metadata declares the tables as configurations with their columns' types, so
that the Hub's viewer and `datasets` need not guess them: a column may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.hub.failures import NOT_INSTALLED
from generator.hub.tables import TABLES, Row, as_jsonl, features_of, tables_of
from generator.problems import Failure
from generator.problems.messages import one_line, plural
from generator.rendering.render import environment
from generator.reports.markdown import inert
from generator.results.sources import ORACLE
from generator.results.verification_report import summary

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
    title, known = data.get("pretty_name") or TITLE, str(data.get("license") or "")
    known = known if LICENSE_ID.fullmatch(known) else ""
    return Settings(str(title), repo, known)


def card_files(dataset: Path, settings: Settings | None = None) -> dict[str, bytes]:
    """Return path → content of the card and its tables; the same dataset, the same bytes.

    Raises Failure, where a file of the dataset can't be read.
    """
    settings = settings or Settings()
    tables = tables_of(dataset)
    current: dict[str, list[Row]] = {}
    for line in tables.rows["verification"]:
        if not line["stale"]:
            current.setdefault(line["definition"], []).append(line)
    rows = {name: found for name, found in tables.rows.items() if found}
    title = one_line(settings.title, 200)
    known = settings.license or license_of(dataset)
    jinja = environment()
    jinja.filters["inert"] = inert
    text = jinja.get_template("card.md.jinja").render(
        card_data=_metadata(rows, title, known),
        title=inert(title) if settings.title != TITLE else TITLE,
        mark=MARK,
        summary=summary(tables.evidence),
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
    files = {_path(name): as_jsonl(of) for name, of in rows.items()}
    return {CARD: text.encode("utf-8"), **files}


def all_paths() -> tuple[str, ...]:
    """Return every path that a card may have."""
    return (CARD, *map(_path, TABLES))


def license_of(dataset: Path) -> str:
    """Return the Hub's identifier of the dataset's LICENSE, empty if not recognised."""
    try:
        with open(dataset / "LICENSE", "rb") as stream:
            head = stream.read(400)
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
            {"config_name": name, "features": features_of(rows[0])}
            for name, rows in tables.items()
        ],
    )
    return str(data.to_yaml())
