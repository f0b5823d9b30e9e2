"""The hostile corpus as changes to review: none makes the verdict better."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from generator.problems import Failure
from generator.review import FORMATS, shown
from generator.review.decision import Decision
from generator.review.review import Review, make_review
from generator.review.revisions import open_sources
from tests.functional import hostile, hostile_places, hostile_verification
from tests.functional.hostile import DEFINITION, FILE, make, write
from tests.functional.reviewed import commit, git

CASES = {**hostile.CASES, **hostile_verification.CASES, **hostile_places.CASES}

CHANGED = {**DEFINITION, "description": "The product."}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository whose base is the good dataset."""
    root = tmp_path_factory.mktemp("repository")
    make(root)
    git(root, "init", "-q", "-b", "main")
    commit(root)
    return root


@pytest.fixture
def tree(root: Path) -> Path:
    """Return it as base has it, with a change that is fine."""
    git(root, "checkout", "-q", "-f", "main")
    git(root, "clean", "-f", "-d", "-x", "-q")
    write(root, FILE, CHANGED)
    return root


def review(root: Path) -> tuple[Review, dict[str, str]]:
    """Return the review of the working tree, and its reports."""
    with open_sources(root, None, None) as sources:
        made = make_review(sources, 1)
        return made, {f: "".join(shown(made, f, notes=True)) for f in FORMATS}


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 200


def test_the_good_change_needs_a_gpu(tree: Path) -> None:
    made, _ = review(tree)
    assert (made.decision, made.compared.new) == (Decision.GPU, ())


QUICK = {**hostile.CASES, **hostile_verification.CASES}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in CASES.keys() - QUICK]


@pytest.mark.parametrize("name", [*QUICK, *sorted(SLOW, key=str)])
def test_no_hostile_change_makes_it_better(name: str, tree: Path) -> None:
    rule, breaks = CASES[name]
    breaks(tree)
    made, reports = review(tree)
    new = made.compared.new
    assert rule in {problem.rule for problem in new}
    assert made.decision is not Decision.APPROVE
    if any(problem.severity.value == "error" for problem in new):
        assert made.decision is Decision.CHANGES
    for form, text in reports.items():
        _is_inert(form, text)


def _is_inert(form: str, text: str) -> None:
    assert all(line.isprintable() for line in text.split("\n"))
    if form in ("json", "sarif"):
        json.loads(text)
    elif form == "junit":
        ET.fromstring(text)
    elif form == "markdown":
        assert len(text) <= 60_000
        own = re.sub(r"<code>[^<]*</code>", "", text)
        assert re.search(r"<(?!/?(details|summary)\b)", own) is None


def test_many_at_once_are_no_better_than_one(tree: Path) -> None:
    for name, (_, breaks) in QUICK.items():
        # what is written to a pipe or through a link would not lie there
        if not re.search("pipe|link|huge|gigabyte", name):
            breaks(tree)
    made, reports = review(tree)
    assert made.decision is Decision.CHANGES
    for form, text in reports.items():
        _is_inert(form, text)


def test_more_bytes_than_are_copied(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.review.tree.MAX_TOTAL", 10)
    with pytest.raises(Failure, match="The review needs 0 MiB, more than"):
        review(tree)
