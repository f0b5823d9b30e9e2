"""`trace-dataset comment`: one comment of one's own, posted once and kept up to date."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from generator.hub.comment import MARKER, body
from generator.reports.markdown import LIMIT
from tests.forking import run_module
from tests.hub.faults import Does, Fault, refuse
from tests.hub.fixtures import REPO
from tests.hub.server import Account, Hub
from tests.hub.store import comment_data

WROTE = ("comment", "edit")


@pytest.fixture
def report(tmp_path: Path, hub: Hub) -> Path:
    """Return a report; the repository has pull request 1, and discussion 2."""
    held = hub.repositories[REPO]
    held.open_discussion("A change", "What it is", "author", pull_request=True)
    held.open_discussion("A question", "Why?", "author", pull_request=False)
    path = tmp_path / "review.md"
    path.write_text("# Changes needed\n")
    return path


def run(
    hub: Hub, report: Path, *arguments: str, token: str | None = "hf_maintainer"
) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith(("HF_", "HUGGING"))]:
            patch.delenv(name)
        done = run_module(
            *("generator.cli.trace_dataset", "comment", "--repo", REPO),
            *(*arguments, report),
            env=hub.environment(token),
        )
    assert "hf_" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def comments(hub: Hub) -> list[tuple[str, str]]:
    """Return author and text of what was said after the opening text."""
    held: Any = hub.repositories[REPO].discussion(1)
    events = [event for event in held["events"][1:] if event["type"] == "comment"]
    return [(e["author"]["name"], e["data"]["latest"]["raw"]) for e in events]


@pytest.mark.parametrize("token", ["hf_maintainer", None])
def test_a_dry_run_sends_nothing(hub: Hub, report: Path, token: str | None) -> None:
    done = run(hub, report, "--pr", "1", token=token)
    place = f"{hub.url}/datasets/{REPO}/discussions/1"
    assert (done.returncode, done.stdout) == (0, f"comment would be posted: {place}\n")
    assert done.stderr.endswith("Dry run: nothing was sent. Add --yes to send it.\n")
    assert hub.asked(*WROTE) == []


def test_it_is_posted_once_and_updated(hub: Hub, report: Path) -> None:
    said = []
    for text in ("# Changes needed\n", "# Changes needed\n", "# Approve\n"):
        report.write_text(text)
        done = run(hub, report, "--pr", "1", "--yes")
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout.partition(":")[0])
    assert said == ["comment posted", "comment is up to date", "comment updated"]
    assert comments(hub) == [("maintainer", f"{MARKER}\n# Approve\n")]


def test_what_others_wrote_is_left_alone(hub: Hub, report: Path) -> None:
    """Not even with the marker; nor an own comment that only mentions it."""
    held = hub.repositories[REPO]
    said = [("stranger", f"{MARKER}\nApproved!"), ("maintainer", f"See {MARKER}")]
    for name, text in said:
        held.add_event(1, "comment", name, comment_data(text))
    assert run(hub, report, "--pr", "1", "--yes").returncode == 0
    assert comments(hub) == [*said, ("maintainer", f"{MARKER}\n# Changes needed\n")]
    assert hub.asked("edit") == []


def test_a_lost_answer_does_not_post_twice(hub: Hub, report: Path) -> None:
    hub.faults.use(Fault("comment", Does.DROP_ANSWER))
    done = run(hub, report, "--pr", "1", "--yes")
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "comment posted")
    assert len(comments(hub)) == 1


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (["--pr", "2", "--yes"], "hf_maintainer", "#2 of lab/kernels is a discussion"),
        (["--pr", "9", "--yes"], "hf_maintainer", "404"),
        (["--pr", "1", "--yes"], None, "There is no token"),
        (["--pr", "1", "--yes"], "hf_wrong", "the token (401)"),
        (["--pr", "0"], "hf_maintainer", "--pr"),
        (["--pr", "1", "--yes", "--dry-run"], "hf_maintainer", "--dry-run"),
        (["--pr", "1", "--repo", "../x"], "hf_maintainer", "OWNER/NAME"),
    ],
)
def test_what_cannot_be_done_is_said(
    hub: Hub, report: Path, arguments: list[str], token: str | None, said: str
) -> None:
    done = run(hub, report, *arguments, token=token)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert hub.asked(*WROTE) == []


def test_a_refusal_to_comment_is_one_line(hub: Hub, report: Path) -> None:
    hub.accounts["hf_reader"] = Account("reader", "read")
    hub.faults.use(refuse("comment", 403, "no"))
    done = run(hub, report, "--pr", "1", "--yes", token="hf_reader")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "403" in done.stderr


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe", b"x" * (5 << 20)])
def test_what_is_no_report_is_refused(hub: Hub, report: Path, content: bytes) -> None:
    report.write_bytes(content)
    done = run(hub, report, "--pr", "1", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert hub.seen == []


def test_a_long_report_is_cut_and_its_folds_are_closed() -> None:
    fold = "<details>\n" + "<details>\nx\n</details>\n" * 2
    text = body(fold + "a line\n" * LIMIT)
    assert len(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>") == 3
    assert "a line\n" in text
    assert text.endswith("(cut: the whole report is longer than a comment can be)\n")
    assert body(text.removeprefix(MARKER)) == text
