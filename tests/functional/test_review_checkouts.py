"""Histories and checkouts of other shapes: each shows a review the same bad change."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.reviewed import (
    REFERENCE,
    changed,
    commit,
    git,
    make,
    render,
    review,
    reviewed,
    run_of,
    write_runs,
)
from tests.functional.test_validate import FILE

BAD = REFERENCE.replace("return ", "return 2 * ")
BOTH = ("--base", "main", "--head", "pr")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository of which a change of words is approved."""
    root = tmp_path / "data"
    root.mkdir()
    make(root)
    write_runs(root, "gpu", run_of(root, "gemm_n8_k4", "gemm_n9_k4"))
    render(root)
    commit(root)
    return root


def _bad(root: Path) -> None:
    changed(root, reference=BAD)
    render(root)
    commit(root)


def _page(root: Path, name: str) -> None:
    (root / "docs").mkdir(exist_ok=True)
    (root / f"docs/{name}.md").write_text("A page.\n")
    commit(root)


def _branch(root: Path, name: str) -> None:
    git(root, "checkout", "-q", "-b", name, "main")


def _alone(root: Path) -> Path:
    _branch(root, "pr")
    _bad(root)
    return root


def _octopus(root: Path) -> Path:
    for name in ("one", "two", "three"):
        _branch(root, name)
        if name == "two":
            _bad(root)
        else:
            _page(root, name)
    _branch(root, "pr")
    git(root, "merge", "-q", "-m", "merge", "one", "two", "three")
    return root


def _merged(root: Path) -> Path:
    _branch(root, "other")
    _bad(root)
    _branch(root, "pr")
    _page(root, "one")
    git(root, "merge", "-q", "-m", "merge", "other")
    return root


def _by_the_merge_alone(root: Path) -> Path:
    """Bring the change by the commit of the merge, which neither parent has."""
    _branch(root, "other")
    _page(root, "other")
    _branch(root, "pr")
    _page(root, "one")
    git(root, "merge", "-q", "--no-commit", "other")
    _bad(root)
    return root


def _grafted(root: Path) -> Path:
    _alone(root)
    info = root / ".git/info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(git(root, "rev-parse", "HEAD") + "\n")
    return root


def _replaced(root: Path) -> Path:
    _alone(root)
    git(root, "replace", git(root, "rev-parse", "pr"), git(root, "rev-parse", "main"))
    return root


def _elsewhere(root: Path) -> Path:
    """Keep the repository in another folder than its files."""
    _alone(root)
    _apart(root)
    return root


def _apart(root: Path) -> None:
    away = root.parent / "repository"
    shutil.move(root / ".git", away)
    (root / ".git").write_text(f"gitdir: {away}\n")


def _worktree(root: Path) -> Path:
    _alone(root)
    git(root, "checkout", "-q", "main")
    git(root, "worktree", "add", "-q", str(root.parent / "beside"), "pr")
    return root.parent / "beside"


def _sparse(root: Path) -> Path:
    _alone(root)
    git(root, "sparse-checkout", "set", "docs")
    return root


@pytest.mark.parametrize(
    "shape",
    [
        *(_alone, _octopus, _merged, _by_the_merge_alone, _grafted, _replaced),
        *(_elsewhere, _worktree, _sparse),
    ],
    ids=lambda shape: shape.__name__[1:],
)
def test_a_bad_change_is_seen_in_every_shape(
    root: Path, shape: Callable[[Path], Path]
) -> None:
    found = reviewed(shape(root), *BOTH, status=3)
    points = {g["point"] for g in found["grounds"]}
    assert (found["verdict"], points) == ("needs a GPU", {"agreed"})
    (change,) = found["changes"]
    assert change["path"] == FILE


def test_the_files_of_a_repository_that_lies_elsewhere(root: Path) -> None:
    """The working tree is where the files are, not where the repository is."""
    _branch(root, "pr")
    _apart(root)
    assert reviewed(root, "--base", "main", status=0)["classes"] == []
    changed(root, reference=BAD)
    found = reviewed(root, "--base", "main", status=1)
    assert [c["path"] for c in found["changes"]] == [FILE]


def _one_line(root: Path, *arguments: str) -> str:
    done = review(root, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return str(line)


def test_a_clone_without_contents_is_one_line(root: Path, tmp_path: Path) -> None:
    """Nothing is fetched for a review: what is missing is named."""
    _alone(root)
    git(root, "config", "uploadpack.allowFilter", "true")
    words = ("clone", "-q", "--no-checkout", "--filter=blob:none")
    git(tmp_path, *words, f"file://{root}", str(tmp_path / "partial"))
    sides = ("--base", "origin/main", "--head", "origin/pr")
    assert "is missing or damaged" in _one_line(tmp_path / "partial", *sides)


def test_a_commit_with_a_garbled_header_is_one_line(root: Path) -> None:
    tree, main = (git(root, "rev-parse", name) for name in ("main^{tree}", "main"))
    text = f"tree {tree}\nparent {main}\nauthor \xff <x> 9999999999999999999 +9999\n"
    text += "committer <> -1\nencoding none\n\n\0"
    words = ("hash-object", "-w", "-t", "commit", "--stdin", "--literally")
    made = subprocess.run(
        ["git", "-C", str(root), *words],
        input=text.encode("latin-1"),
        capture_output=True,
        check=True,
    )
    oid = made.stdout.decode().strip()
    assert "There is no revision" in _one_line(root, "--base", "main", "--head", oid)


def test_a_submodule_is_seen_whether_or_not_its_folder_is_there(root: Path) -> None:
    _branch(root, "pr")
    link = f"160000,{'a' * 40},blob/workloads/x"
    git(root, "update-index", "--add", "--cacheinfo", link)
    git(root, "commit", "-q", "-m", "change")
    for is_there in (False, True):
        if is_there:
            (root / "blob/workloads/x").mkdir(parents=True)
        found = reviewed(root, "--base", "main", status=1)
        assert [g["point"] for g in found["grounds"]] == ["review-link"]


def test_a_sparse_checkout_hides_nothing(root: Path) -> None:
    _branch(root, "pr")
    (root / "deep").mkdir()
    (root / "deep/conftest.py").write_text("collect_ignore_glob = ['*']\n")
    commit(root)
    git(root, "sparse-checkout", "set", *("definitions", "tests", "workloads"))
    assert not (root / "deep").exists()
    done = review(root, "--base", "main")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "The checkout is sparse" in done.stderr
    assert "--head HEAD" in done.stderr
    reviewed(root, *BOTH, status=3)
