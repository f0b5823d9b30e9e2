"""`trace-dataset review --format html`: what the page says, without a browser."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from generator.review.page import FIGURES
from kernel_judge.comparison.error_map import BINS, WITHIN
from tests.functional.pages import (
    executed,
    make_hostile_page,
    make_page,
    page_of,
    results_for,
    where,
)
from tests.functional.reviewed import changed, evidence, make, review
from tests.results import comparison, result

VOID = ("meta", "input", "br", "img", "link")


class Page(HTMLParser):
    """Read a page: its elements, and whether each is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element of SVG that is closed at once."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes what was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember a text."""
        self.texts.append(data)

    def ids(self) -> list[str]:
        """Return all ids."""
        return [a["id"] for _, a in self.elements if "id" in a]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an ordinary page."""
    return make_page(tmp_path_factory.mktemp("page")).read_text("utf-8")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a page whose texts are hostile."""
    return make_hostile_page(tmp_path_factory.mktemp("hostile")).read_text("utf-8")


def test_the_policy_allows_the_pages_own_style_and_script_alone(text: str) -> None:
    ((_, meta),) = [e for e in Page(text).elements if "http-equiv" in e[1]]
    hashes = [
        base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        for tag in ("style", "script")
        for inner in re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    ]
    assert meta["content"] == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; "
        f"script-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'"
    )
    assert len(hashes) == 2
    assert text.index("http-equiv") < text.index("<style>")


def test_links_lead_to_what_is_there_and_nothing_is_loaded(text: str) -> None:
    page = Page(text)
    ids = page.ids()
    assert len(ids) == len(set(ids))
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert len(links) > 8
    assert {link[1:] for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)
    named = {"src", "srcset", "style", "action", "data", "poster", "xlink:href"}
    for tag, attributes in page.elements:
        assert not named & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")


def test_the_page_says_what_the_review_says(text: str) -> None:
    for said in (
        "Changes needed",
        "EPS = 1e-5",
        "honest tags",
        "name-token",
        "mismatched elements: 8 / 64",
        "Worst: not finite in rows 0 to 3, columns 30 to 31.",
        "skipped",
        "claimed",
    ):
        assert said in text
    assert text.count('<svg class="map"') == text.count('<svg class="bars"') == 3
    assert text.count('<rect class="beyond"') == 3 * (BINS - WITHIN)


def test_evidence_of_the_change_itself_is_only_claimed(tmp_path: Path) -> None:
    make(tmp_path)
    changed(tmp_path, description="x")
    evidence(tmp_path)
    text = page_of(tmp_path)
    assert '<span class="badge warn">claimed</span>' in text
    assert "the change itself says so" in text
    assert '<span class="badge good">passed</span>' not in text


def test_a_pass_of_a_run_that_is_not_believed_is_no_pass(tmp_path: Path) -> None:
    make(tmp_path)
    changed(tmp_path, description="x")
    tests = [*results_for("gemm_n8_k4"), result("oracle", comparison())]
    good = page_of(tmp_path, executed(tmp_path, *tests))
    assert '<span class="badge good">passed</span>' in good
    text = page_of(tmp_path, executed(tmp_path, *tests, problems=("forged",)))
    assert '<span class="badge good">passed</span>' not in text
    assert '<span class="badge warn">not believed</span>' in text
    assert '<span class="badge bad">failed</span>' in text


def test_drawings_are_bounded_and_failures_come_first(tmp_path: Path) -> None:
    make(tmp_path)
    changed(tmp_path, description="x")
    passed = [comparison(case=f"p{n}", where=where(1.0)) for n in range(FIGURES + 9)]
    bad = comparison(case="bad", where=where(), verdict="FAILED")
    text = page_of(tmp_path, executed(tmp_path, result("oracle", *passed, bad)))
    assert text.count('<svg class="map"') == FIGURES
    assert text.index("bad: C") < text.index("p0: C")
    assert f"p{FIGURES + 8}: C" in text


def test_hostile_texts_are_texts(hostile: str, text: str) -> None:
    page = Page(hostile)
    # no element and no attribute that an ordinary page has not
    known = {
        (tag, name) for tag, attributes in Page(text).elements for name in attributes
    }
    found = {(tag, name) for tag, attributes in page.elements for name in attributes}
    assert found <= known | {("input", "id")}
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile
    assert "\u2028" not in hostile
    assert sum("document.title='OWNED'" in data for data in page.texts) > 10
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert all(re.fullmatch(r"#[a-z]*\d*", link) for link in links)
    assert all(re.fullmatch(r"[a-z-]+\d*", name) for name in page.ids())


def test_nothing_changed(tmp_path: Path) -> None:
    make(tmp_path)
    done = review(tmp_path, "--base", "HEAD", "--head", "HEAD", "--format", "html")
    assert (done.returncode, done.stderr) == (0, "")
    page = Page(done.stdout)
    assert "Nothing changed." in page.texts
    assert "Approve" in page.texts
