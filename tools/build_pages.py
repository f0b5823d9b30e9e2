"""Write docs/generated/ and README.md's table of op_types, or check them.

python tools/build_pages.py [--check] [--keep FOLDER]

Not written are precision.md and precision.html, which take ten minutes of two cores
(`trace-dataset audit --tolerances --all --output`), and the two pages of FlashInfer's
templates and versions, which want runs on a GPU (`tools/build_templates_page.py`,
`tools/build_versions_page.py`). `--keep` leaves the repository of the example of a
review, for trying the command.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.atomic_write import write_atomically
from generator.dataset.paths import discover_definitions
from generator.evaluation.certification.coverage import of_hopper
from generator.evaluation.certification.report import certificate
from generator.evaluation.certification.result import current
from generator.evaluation.checkers.report import checkers_report
from generator.evaluation.checkers.result import known
from generator.hub.card import CARD, card_files
from generator.models.config import names
from generator.models.page import coverage_html, coverage_page
from generator.models.survey import survey
from generator.ops.registry import op_packages
from generator.reports import printed
from generator.results.audits import read_audits
from generator.results.evidence import kept_runs, runs_in
from generator.results.limits_page import PAGE, limits_page
from generator.results.sources import is_ground_truth, is_layer
from generator.results.verification import Verification, agreed, table_of
from generator.results.verification_page import verification_pages
from tools import pull_request_example, review_example, rules_page

START = "<!-- op_types: written by tools/build_pages.py -->\n"
END = "<!-- end of op_types -->\n"


def main() -> int:
    """Write or check the pages; the exit status says whether one had drifted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--keep", type=Path, help="where the example is to stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        made = pages(Path(name), options.keep)
    drifted = [
        page
        for page, text in made.items()
        if not (ROOT / page).exists() or (ROOT / page).read_bytes() != text.encode()
    ]
    for page in drifted:
        if options.check:
            print(f"{page} has drifted: run python tools/build_pages.py")
        else:
            write_atomically(ROOT / page, made[page].encode())
            print(f"wrote {page}")
    return int(options.check and bool(drifted))


def pages(folder: Path, example: Path | None = None) -> dict[str, str]:
    """Return path → text of each page; examples are made in a folder.

    Raises Failure where a file of the dataset can't be read.
    """
    audits, found = read_audits(ROOT), discover_definitions(ROOT)
    table = table_of(ROOT, found, kept_runs(ROOT), audits)
    sources = agreed(table.lines)
    models = {name: survey(name, ROOT, found, sources) for name in names()}
    return {
        rules_page.PAGE: rules_page.page(),
        "README.md": readme(),
        PAGE: limits_page(ROOT),
        **{f"docs/generated/{n}": t for n, t in verification_pages(table).items()},
        "docs/generated/checkers.md": "".join(
            printed(checkers_report(known(ROOT), is_page=True), "markdown")
        ),
        "docs/generated/conditions.md": "".join(
            printed(
                certificate(current(ROOT), is_page=True, hopper=of_hopper(ROOT)),
                "markdown",
            )
        ),
        "docs/generated/coverage.md": coverage_page(models),
        "docs/generated/coverage.html": coverage_html(models),
        "docs/generated/dataset-card.md": card_files(ROOT)[CARD].decode(),
        **review_example.pages(example or folder / "review"),
        pull_request_example.PAGE: pull_request_example.page(folder / "push"),
    }


def readme() -> str:
    """Return README.md with its table of op_types as the dataset is now."""
    head, _, rest = (ROOT / "README.md").read_text("utf-8").partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}{''.join(_op_types())}{END}{tail}"


def _op_types() -> Iterator[str]:
    found = discover_definitions(ROOT)
    table = table_of(ROOT, found, runs_in(ROOT))
    packages = op_packages()
    yield f"{len(found.files)} definitions of {len(packages)} op_types:\n\n"
    yield "| op_type | what it computes | definitions | live with |\n"
    yield "|---|---|---|---|\n"
    for op_type, package in packages.items():
        count = sum(file.op_type == op_type for file in found.files)
        what = (inspect.getdoc(import_module(package)) or "").splitlines()[0]
        agreed = ", ".join(_agreed(table, op_type)) or "nothing yet"
        yield f"| {op_type} | {what} | {count} | {agreed} |\n"
    yield "\n"


def _agreed(table: Verification, op_type: str) -> Iterator[str]:
    """Yield the providers whose kernels agreed with an op_type, and layers of SGLang."""
    found: set[str] = set()
    for line in table.lines:
        live = is_ground_truth(line.source) and not line.source.startswith("recorded")
        rewritten = line.figures is not None and line.figures.rewritten
        if line.op_type != op_type or line.verdict != "PASSED" or rewritten or not live:
            continue
        provider = line.source.partition("/")[0]
        found.add("sglang's layers" if is_layer(line.source) else provider)
    yield from sorted(found)


if __name__ == "__main__":
    sys.exit(main())
