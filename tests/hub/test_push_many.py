"""A thousand files through a line on which three requests in ten go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.commands import call, point_to
from tests.hub.faults import Does, Fault
from tests.hub.fixtures import REPO
from tests.hub.pushable import NAME, add_blobs, files_of, make
from tests.hub.server import Hub

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
_SHARE = (
    0.11  # four kinds, each of those left: 1 - 0.89**4 is 37 %; at least 30 % wanted
)
_BLOBS = 950


@pytest.mark.slow
def test_a_thousand_files_and_three_faults_in_ten(
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root, repository = tmp_path / "dataset", hub.repositories[REPO]
    make(root)
    add_blobs(root, _BLOBS)
    point_to(hub, monkeypatch)
    hub.faults.use(
        *(
            Fault("*", does, times=None, probability=_SHARE, seed=seed, status=503)
            for seed, does in enumerate(
                (Does.CUT_UPLOAD, Does.CUT_ANSWER, Does.DROP_ANSWER, Does.STATUS)
            )
        )
    )
    chosen = ("--definition-name", NAME, "--yes")
    command = ("push", "--repo", REPO, "--dataset", root, *chosen)
    status, out, err = call(capsys, *command)
    assert status == 0, err
    struck = sum(hub.faults.struck.values())
    assert struck >= 0.3 * len(hub.seen)
    sent = repository.contents("refs/pr/1")
    assert len(sent) >= 1000
    assert sent == files_of(root, NAME)
    assert repository.damage() == []
    assert [held["num"] for held in repository.discussions()] == [1]
    assert len(repository.history("refs/pr/1")) == 2
    hub.faults.use()
    before = repository.refs()
    _, out, _ = call(capsys, *command)
    assert "nothing new" in out
    assert repository.refs() == before
