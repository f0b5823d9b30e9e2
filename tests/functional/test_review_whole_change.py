"""A review of odd revisions and of a whole change: one line or a report, never approve."""

from __future__ import annotations

import json
from pathlib import Path

from tests.functional.hostile import write
from tests.functional.reviewed import (
    axes,
    changed,
    commit,
    git,
    make,
    review,
    reviewed,
)
from tests.functional.test_review_bad_input import refused
from tests.functional.test_validate import DEFINITION, FILE

CHANGES, GPU = 1, 3


def test_a_base_that_is_gone_is_one_line(root: Path) -> None:
    assert "no revision 'gone'" in refused(root, "--base", "gone")


def test_a_shallow_clone_is_one_line(root: Path, tmp_path: Path) -> None:
    for text in ("a", "b"):
        changed(root, description=text)
        commit(root)
    clone = tmp_path / "clone"
    git(root, "clone", "-q", "--depth=1", f"file://{root}", str(clone))
    assert "shallow" in refused(clone, "--base", "HEAD~1", "--head", "HEAD")


def test_histories_without_a_common_ancestor_are_compared(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "other")
    changed(root, axes=axes(16))
    commit(root)
    found = reviewed(root, "--base", "main", "--head", "other", status=CHANGES)
    assert "shares no history" in found["base_is"]


def test_renames_in_a_circle_are_changes(root: Path) -> None:
    one, other = root / FILE, root / FILE.replace("n8", "n9")
    was, now = one.read_bytes(), other.read_bytes()
    one.write_bytes(now)
    other.write_bytes(was)
    found = reviewed(root, "--base", "HEAD", status=CHANGES)
    assert {c["kind"] for c in found["changes"]} == {"changed"}


def test_a_head_without_definitions_is_refused(root: Path) -> None:
    git(root, "rm", "-rqf", "definitions")
    tip = commit(root)
    found = reviewed(root, "--base", "HEAD~1", "--head", tip, status=CHANGES)
    gone = {
        f
        for g in found["grounds"]
        if g["point"] == "review-removed"
        for f in g["files"]
    }
    assert gone == {FILE, FILE.replace("n8", "n9")}


def test_ten_thousand_files_are_named(root: Path) -> None:
    for n in range(10_000):
        (root / f"x{n}.bin").write_bytes(b"x")
    tip = commit(root)
    done = review(root, "--base", "HEAD~1", "--head", tip, "--format", "markdown")
    assert (done.returncode, done.stderr) == (GPU, "")
    assert "unknown (10000)" in done.stdout
    assert len(done.stdout) <= 60_000


def test_settings_that_are_no_settings_are_one_line(root: Path) -> None:
    write(root, "review.toml", "[points]\nrequired = ['agred']\n")
    commit(root)
    changed(root, description="x")
    assert "Did you mean 'agreed'?" in refused(root)
    write(root, "review.toml", "[points\n")
    commit(root)
    changed(root, description="y")
    assert "review.toml can't be used" in refused(root)


def test_what_is_accepted_must_be_there(root: Path) -> None:
    changed(root, description="x")
    assert "nothing of this change" in refused(root, "--accept", "removal:x")
    assert "write removal:PATH" in refused(root, "--accept", "everything")


def test_what_changes_above_the_dataset_is_named(tmp_path: Path) -> None:
    root = tmp_path / "inner"
    root.mkdir()
    make(root)
    (root / ".git").rename(tmp_path / ".git")
    commit(tmp_path)
    write(tmp_path, "conftest.py", "import os\n")
    found = reviewed(root, status=GPU)
    assert [c["files"] for c in found["classes"]] == [["../conftest.py"]]
    tip = commit(tmp_path)
    found = reviewed(root, "--base", "HEAD~1", "--head", tip, status=GPU)
    assert found["verdict"] == "needs a person"


def test_a_file_that_may_be_executed_is_named(root: Path) -> None:
    (root / FILE).chmod(0o755)
    found = reviewed(root, "--base", "HEAD")
    assert "review-runs" in [ground["point"] for ground in found["grounds"]]


def test_an_annotation_has_its_line(root: Path) -> None:
    text = json.dumps({**DEFINITION, "tags": ["model:llama-3.1-8b"], "x": 1}, indent=2)
    write(root, FILE, text)
    wanted = text[: text.index('"x"')].count("\n") + 1
    assert f"file={FILE},line={wanted}," in review(root, "--format", "github").stdout
