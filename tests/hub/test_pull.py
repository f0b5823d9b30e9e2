"""`trace-dataset pull` over real HTTP: parts, repeats, edits, and no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hub.published import NAMES, add, blob_path, definition, snapshot
from tests.hub.pulling import (
    FILE,
    FIRST,
    PUBLISHED,
    SECOND,
    SHARED,
    Pull,
    assert_whole,
    texts,
)
from tests.hub.server import Hub
from tests.hub.store import Repository

# what is chosen


def test_one_definition_with_its_files_and_no_blobs(
    pull: Pull, root: Path, hub: Hub
) -> None:
    _, out, err = pull("--definition-name", FIRST)
    assert sorted(snapshot(root)) == sorted([*texts(FIRST), *SHARED])
    assert_whole(root)
    assert sorted(out.split()[1::2]) == sorted(snapshot(root))
    assert "3 blobs of 0.0 MiB left out" in err
    assert "5 new, 0 changed, 0 as they were" in err
    # one request a file
    assert len(hub.asked("resolve")) == 5
    assert not hub.asked("head")


def test_needed_blobs_are_those_that_workloads_name_and_recordings(
    pull: Pull, root: Path
) -> None:
    pull("--op-type", "gemm", "--blobs", "needed")
    blobs = [path for path in snapshot(root) if path.startswith("blob/")]
    recordings = [f"blob/ground_truth/gemm/{name}.safetensors" for name in NAMES]
    assert blobs == sorted([*recordings, *map(blob_path, NAMES)])
    assert_whole(root)


@pytest.mark.parametrize("is_xet_off", [True, False])
def test_everything(
    is_xet_off: bool, pull: Pull, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", is_xet_off)
    pull("--all", "--blobs", "all")
    assert snapshot(root) == PUBLISHED


def test_a_blob_that_the_repository_lacks_is_named(
    pull: Pull, repository: Repository, root: Path
) -> None:
    repository.commit("main", title="x", author="m", delete=[blob_path(FIRST)])
    _, _, err = pull("--all", "--blobs", "needed", status=1)
    assert blob_path(FIRST) in err
    assert_whole(root)


def test_a_pull_request_a_branch_and_a_commit(
    pull: Pull, repository: Repository, root: Path
) -> None:
    before = repository.head().id
    other = {FILE: definition(FIRST, description="other")}
    add(repository, other, create_pr=True)
    pull("--definition-name", FIRST, "--pr", "1")
    assert (root / FILE).read_bytes() == other[FILE]
    repository.branch("stable", before)
    pull("--definition-name", FIRST, "--revision", "stable")
    assert_whole(root)
    pull("--definition-name", FIRST, "--revision", before)
    assert_whole(root)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--all", "--pr", "7"), "refs/pr/7"),
        (("--all", "--revision", "nowhere"), "nowhere"),
        (("--definition-name", "gemm_n8_k5"), "Did you mean 'gemm_n8_k4'?"),
        (("--op-type", "gem"), "Did you mean 'gemm'?"),
        ((), "--all"),
        (("--all", "--op-type", "gemm"), "--all"),
        (("--all", "--pr", "1", "--revision", "main"), "--revision"),
        (("--all", "--pr", "0"), "--pr"),
        (("--all", "--repo", "../etc"), "OWNER/NAME"),
        (("--all", "--repo", "lab/none"), "lab/none"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(
    pull: Pull, root: Path, arguments: tuple[str, ...], said: str
) -> None:
    _, out, err = pull(*arguments, status=2)
    assert said in err
    assert out == ""
    assert len([x for x in err.splitlines() if not x.startswith("Usage")]) == 1
    assert not root.exists()


# the second run


def test_what_is_here_is_not_asked_for_again(pull: Pull, root: Path, hub: Hub) -> None:
    pull("--all", "--blobs", "all")
    hub.seen.clear()
    (root / FILE).unlink()
    _, out, _ = pull("--all", "--blobs", "all")
    assert [seen.target.rsplit("/", 1)[1] for seen in hub.asked("resolve")] == [
        f"{FIRST}.json"
    ]
    assert out.split() == ["new", FILE]
    hub.seen.clear()
    pull("--all", "--blobs", "all")
    assert not hub.asked("resolve")
    assert snapshot(root) == PUBLISHED


def test_files_that_were_there_before_the_first_pull_count(
    pull: Pull, root: Path, hub: Hub
) -> None:
    for path, data in PUBLISHED.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    pull("--all", "--blobs", "all")
    assert not hub.asked("resolve")


def test_news_come_and_edits_stay(
    pull: Pull, repository: Repository, root: Path
) -> None:
    pull("--all")
    other = f"definitions/gemm/{SECOND}.json"
    (root / FILE).write_text("mine")
    (root / other).write_text("mine")
    new = definition(SECOND, description="new")
    lines = f"workloads/gemm/{FIRST}.jsonl"
    add(repository, {other: new, lines: b"\n"})
    _, out, err = pull("--all", status=1)
    assert out.split() == ["changed", lines]
    assert f"{other}: edited here, and another one on the Hub" in err
    assert "1 edited here" in err
    assert (root / other).read_text() == "mine"
    assert (root / FILE).read_text() == "mine"
    assert (root / lines).read_bytes() == b"\n"
    # the edit that only one side made is nobody's problem
    _, _, err = pull("--definition-name", FIRST)
    assert "1 edited here" in err
    pull("--all", "--force")
    assert (root / other).read_bytes() == new
    assert (root / FILE).read_bytes() == PUBLISHED[FILE]


def test_without_a_record_what_differs_is_taken_for_edited(
    pull: Pull, root: Path
) -> None:
    pull("--definition-name", FIRST)
    (root / ".trace-dataset/pull.json").write_text('{"format": 1, "files": [')
    (root / FILE).write_text("mine")
    pull("--definition-name", FIRST, status=1)
    assert (root / FILE).read_text() == "mine"


def test_links_and_folders_in_the_way_are_left(
    pull: Pull, root: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "definitions").mkdir(parents=True)
    os.symlink(elsewhere, root / "definitions/gemm")
    (root / f"workloads/gemm/{FIRST}.jsonl").mkdir(parents=True)
    (root / "traces").write_text("a file")
    _, _, err = pull("--definition-name", FIRST, status=1)
    assert "definitions/gemm is a symbolic link here" in err
    assert f"workloads/gemm/{FIRST}.jsonl: no ordinary file lies here" in err
    assert "traces is no folder here" in err
    assert list(elsewhere.iterdir()) == []
    assert (root / "verification/gpu.json").exists()


@pytest.mark.parametrize("place", [".trace-dataset", ".trace-dataset/incoming"])
def test_the_record_is_written_through_no_link(
    place: str, pull: Pull, root: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    (mine / "incoming").mkdir(parents=True)
    texts = {"pull.json": "{}", "precious": "p", "incoming/precious": "q"}
    for name, text in texts.items():
        (mine / name).write_text(text)
    (root / place).parent.mkdir(parents=True)
    os.symlink(mine, root / place)
    _, _, err = pull("--definition-name", FIRST, status=2)
    assert f"{place} is a link or a file here: remove it" in err
    there = [path for path in mine.rglob("*") if path.is_file()]
    assert {str(p.relative_to(mine)): p.read_text() for p in there} == texts


# no network


def test_offline_what_was_pulled_is_enough(
    pull: Pull, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull("--definition-name", FIRST)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    _, _, err = pull("--definition-name", FIRST)
    assert "the Hub was not asked" in err
    (root / FILE).unlink()
    _, _, err = pull("--definition-name", FIRST, status=2)
    assert f"1 file of what is chosen can't be fetched, {FILE}" in err
    _, _, err = pull("--definition-name", FIRST, "--revision", "v2", status=2)
    assert "HF_HUB_OFFLINE" in err


def test_a_hub_that_is_gone_is_one_line(
    pull: Pull, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    _, _, err = pull("--all", status=2)
    assert len(err.splitlines()) == 1
    assert "connection" in err
