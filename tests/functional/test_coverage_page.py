"""The page of coverage in a real browser: what the search leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.models.coverage import Covered, State
from generator.models.need import Need
from generator.models.page import coverage_html


def entry(module: str, name: str) -> Covered:
    return Covered(Need(module, "gemm", name), State.ORACLE, "oracle")


MODELS = {
    "one-8b": [entry("norm", "rmsnorm_h8"), entry("lm_head", "gemm_n8")],
    "two-8b": [entry("norm", "rmsnorm_h9"), entry("experts", "moe_e4")],
}
EVERY = ("norm", "lm_head", "experts"), ("one-8b", "two-8b")


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    """Return the page of the models; what it says to the console fails the test."""
    file = tmp_path / "coverage.html"
    file.write_text(coverage_html(MODELS), "utf-8")
    said: list[str] = []
    made = browser.new_page()
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    made.goto(file.as_uri())
    yield made
    made.close()
    assert said == []


def shown(page: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the modules and the models that are seen."""
    rows = page.locator("tbody tr:visible th").all_inner_texts()
    models = page.locator("thead th:visible span").all_inner_texts()
    return tuple(rows), tuple(models)


def test_words_choose_models_and_modules(page: Any) -> None:
    assert shown(page) == EVERY
    for words, modules, models in (
        ("Two", ("norm", "experts"), ("two-8b",)),
        ("8b head", ("lm_head",), ("one-8b", "two-8b")),
        ("one h9", (), ("one-8b",)),
        ("rmsnorm_h9", ("norm",), ("one-8b", "two-8b")),
        ("none", (), ("one-8b", "two-8b")),
        ("", *EVERY),
    ):
        page.fill("#search", words)
        assert shown(page) == (modules, models), words
