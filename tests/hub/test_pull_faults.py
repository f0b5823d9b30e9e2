"""`trace-dataset pull` where connections, servers and listings mean harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.hub.commands import COMMAND, ROOT, black_box, call
from tests.hub.faults import Does, Fault, refuse, too_many
from tests.hub.fixtures import REPO
from tests.hub.published import add, blob_path, publish, snapshot
from tests.hub.pulling import (
    FILE,
    FIRST,
    PUBLISHED,
    SECOND,
    Pull,
    assert_whole,
)
from tests.hub.server import Hub
from tests.hub.store import Entry, Repository

# faults on the way

FAULTS = {
    "cut": Fault("resolve", Does.CUT_ANSWER, times=3),
    "cut for ever": Fault("resolve", Does.CUT_ANSWER, times=None),
    "dropped": Fault("resolve", Does.DROP_ANSWER, times=4),
    "dropped for ever": Fault("resolve", Does.DROP_ANSWER, times=None),
    "slow": Fault("resolve", Does.SLOW, times=3),
    "wrong once": Fault("resolve", Does.WRONG_BYTES),
    "wrong for ever": Fault("resolve", Does.WRONG_BYTES, times=None),
    "too many": too_many("resolve", times=3),
    "broken": Fault("resolve", Does.STATUS, times=4),
    "broken for ever": Fault("resolve", Does.STATUS, times=None),
    "gone": refuse("resolve", 404, "gone", "EntryNotFound"),
    "forbidden": refuse("resolve", 403, "no"),
    "listing cut": Fault("tree", Does.CUT_ANSWER),
    "listing broken": Fault("tree", Does.STATUS, times=None),
    "listing wrong": Fault("tree", Does.WRONG_BYTES, times=None),
    "no info": Fault("info", Does.STATUS, times=None),
    "some of all": Fault("*", Does.CUT_ANSWER, times=None, probability=0.3),
}
HEALED = {"cut", "dropped", "slow", "wrong once", "too many", "broken", "some of all"}
HEALED |= {"listing cut"}


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_there_are_whole_files_and_a_second_run_completes(
    name: str,
    hub: Hub,
    repository: Repository,
    root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hub.faults.use(FAULTS[name])
    arguments = ("pull", "--repo", REPO, "--dataset", root, "--all", "--blobs", "all")
    status, _, err = call(capsys, *arguments)
    assert hub.faults.struck
    assert (status == 0) is (name in HEALED), err
    assert_whole(root)
    if status:
        assert err
        assert all(len(line) < 400 for line in err.splitlines())
    hub.faults.use()
    assert call(capsys, *arguments)[0] == 0
    assert snapshot(root) == PUBLISHED
    assert not (root / ".trace-dataset/incoming").exists()


def test_a_cut_file_goes_on_where_it_was_cut(
    pull: Pull,
    repository: Repository,
    root: Path,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # what the client gathers before it writes: 10 MiB
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)
    large = bytes(range(256)) * 4096
    repository.put(blob_path(FIRST), large)
    hub.faults.use(Fault("resolve", Does.CUT_ANSWER, path=blob_path(FIRST), times=2))
    pull("--definition-name", FIRST, "--blobs", "all")
    assert (root / blob_path(FIRST)).read_bytes() == large
    asked = [s for s in hub.asked("resolve") if "two.safetensors" in s.target]
    assert [s.headers.get("range") for s in asked] == [
        None,
        f"bytes={len(large) // 2}-",
        f"bytes={len(large) // 4 * 3}-",
    ]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_goes_wrong_only_whole_files_are_there(
    seed: int, pull: Pull, repository: Repository, root: Path, hub: Hub, capsys: Any
) -> None:
    many = {f"traces/a{n}/gemm/{FIRST}.jsonl": b"x" * n * 50 for n in range(1, 40)}
    add(repository, many)
    kinds = [Does.CUT_ANSWER, Does.DROP_ANSWER, Does.STATUS, Does.WRONG_BYTES]
    hub.faults.use(
        *(Fault("*", d, times=None, probability=0.1, seed=seed) for d in kinds)
    )
    arguments = ("pull", "--repo", REPO, "--dataset", root, "--all", "--blobs", "all")
    for _ in range(20):
        status = call(capsys, *arguments)[0]
        for path, data in snapshot(root).items():
            assert data == {**PUBLISHED, **many}[path], path
        if status == 0:
            break
    assert snapshot(root) == {**PUBLISHED, **many}
    assert sum(hub.faults.struck.values()) > 10


def test_after_a_kill_there_are_whole_files_and_a_second_run_completes(
    pull: Pull, root: Path, hub: Hub
) -> None:
    under_way = threading.Event()
    hub.faults.use(
        Fault("resolve", None, times=4),
        Fault("resolve", Does.SLOW, times=None, seconds=0.2, meddle=under_way.set),
    )
    process = subprocess.Popen(
        [*COMMAND, "pull", "--repo", REPO, "--all", "--dataset", str(root)],
        cwd=ROOT,
        env={**os.environ, **hub.environment()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert under_way.wait(60)
    process.kill()
    process.wait()
    assert_whole(root)
    hub.faults.use()
    (root / ".trace-dataset/incoming").mkdir(exist_ok=True)
    pull("--all", "--blobs", "all")
    assert snapshot(root) == PUBLISHED


def test_a_gated_repository(pull: Pull, repository: Repository, root: Path) -> None:
    repository.gated = True
    repository.writers.clear()
    _, _, err = pull("--all", status=2)
    assert "gated" in err
    assert len(err.splitlines()) == 1
    assert snapshot(root) == {}


def test_a_full_disk_is_said_before(
    pull: Pull, root: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: os.statvfs_result and _Full)
    _, _, err = pull("--all", status=2)
    assert "the disk has 0 MiB left" in err
    assert not hub.asked("resolve")


class _Full:
    free = 1000


def test_a_folder_that_cannot_be_made_is_named(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    root = tmp_path / "file/dataset"
    status, _, err = call(capsys, "pull", "--repo", REPO, "--dataset", root, "--all")
    assert status == 2
    assert str(tmp_path / "file") in err
    assert len(err.splitlines()) == 1


# a server that means harm

HOSTILE = {
    "../evil.json": "no path below",
    "/etc/evil.json": "no path below",
    "definitions/../../evil.json": "no path below",
    "definitions//evil.json": "no path below",
    "definitions/./evil.json": "no path below",
    "definitions/.git/config": "git's",
    "blob/.GIT/hooks/pre-commit": "git's",
    "definitions/gemm\\..\\..\\evil.json": "not all systems",
    "definitions/gemm/C:evil.json": "not all systems",
    "definitions/gemm/\x1b[31mevil.json": "not all systems",
    "definitions/gemm/con.json": "not all systems",
    "definitions/gemm/evil.json ": "not all systems",
    "definitions/" + "x" * 300 + "/evil.json": "too long",
    "definitions/GEMM/evil.json": "takes the place",
}


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_written_nowhere(
    path: str, pull: Pull, repository: Repository, tmp_path: Path, root: Path
) -> None:
    add(repository, {path: b"evil"})
    _, out, err = pull("--all", status=1)
    assert HOSTILE[path] in err
    assert "\x1b" not in out + err
    outside = [p for p in tmp_path.rglob("*evil*") if "hub" not in p.parts]
    assert outside == []
    assert not (root / ".git").exists()
    assert_whole(root)
    assert (root / f"definitions/gemm/{SECOND}.json").exists() or "GEMM" in path


def _swapped(repository: Repository, **fields: Any) -> None:
    """Let the listing say something else of a file than what the server sends."""
    commit = repository.head()
    entry = commit.files[FILE]
    files = {**commit.files, FILE: Entry(**{**vars(entry), **fields})}
    made = repository._save(commit.id, "x", "", "m", files)
    repository._point("refs/heads/main", made.id)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"size": 10}, 1, "other bytes"),
        ({"size": 10**15}, 1, "over 256 MiB"),
        ({"size": -1}, 2, "not understood"),
        ({"size": "9"}, 2, "not understood"),
        ({"oid": "0" * 40}, 1, "other bytes"),
        ({"oid": "../../x"}, 2, "not understood"),
        ({"oid": 5}, 2, "not understood"),
        ({"sha256": "x", "lfs": True}, 2, "not understood"),
    ],
)
def test_lies_about_a_file(
    fields: dict[str, Any],
    status: int,
    said: str,
    pull: Pull,
    repository: Repository,
    root: Path,
) -> None:
    _swapped(repository, **fields)
    _, _, err = pull("--all", status=status)
    assert said in err
    assert not (root / FILE).exists()
    assert_whole(root)


def test_the_commands_as_processes_and_no_token_in_what_they_say(
    hub: Hub, repository: Repository, root: Path
) -> None:
    token = "hf_canarycanarycanary"
    arguments = ("pull", "--repo", REPO, "--all", "--dataset", root)
    done = black_box(hub, *arguments, token=token)
    assert done.returncode in (0, 2)
    hub.faults.use(refuse("tree", 403, f"your token {token} may not"))
    again = black_box(hub, *arguments, token=token)
    assert again.returncode == 2
    for text in (done.stdout, done.stderr, again.stdout, again.stderr):
        assert token not in text
    written = [p.read_bytes() for p in root.rglob("*") if p.is_file()]
    assert not any(token.encode() in data for data in written)


def test_a_token_is_not_passed_on_to_where_files_lie(
    pull: Pull, repository: Repository, root: Path, hub: Hub, tmp_path: Path
) -> None:
    with Hub(tmp_path / "hub/elsewhere") as store:
        publish(store, store.add_repository(REPO).name)
        asked = f"/datasets/{REPO}/resolve/main/{FILE}"
        hub.faults.use(
            Fault(
                "resolve",
                Does.STATUS,
                path=FILE,
                status=302,
                headers={
                    "Location": store.url.replace("127.0.0.1", "localhost") + asked
                },
            )
        )
        pull("--definition-name", FIRST)
    assert (root / FILE).read_bytes() == PUBLISHED[FILE]
    assert [seen.target for seen in store.seen] == [asked]
    assert "authorization" in hub.seen[0].headers
    assert "authorization" not in store.seen[0].headers


def test_without_the_client_it_says_what_to_install(
    pull: Pull, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    _, _, err = pull("--all", status=2)
    assert "pip install 'gen-tests[hub]'" in err
    assert len(err.splitlines()) == 1
    assert not root.exists()


def test_other_commands_do_not_load_the_client() -> None:
    code = (
        "import sys, generator.cli.trace_dataset; "
        "sys.exit(bool({'huggingface_hub', 'httpx2', 'torch'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_record_is_not_committed_by_accident(pull: Pull, root: Path) -> None:
    pull("--definition-name", FIRST)
    assert (root / ".trace-dataset/.gitignore").read_text() == "*\n"
    held = json.loads((root / ".trace-dataset/pull.json").read_text())
    assert FILE in held["files"]
