"""The pages of coverage: each definition of each model at each parallelism."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from generator.dataset.paths import Discovered
from generator.models.coverage import ModuleCoverage, State
from generator.models.need import Need
from generator.models.page import coverage_html, coverage_page
from generator.models.survey import ModelSurvey, survey

NOTHING = Discovered((), (), ())


def entry(module: str, state: State, name: str = "d", note: str = "") -> ModuleCoverage:
    return ModuleCoverage(Need(module, "gemm", name), state, note)


MODELS = {
    "one": ModelSurvey(
        {
            "tp 1": [
                entry("norm", State.KERNEL, "rmsnorm_h8", "flashinfer"),
                entry("lm_head", State.MISSING, "gemm_n8_k4"),
            ],
            "tp 8": [
                entry("norm", State.KERNEL, "rmsnorm_h8", "flashinfer"),
                entry("all-reduce", State.NO_FAMILY, "reduce_h8"),
                entry("lm_head", State.ORACLE, "gemm_n1_k4"),
            ],
        },
        {"tp 4": "one: 6 heads, which --tp 4 does not divide."},
    ),
    "two": ModelSurvey(
        {"tp 1": [entry("norm", State.LAYER, "rmsnorm_h9")]}, unplaced=["a tower"]
    ),
    "three": ModelSurvey(
        refused={"tp 1": "three: unknown.", "tp 8": "three: unknown."}
    ),
}


def data(html: str) -> Any:
    """Return what the page's script reads."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html)
    assert match
    return json.loads(match[1])


def rows(html: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return model → module, definition and marks of each row."""
    read = data(html)
    texts = read["texts"]
    return {
        model["name"]: [(texts[m], texts[d], marks) for m, d, marks, _ in model["rows"]]
        for model in read["models"]
    }


def test_a_definition_has_a_mark_in_each_column_that_needs_it():
    html = coverage_html(MODELS)
    assert rows(html) == {
        "one": [
            ("norm", "rmsnorm_h8", "k  k "),
            ("all-reduce", "reduce_h8", "   m "),
            ("lm_head", "gemm_n8_k4", "m    "),
            ("lm_head", "gemm_n1_k4", "   o "),
        ],
        "two": [("norm", "rmsnorm_h9", "l    ")],
        "three": [],
    }
    assert [model["there"] for model in data(html)["models"]] == [
        {"tp 1": [1, 2], "tp 8": [2, 3]},
        {"tp 1": [1, 1]},
        {},
    ]
    assert "a kernel agreed: 2" in html
    assert "no definition: 2" in html
    assert "agrees with a kernel: flashinfer" in data(html)["texts"]


def test_what_configs_and_files_say_is_no_markup():
    surveyed = ModelSurvey({"tp 1": [entry('"</script>', State.MISSING, "<d>", "<n>")]})
    html = coverage_html({"<m>": surveyed})
    assert not re.search(r"<[mdn]>", html)
    assert rows(html) == {"<m>": [('"</script>', "<d>", "m    ")]}


def test_the_table_counts_and_says_what_is_refused_and_wanted():
    page = coverage_page(MODELS)
    assert "| one | 1 of 2 |  | refused | 2 of 3 |  |" in page
    assert "| two | **all 1** |" in page
    # a reason that holds in all columns stands once, without them
    refused = page.partition("## What is refused")[2].partition("##")[0].split("\n")
    assert [line for line in refused if line] == [
        "- one: 6 heads, which --tp 4 does not divide. (tp 4)",
        "- three: unknown.",
    ]
    assert "| gemm | `reduce` | one |" in page


def test_a_model_that_cannot_be_divided_is_refused_in_that_column():
    surveyed = survey("qwen2.5-7b", Path("."), NOTHING, {})
    assert [*surveyed.covered] == ["tp 1", "tp 2", "tp 4"]
    assert "28" in surveyed.refused["tp 8"]
    # no experts: the same answer with ep
    assert "tp 8, ep 8" not in surveyed.refused


def test_experts_have_a_column_of_their_own():
    surveyed = survey("qwen3-30b-a3b", Path("."), NOTHING, {})
    assert "tp 8, ep 8" in surveyed.covered
    assert not surveyed.refused
    assert surveyed.missing("tp 1") == surveyed.covered["tp 1"]


def test_what_is_complete_says_what_agreed():
    page = coverage_page(MODELS)
    _, _, behind = page.partition("## What is complete")
    complete, _, _ = behind.partition("## ")
    lines = [line for line in complete.splitlines() if line.startswith("| ")]
    # of model one the lm_head and the all-reduce are missing
    assert lines[2:] == ["| two | tp 1 | 0 | 1 | 0 | 0 | a tower |"]
