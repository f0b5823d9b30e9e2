"""The reference tests that a push sends: they run in a clone of the dataset by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.rendering.files import SUMS
from tests.harness.runs import NO_GENERATOR, NO_SGLANG, run_pytest
from tests.hub import pushable
from tests.hub.published import digest as _digest
from tests.hub.pushable import (
    NAME,
    ONE,
    RECORDING,
    TESTS,
    Push,
    files_of,
    make,
    put,
    render,
)
from tests.hub.store import Repository

repository, push = pushable.repository, pushable.push
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
YES = (*ONE, "--yes")
SUPPORT = f"{TESTS}/reference_support/__init__.py"
FILE = f"{TESTS}/test_gemm.py"
EDIT = "\n# by hand\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make(tmp_path / "dataset")
    # what stands in for a recording can't be replayed
    (tmp_path / "dataset" / RECORDING).unlink()
    return tmp_path / "dataset"


def clone(repository: Repository, folder: Path) -> Path:
    """Write what the pull request has into an empty folder."""
    for path, content in repository.contents("refs/pr/1").items():
        put(folder, path, content)
    return folder


@pytest.mark.parametrize("standalone", [False, True])
def test_what_was_pushed_runs_without_this_package(
    push: Push, repository: Repository, root: Path, tmp_path: Path, standalone: bool
) -> None:
    render(root, standalone=standalone)
    assert (root / SUPPORT).exists() == standalone
    push(*YES)
    held = repository.contents("refs/pr/1")
    assert held == files_of(root, NAME)
    assert b"generator." not in held[FILE]
    folder = clone(repository, tmp_path / "clone") / TESTS
    put(folder.parent, "absent.py", NO_GENERATOR + NO_SGLANG)
    run = run_pytest(folder, "--device", "cpu", "--strict")
    assert run.status == 0, run.stdout + run.stderr
    assert run.functions("TestGemmN8K4", "passed") >= {"test_matches_oracle"}


def test_the_checkout_keeps_its_form(push: Push, root: Path) -> None:
    push(*YES)
    assert not (root / SUPPORT).exists()


def test_gen_tests_keeps_the_form_of_a_clone(
    push: Push, repository: Repository, tmp_path: Path
) -> None:
    push(*YES)
    folder = clone(repository, tmp_path / "clone")
    render(folder)
    assert {p: (folder / p).read_bytes() for p in repository.contents("refs/pr/1")} == (
        repository.contents("refs/pr/1")
    )


@pytest.mark.parametrize("standalone", [False, True])
def test_an_edit_that_is_let_pass_is_pushed_and_stays_one(
    push: Push, repository: Repository, root: Path, standalone: bool
) -> None:
    render(root, standalone=standalone)
    put(root, FILE, (root / FILE).read_text("utf-8") + EDIT)
    assert "[rendering-stale]" in push(*YES, status=1)[2]
    assert repository.discussions() == []
    push(*YES, "--allow", "rendering-stale=a case that no template has")
    held = repository.contents("refs/pr/1")
    assert held[FILE] == files_of(root, NAME)[FILE] + EDIT.encode()
    assert _sum_of(held, "conftest.py") == _digest(held[f"{TESTS}/conftest.py"])
    assert _sum_of(held, "test_gemm.py") != _digest(held[FILE])


def _sum_of(held: dict[str, bytes], name: str) -> str | None:
    """Return the hash that SHA256SUMS has of a file."""
    lines = held[f"{TESTS}/{SUMS}"].decode().splitlines()
    return {line[66:]: line[:64] for line in lines}.get(name)


@pytest.mark.parametrize("text", ["def broken(:\n", "from generator.gone import x\n"])
def test_tests_without_a_standalone_form_are_not_pushed(
    push: Push, repository: Repository, root: Path, text: str
) -> None:
    put(root, f"{TESTS}/test_gemm.py", text)
    reason = "rendering-stale=nobody reads it"
    assert "gen-tests --all" in push(*YES, "--allow", reason, status=2)[2]
    assert repository.discussions() == []


def test_a_test_that_is_a_link_is_not_followed(
    push: Push, repository: Repository, root: Path, tmp_path: Path
) -> None:
    put(tmp_path, "secret.py", "mine = 1\n")
    (root / TESTS / "conftest.py").unlink()
    (root / TESTS / "conftest.py").symlink_to(tmp_path / "secret.py")
    reason = "rendering-stale=nobody reads it"
    assert "is a symbolic link" in push(*YES, "--allow", reason, status=2)[2]
    assert repository.discussions() == []
