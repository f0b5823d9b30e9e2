"""Histories and trees that are made to show a review less than a merge brings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.functional.hostile import write
from tests.functional.reviewed import changed, commit, git, review, reviewed

PERSON, USAGE = 3, 2


def refused(root: Path, *arguments: str) -> str:
    """Return the one line of a review that can't be made."""
    done = review(root, *arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    (line,) = done.stderr.splitlines()
    return str(line)


def _crosswise(root: Path) -> None:
    """Let main mend a file, and a branch keep what it was by merging both ways."""
    write(root, "CHANGELOG.md", "bad\n")
    commit(root)
    git(root, "checkout", "-q", "-b", "theirs")
    write(root, "docs/theirs.md", "a page\n")
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, "CHANGELOG.md", "mended\n")
    mended = commit(root)
    git(root, "merge", "-q", "--no-edit", "theirs")
    git(root, "checkout", "-q", "theirs")
    git(root, "merge", "-q", "--no-edit", "--no-commit", mended)
    write(root, "CHANGELOG.md", "bad\n")
    commit(root)


def test_histories_that_were_merged_crosswise(root: Path) -> None:
    _crosswise(root)
    assert "crosswise" in refused(root, "--base", "main", "--head", "theirs")
    assert "crosswise" in refused(root)
    # honest: the branch has merged all of main
    git(root, "merge", "-q", "-s", "ours", "--no-edit", "main")
    found = reviewed(root, "--base", "main", "--head", "theirs", status=0)
    (documents,) = found["classes"]
    assert documents["files"] == ["CHANGELOG.md"]


def test_a_base_that_a_shallow_checkout_hides(root: Path, tmp_path: Path) -> None:
    write(root, "CHANGELOG.md", "bad\n")
    old = commit(root)
    write(root, "CHANGELOG.md", "mended\n")
    commit(root)
    git(root, "checkout", "-q", "-b", "theirs")
    write(root, "CHANGELOG.md", "bad\n")
    for number in range(4):
        write(root, "docs/theirs.md", f"{number}\n")
        commit(root)
    # the older base is near, the right one out of sight
    git(root, "merge", "-q", "-s", "ours", "--no-edit", old)
    tree = git(root, "rev-parse", "HEAD^{tree}")
    made = git(root, "commit-tree", tree, "-p", "HEAD", "-p", old, "-m", "x")
    git(root, "reset", "-q", "--hard", made)
    clone = tmp_path / "clone"
    git(tmp_path, "init", "-q", str(clone))
    near = (f"file://{root}", "+refs/heads/*:refs/heads/*")
    git(clone, "fetch", "-q", "--update-head-ok", "--depth", "3", *near)
    done = review(clone, "--base", "main", "--head", "theirs")
    assert done.returncode == USAGE
    assert "shallow" in done.stderr
    git(clone, "fetch", "-q", "--update-head-ok", "--unshallow", *near)
    found = reviewed(clone, "--base", "main", "--head", "theirs")
    assert "CHANGELOG.md" in str(found["classes"])


def test_a_tag_of_a_branchs_name(root: Path) -> None:
    changed(root, description="x")
    commit(root)
    git(root, "tag", "main", "HEAD~1")
    assert "both a branch and a tag" in refused(root, "--base", "main")
    git(root, "tag", "-f", "main", "HEAD")
    reviewed(root, "--base", "main")


@pytest.mark.parametrize(
    ("name", "is_folder"),
    [
        (b"CHANGELOG.md", False),
        (b"definitions", False),
        (b"definitions", True),
        (b"definitions/gemm/gemm_n8_k4.json", False),
    ],
)
def test_a_tree_that_names_a_path_twice(
    root: Path, name: bytes, is_folder: bool
) -> None:
    write(root, "CHANGELOG.md", "x\n")
    commit(root)
    tree = git(root, "rev-parse", "HEAD^{tree}")
    content = subprocess.run(
        ["git", "-C", str(root), "cat-file", "tree", tree],
        check=True,
        capture_output=True,
    ).stdout
    kind = "definitions" if is_folder else "CHANGELOG.md"
    oid = bytes.fromhex(git(root, "rev-parse", f"HEAD:{kind}"))
    mode = b"40000" if is_folder else b"100644"
    forged = content + mode + b" " + name + b"\0" + oid
    made = subprocess.run(
        [
            *("git", "-C", str(root), "hash-object", "-t", "tree", "-w"),
            *("--literally", "--stdin"),
        ],
        input=forged,
        check=True,
        capture_output=True,
        text=False,
    ).stdout.decode()
    head = git(root, "commit-tree", made.strip(), "-p", "HEAD", "-m", "x")
    line = refused(root, "--base", "HEAD", "--head", head)
    assert "twice, or a name with a slash" in line
