"""The reference tests that a push sends: they run in a clone of the dataset by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from generator.rendering.files import SUMS
from tests.harness.runs import NO_GENERATOR, NO_SGLANG, run_pytest
from tests.hub.commands import call, point_to
from tests.hub.fixtures import REPO
from tests.hub.published import digest as _digest
from tests.hub.pushable import NAME, RECORDING, TESTS, files_of, make, put, render
from tests.hub.server import Hub
from tests.hub.store import Repository

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
ONE = ("--definition-name", NAME, "--yes")
SUPPORT = f"{TESTS}/reference_support/__init__.py"
FILE = f"{TESTS}/test_gemm.py"
EDIT = "\n# by hand\n"
Push = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make(tmp_path / "dataset")
    # what stands in for a recording can't be replayed
    (tmp_path / "dataset" / RECORDING).unlink()
    return tmp_path / "dataset"


@pytest.fixture
def repository(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Repository:
    point_to(hub, monkeypatch)
    return hub.repositories[REPO]


@pytest.fixture
def push(
    root: Path, repository: Repository, capsys: pytest.CaptureFixture[str]
) -> Push:
    def call_it(*arguments: str, status: int = 0) -> str:
        done = call(capsys, "push", "--repo", REPO, "--dataset", root, *arguments)
        assert done[0] == status, done
        return done[2]

    return call_it


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
    push(*ONE)
    held = repository.contents("refs/pr/1")
    assert held == files_of(root, NAME)
    assert b"generator." not in held[FILE]
    folder = clone(repository, tmp_path / "clone") / TESTS
    put(folder.parent, "absent.py", NO_GENERATOR + NO_SGLANG)
    run = run_pytest(folder, "--device", "cpu", "--strict")
    assert run.status == 0, run.stdout + run.stderr
    assert run.functions("TestGemmN8K4", "passed") >= {"test_matches_oracle"}


def test_the_checkout_keeps_its_form(push: Push, root: Path) -> None:
    push(*ONE)
    assert not (root / SUPPORT).exists()


def test_gen_tests_keeps_the_form_of_a_clone(
    push: Push, repository: Repository, tmp_path: Path
) -> None:
    push(*ONE)
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
    assert "[rendering-stale]" in push(*ONE, status=1)
    assert repository.discussions() == []
    push(*ONE, "--allow", "rendering-stale=a case that no template has")
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
    assert "gen-tests --all" in push(*ONE, "--allow", reason, status=2)
    assert repository.discussions() == []


def test_a_test_that_is_a_link_is_not_followed(
    push: Push, repository: Repository, root: Path, tmp_path: Path
) -> None:
    put(tmp_path, "secret.py", "mine = 1\n")
    (root / TESTS / "conftest.py").unlink()
    (root / TESTS / "conftest.py").symlink_to(tmp_path / "secret.py")
    reason = "rendering-stale=nobody reads it"
    assert "is a link" in push(*ONE, "--allow", reason, status=2)
    assert repository.discussions() == []
