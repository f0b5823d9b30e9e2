"""The page of coverage in a real browser: what the search leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.models.coverage import ModuleCoverage, State
from generator.models.need import Need
from generator.models.page import coverage_html
from generator.models.survey import ModelSurvey


def entry(module: str, name: str, state: State = State.ORACLE) -> ModuleCoverage:
    return ModuleCoverage(Need(module, "gemm", name), state, "")


MODELS = {
    "one-8b": ModelSurvey(
        {"tp 1": [entry("norm", "rmsnorm_h8"), entry("lm_head", "gemm_n8")]},
        {"tp 8": "one-8b: 6 heads."},
    ),
    "two-8b": ModelSurvey(
        {"tp 1": [entry("norm", "rmsnorm_h9"), entry("experts", "e4", State.MISSING)]}
    ),
}


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def page(request: pytest.FixtureRequest, browser: Any, tmp_path: Path) -> Any:
    """Return the page of the models; what it says to the console fails the test."""
    file = tmp_path / "coverage.html"
    file.write_text(coverage_html(MODELS), "utf-8")
    said: list[str] = []
    made = browser.new_page(viewport={"width": request.param, "height": 800})
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    made.goto(file.as_uri())
    yield made
    # nothing reaches beyond the window
    assert made.evaluate("document.documentElement.scrollWidth") <= request.param
    made.close()
    assert said == []


def shown(page: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the definitions and the models that are seen."""
    rows = page.locator("tbody code:visible").all_inner_texts()
    models = page.locator("summary strong:visible").all_inner_texts()
    return tuple(rows), tuple(models)


def test_words_choose_models_and_definitions(page: Any) -> None:
    every = "one-8b", "two-8b"
    assert shown(page) == ((), every)
    for words, definitions, models in (
        ("Two", ("rmsnorm_h9", "e4"), ("two-8b",)),
        ("8b head", ("gemm_n8",), ("one-8b",)),
        ("one h9", (), ()),
        ("norm", ("rmsnorm_h8", "rmsnorm_h9"), every),
        ("no definition", ("e4",), ("two-8b",)),
        ("none-such", (), ()),
        ("", (), every),
    ):
        page.fill("#search", words)
        assert shown(page) == (definitions, models), words


def test_a_model_opens_on_its_table(page: Any) -> None:
    summary = page.locator("summary", has_text="one-8b")
    assert "tp 1: 2 of 2" in summary.inner_text()
    assert "tp 8: refused" in summary.inner_text()
    summary.click()
    page.locator("text=one-8b: 6 heads.").wait_for()
    assert shown(page)[0] == ("rmsnorm_h8", "gemm_n8")
    assert page.locator("thead th:visible").all_inner_texts() == [
        "module and definition",
        "tp 1",
    ]
