"""A pull and a push that are killed at random moments, and run again."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import pytest

from tests.forking import run_module
from tests.functional.test_killed import KILLED, TEMPORARY
from tests.hub import pulling, pushable
from tests.hub.fixtures import REPO
from tests.hub.published import snapshot
from tests.hub.pulling import PUBLISHED
from tests.hub.pushable import NAME, ONE, files_of
from tests.hub.server import Hub

repository, root = pulling.repository, pushable.root
MOMENTS = [4, pytest.param(50, marks=pytest.mark.slow)]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")


def run(hub: Hub, at: int, count: Path, *arguments: str) -> int:
    """Run trace-dataset, killed at an event; return its exit status."""
    words = (str(at), "generator.cli.trace_dataset", *arguments)
    variables = {**hub.environment("hf_maintainer"), "KILLED_COUNT": str(count)}
    done = run_module(str(KILLED), *words, env=variables)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def chosen(count: Path, moments: int) -> list[int]:
    """Return the events at which the command is killed."""
    events = int(count.read_text())
    return random.Random(moments).sample(range(1, events + 1), min(moments, events))


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("moments", MOMENTS)
def test_a_killed_pull_leaves_whole_files(
    hub: Hub, tmp_path: Path, moments: int
) -> None:
    count = tmp_path / "count"

    def pull(at: int, folder: Path) -> int:
        words = ("pull", "--repo", REPO, "--all", "--dataset", str(folder))
        return run(hub, at, count, *words)

    assert pull(0, tmp_path / "whole") == 0
    whole = snapshot(tmp_path / "whole")
    killed = 0
    for at in chosen(count, moments):
        folder = tmp_path / str(at)
        killed += pull(at, folder) == -signal.SIGKILL
        for path, data in snapshot(folder).items() if folder.exists() else ():
            is_whole = data == PUBLISHED.get(path)
            assert is_whole or TEMPORARY.fullmatch(Path(path).name), (at, path)
        assert pull(0, folder) == 0, at
        again = snapshot(folder)
        left = {p for p in again if TEMPORARY.fullmatch(Path(p).name)}
        assert {p: d for p, d in again.items() if p not in left} == whole, at
    assert killed >= moments * 4 // 5


@pytest.mark.parametrize("moments", MOMENTS)
def test_a_killed_push_is_one_pull_request(
    hub: Hub, root: Path, tmp_path: Path, moments: int
) -> None:
    count = tmp_path / "count"
    words = ("push", "--repo", REPO, "--dataset", str(root), *ONE, "--yes")
    repository = hub.repositories[REPO]
    before = files_of(root, NAME)
    assert run(hub, 0, count, *words) == 0
    killed = 0
    for number, at in enumerate(chosen(count, moments)):
        other = f"killed/{number}"
        hub.add_repository(other)
        given = [other if word == REPO else word for word in words]
        killed += run(hub, at, count, *given) == -signal.SIGKILL
        assert hub.repositories[other].damage() == [], at
        assert run(hub, 0, count, *given) == 0, at
        found = hub.repositories[other]
        assert [held["num"] for held in found.discussions()] == [1], at
        assert found.contents("refs/pr/1") == before, at
        assert files_of(root, NAME) == before
    assert killed >= moments * 4 // 5
    assert repository.damage() == []
