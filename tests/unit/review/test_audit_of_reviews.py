"""A review can't be talked round: bad pull requests are refused, good ones approved."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from generator.problems import Failure
from generator.review import FORMATS, shown
from generator.review.audit.every import bad_pull_requests, good_pull_requests
from generator.review.audit.pull_request import PullRequest
from generator.review.audit.run import audit_report, review_of, tried
from generator.review.audit.subject import AuditedDataset, make_subject
from generator.review.decision import Decision

ROOT = Path(__file__).resolve().parents[3]
BAD, GOOD = bad_pull_requests(), good_pull_requests()


@pytest.fixture(scope="module")
def made() -> AuditedDataset:
    return make_subject(ROOT)


def test_there_are_enough_of_names_of_their_own() -> None:
    names = [one.name for one in (*BAD, *GOOD)]
    assert len(set(names)) == len(names)
    assert len(BAD) >= 80
    assert len(GOOD) >= 30
    assert all(one.refused_by for one in BAD)
    assert not any(one.refused_by for one in GOOD)


@pytest.mark.parametrize("one", BAD, ids=lambda one: one.name)
def test_a_bad_one_is_refused_by_its_point(
    one: PullRequest, made: AuditedDataset
) -> None:
    found = tried(one, made)
    assert found.wrong == ""
    assert found.decision is not Decision.APPROVE


@pytest.mark.parametrize("one", GOOD, ids=lambda one: one.name)
def test_a_good_one_is_approved(one: PullRequest, made: AuditedDataset) -> None:
    assert tried(one, made).wrong == ""


SHOWN = [one for one in BAD if one.name.startswith(("code: ", "unknown: ", "link: "))]


@pytest.mark.parametrize(
    "one", [*SHOWN[::6], *BAD[::29], *GOOD[::13]], ids=lambda one: one.name
)
def test_each_format_has_the_verdict_and_the_files(
    one: PullRequest, made: AuditedDataset
) -> None:
    review = review_of(one, made)
    files = {file for reason in review.grounds for file in reason.files}
    for form in FORMATS:
        text = _plain("".join(shown(review, form)), form)
        assert review.decision.value.lower() in text.lower(), form
        for file in list(files)[:5]:
            # letters of other scripts are shown, what no reader sees is escaped
            names = (_plain(ascii(file)[1:-1], ""), json.dumps(file)[1:-1], file)
            assert any(name in text for name in names), (form, file)


def _plain(text: str, form: str) -> str:
    """Return text without the escapes of a format."""
    text = re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text)
    text = text.replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",")
    if form == "sarif":
        text = re.sub(r"%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), text)
    return re.sub(r"\\+", r"\\", text).replace("\\[", "[").replace("\\]", "]")


def test_the_report_says_what_was_talked_round(made: AuditedDataset) -> None:
    good = tried(GOOD[0], made)
    approved = tried(PullRequest("an honest one", GOOD[0].change, "review-runs"), made)
    assert approved.wrong == "approved"
    report = audit_report([good, approved], made)
    assert report.conclude().summary == (
        "0 of 1 bad pull request refused by the right point, 1 of 1 good ones approved"
    )


def test_a_dataset_without_three_definitions_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="three definitions"):
        make_subject(tmp_path)
