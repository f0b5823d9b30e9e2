"""What the tests of pulls share: a published dataset, and a folder to bring it to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub.commands import call, point_to
from tests.hub.fixtures import REPO
from tests.hub.published import NAMES, every_file, files_of, publish, snapshot
from tests.hub.server import Hub
from tests.hub.store import Repository

FIRST, SECOND = NAMES
FILE = f"definitions/gemm/{FIRST}.json"
PUBLISHED = {
    path: data
    for path, data in every_file().items()
    if not path.startswith((".", "README"))
}
SHARED = ["verification/gpu.json"]
Pull = Callable[..., tuple[int, str, str]]


@pytest.fixture
def repository(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Repository:
    point_to(hub, monkeypatch)
    return publish(hub, REPO)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


@pytest.fixture
def pull(
    repository: Repository, root: Path, capsys: pytest.CaptureFixture[str]
) -> Pull:
    def call_it(*arguments: str, status: int = 0) -> tuple[int, str, str]:
        done = call(capsys, "pull", "--repo", REPO, "--dataset", root, *arguments)
        assert done[0] == status, done
        return done

    return call_it


def texts(name: str) -> list[str]:
    return [path for path in files_of(name) if not path.startswith("blob/")]


def assert_whole(root: Path) -> None:
    """Every file that is there is a published one, to the last byte."""
    for path, data in snapshot(root).items():
        assert data == PUBLISHED[path], path
