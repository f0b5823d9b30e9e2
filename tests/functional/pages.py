"""HTML pages of reviews, with what an executed run said: ordinary, and hostile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from generator.results.run_results import read_results
from generator.review.executed import Executed, comparisons_of
from generator.review.page import page
from generator.review.review import Review, make_review, with_results
from generator.review.revisions import open_sources
from kernel_judge.comparison.error_map import BINS, NOT_FINITE
from tests.functional.hostile import write
from tests.functional.reviewed import REFERENCE, axes, changed, evidence, make
from tests.functional.test_validate import DEFINITION
from tests.results import comparison, lines, result

HOSTILE = (
    "</script></style><script>document.title='OWNED'</script>"
    "<img src=https://x.example/p.png onerror=\"document.title='OWNED'\">"
    "<a href=\"javascript:document.title='OWNED'\" id=rows>x</a> {{7*7}} {% raw %} "
    "[x](javascript:alert(1)) `` &lt;b&gt; \x1b[31m\u202e\u2028 ' onload='x"
)


def where(worst: float | None = 45.0) -> dict[str, Any]:
    """Return a map of 64 x 32 elements whose last columns are wrong."""
    row = [0.3] * 14 + [worst, None if worst is None else NOT_FINITE]
    histogram = [1000, *[10] * 8, *[3] * (BINS - 9)]
    return {"rows": 64, "columns": 32, "histogram": histogram, "grid": [row] * 16}


def executed(folder: Path, *tests: Any, **fields: Any) -> Executed:
    """Return a run on the CPU whose results are these tests."""
    path = folder / "results.jsonl"
    path.write_text(lines(*tests))
    found = comparisons_of(read_results(path).tests, {"gemm_n8_k4", "gemm_n9_k4"})
    run = Executed("cpu", 2, ("TestGemm::test_matches_oracle[batch]",), 1, ())
    return replace(run, comparisons=found, **fields)


def results_for(name: str) -> list[dict[str, Any]]:
    """Return tests of a definition: one that failed, one that passed, one skipped."""
    figures = {"definition": name, "hit_ratio": 0.875}
    finding = "mismatched elements: 8 / 64"
    bad = {**figures, "verdict": "FAILED", "findings": [finding], "nmse": 0.25}
    good = comparison(case="one-row", definition=name, where=where(None))
    return [
        result(
            "oracle",
            good,
            comparison(case="batch", where=where(), **bad),
            definition=name,
            ending=("failed", "no"),
        ),
        result("recorded", good | {"source": "recorded"}, definition=name),
        result("flashinfer/fa2", definition=name, ending=("skipped", "no GPU")),
    ]


def make_page(folder: Path) -> Path:
    """Write the page of a review with two definitions, of which one fails."""
    root = folder / "dataset"
    root.mkdir()
    make(root)
    changed(root, reference=f"EPS = 1e-5\n{REFERENCE}", axes=axes(16))
    evidence(root)
    other = {**DEFINITION, "name": "gemm_n9_k4", "axes": axes(9), "tags": ["model:x"]}
    write(root, "definitions/gemm/gemm_n9_k4.json", other)
    name = "gemm_n9_k4"
    passing = result("oracle", comparison(definition=name), definition=name)
    run = executed(folder, *results_for("gemm_n8_k4"), passing)
    return _write(folder / "review.html", root, run)


def make_hostile_page(folder: Path) -> Path:
    """Write the page of a review in which every text is hostile."""
    root = folder / "dataset"
    root.mkdir()
    make(root)
    changed(
        root,
        tags=[HOSTILE],
        description=HOSTILE,
        constraints=[HOSTILE],
        axes={**DEFINITION["axes"], HOSTILE: {"type": "var", "description": HOSTILE}},
        inputs={**DEFINITION["inputs"], HOSTILE: {"shape": None, "dtype": HOSTILE}},
        reference=f"X = {HOSTILE!r}\n# {HOSTILE}\n{REFERENCE}",
    )
    name = HOSTILE.replace("/", "")[:100]
    write(root, f"definitions/gemm/{name}.json", {**DEFINITION, "name": name})
    write(root, f"{name}.txt", "other")
    record = comparison(HOSTILE, HOSTILE, verdict="FAILED", where=where())
    record |= {"output": HOSTILE, "findings": [HOSTILE, {HOSTILE: 1}]}
    run = executed(
        folder,
        result(None, record),
        result("<b>x</b>", ending=("failed", HOSTILE), function="test_x"),
        failed=(HOSTILE,),
        problems=(HOSTILE,),
        layers=(HOSTILE,),
    )
    return _write(folder / "hostile.html", root, run)


def _write(path: Path, root: Path, run: Executed) -> Path:
    path.write_text(page_of(root, run), "utf-8")
    return path


def page_of(root: Path, run: Executed | None = None) -> str:
    """Return the page of a review of the working tree, with what a run showed."""
    return page(review_of(root, run))


def review_of(root: Path, run: Executed | None = None) -> Review:
    """Return the review of the working tree, with what a run showed."""
    with open_sources(root, "HEAD", None) as sources:
        made = make_review(sources, 1)
    return made if run is None else with_results(made, run)
