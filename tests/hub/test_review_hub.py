"""`trace-dataset review --hub`: the verdict of a git checkout, with less fetched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator.rules.basis import basis_of_bytes
from tests.functional.reviewed import answers, commit, git
from tests.hub.commands import black_box, call, point_to
from tests.hub.faults import Does, Fault, refuse
from tests.hub.fixtures import REPO
from tests.hub.published import (
    NAMES,
    add,
    blob_path,
    definition,
    every_file,
    files_of,
    publish,
    tensor,
)
from tests.hub.server import Hub
from tests.hub.store import Repository

FIRST, SECOND = NAMES
THIRD = "gemm_n16_k4"
FILE = f"definitions/gemm/{FIRST}.json"
LOCAL = ("base", "head", "base_is")
Review = Callable[..., dict[str, Any]]


@pytest.fixture
def repository(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    point_to(hub, monkeypatch)
    return publish(hub, REPO)


@pytest.fixture
def review(repository: Repository, capsys: pytest.CaptureFixture[str]) -> Review:
    """Review pull request 1; return what it says and the exit status."""

    def call_it(*arguments: str, pr: int = 1) -> dict[str, Any]:
        options = ("--hub", REPO, "--pr", str(pr), "--format", "json")
        status, out, err = call(capsys, "review", *options, *arguments)
        assert err == ""
        found: dict[str, Any] = json.loads(out)
        return {**found, "status": status}

    return call_it


def propose(
    repository: Repository, files: dict[str, bytes], delete: tuple[str, ...] = ()
) -> None:
    """Open a pull request that adds or changes files."""
    add(repository, files, create_pr=True, delete=delete)


def evidence(name: str, text: bytes) -> bytes:
    """Return evidence that a text of a definition agreed with a kernel on a GPU."""
    source = {"verdict": "PASSED", "cases": 3}
    basis = basis_of_bytes(text, FILE)
    entry = {"sha256": basis, "sources": {"flashinfer/fa2": source}}
    machine = {"device": "cuda", "gpu": "NVIDIA H200"}
    run = {"date": "2026-11-21", "machine": machine, "definitions": {name: entry}}
    return json.dumps({"format": 1, "runs": [run]}).encode()


CHANGES: dict[str, tuple[dict[str, bytes], tuple[str, ...]]] = {
    "a new definition": (files_of(THIRD), ()),
    "a reference that computes something else": (
        {
            FILE: definition(FIRST, reference="def run(A, B):\n    return A - B.T\n"),
        },
        (),
    ),
    "a broken definition": ({FILE: b"{"}, ()),
    "a blob that is too short": ({blob_path(FIRST): tensor("A", 4)}, ()),
    "a blob less": ({}, (blob_path(FIRST),)),
    "a definition less": ({}, tuple(files_of(FIRST))),
    "evidence": ({"verification/gpu.json": evidence(FIRST, definition(FIRST))}, ()),
    "files beside": ({"README.md": b"other\n", "blob/odd.txt": b"x"}, ()),
    "two definitions": ({**files_of(THIRD), **files_of("gemm_n32_k4")}, ()),
}


def reviewed_in_git(
    root: Path,
    files: dict[str, bytes],
    delete: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> dict[str, Any]:
    """Return the review of the same change in a checkout with the data in place."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, data in every_file().items():
        # a filter of Git LFS has no part in what is compared
        if path != ".gitattributes":
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
    git(root, "init", "-q", "-b", "main")
    commit(root)
    git(root, "checkout", "-q", "-b", "change")
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    for path in delete:
        (root / path).unlink()
    commit(root)
    options = ("--base", "main", "--head", "change", "--format", "json")
    status, out, _ = call(capsys, "review", "--dataset", root, *options)
    return {**json.loads(out), "status": status}


@pytest.mark.parametrize("name", CHANGES)
def test_the_verdict_is_that_of_a_checkout(
    name: str,
    repository: Repository,
    review: Review,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files, delete = CHANGES[name]
    propose(repository, files, delete)
    found = review()
    wanted = reviewed_in_git(tmp_path / "checkout", files, delete, capsys)
    for part in ("verdict", "status", "reasons", "changes", "checklist", "classes"):
        assert found[part] == wanted[part], part
    assert found["problems"]["new"] == wanted["problems"]["new"]
    assert found["problems"]["mended"] == wanted["problems"]["mended"]


def test_only_what_is_needed_is_fetched(
    repository: Repository, review: Review, hub: Hub
) -> None:
    propose(repository, {FILE: definition(FIRST, description="other")})
    hub.seen.clear()
    assert review()["changes"][0]["name"] == FIRST
    fetched = {s.target.split("/", 6)[6] for s in hub.asked("resolve")}
    # its recording too, which --execute replays
    wanted = {*files_of(FIRST), "tests/references/test_gemm.py"}
    wanted |= {f"definitions/gemm/{SECOND}.json", "verification/gpu.json"}
    assert fetched == wanted
    # what is the same on both sides comes once, what differs twice
    assert len(hub.asked("resolve")) == len(fetched) + 1


def test_a_kernel_s_verdict_approves(repository: Repository, review: Review) -> None:
    new = definition(FIRST, reference="def run(A, B):\n    return B @ A.T\n")
    brought = {FILE: new, "verification/gpu.json": evidence(FIRST, new)}
    propose(repository, brought)
    point = "agreed with a production kernel on a GPU"
    assert answers(review())[point] == "unknown"
    assert answers(review("--trust-evidence"))[point] == "yes"


def test_main_going_on_is_not_the_change_s(
    repository: Repository, review: Review
) -> None:
    propose(repository, {FILE: definition(FIRST, description="mine")})
    other = f"definitions/gemm/{SECOND}.json"
    repository.put(other, definition(SECOND, description="theirs"))
    found = review()
    assert [change["name"] for change in found["changes"]] == [FIRST]
    assert "which has 1 commits more by now" in found["base_is"]
    assert found["base"] == repository.history()[1].id
    assert found["head"] == repository.head("refs/pr/1").id


def test_a_second_commit_is_reviewed_with_the_first(
    repository: Repository, review: Review
) -> None:
    propose(repository, {FILE: definition(FIRST, description="one")})
    lines = f"workloads/gemm/{FIRST}.jsonl"
    row = files_of(FIRST)[lines].splitlines(keepends=True)[0]
    add(repository, {lines: row}, revision="refs/pr/1")
    found = review()
    assert found["changes"][0]["kind"] == "changed"
    assert found["changes"][0]["workloads"]["removed"] == 1


def test_a_blob_that_another_definition_s_workloads_name(
    repository: Repository, review: Review
) -> None:
    theirs = f"workloads/gemm/{SECOND}.jsonl"
    shared = files_of(SECOND)[theirs].replace(
        blob_path(SECOND).encode(), blob_path(FIRST).encode()
    )
    repository.put(theirs, shared)
    propose(repository, {}, (blob_path(FIRST),))
    found = review()["problems"]["new"]
    rules = {(p["rule"], p["file"]) for p in found}
    assert ("workload-blob-missing", theirs) in rules


def test_a_blob_of_a_definition_that_did_not_change(
    repository: Repository, review: Review
) -> None:
    lines = f"workloads/gemm/{SECOND}.jsonl"
    shared = files_of(SECOND)[lines].replace(
        blob_path(SECOND).encode(), blob_path(FIRST).encode()
    )
    repository.put(lines, shared)
    other = definition(SECOND, description="other")
    propose(repository, {f"definitions/gemm/{SECOND}.json": other})
    found = review()
    assert [change["name"] for change in found["changes"]] == [SECOND]
    problems = (*found["problems"]["new"], *found["problems"]["mended"])
    assert [p for p in problems if "blob" in p["rule"]] == []
    assert answers(found, SECOND)["blobs of the workloads"] == "yes"


def test_hostile_paths_speak_against_a_change(
    repository: Repository, review: Review, tmp_path: Path
) -> None:
    propose(repository, {"definitions/../../evil.json": b"x", FILE: b"{"})
    found = review()
    assert found["verdict"] == "changes needed"
    assert any("evil.json" in reason for reason in found["reasons"])
    assert [p for p in tmp_path.rglob("evil*") if "hub" not in p.parts] == []


def _no_pull_request(repository: Repository) -> None:
    pass


def _closed(repository: Repository) -> None:
    propose(repository, {FILE: b"{}"})
    repository.change(1, status="closed")


def _merged(repository: Repository) -> None:
    propose(repository, {FILE: b"{}"})
    repository.change(1, status="merged")


def _discussion(repository: Repository) -> None:
    repository.open_discussion("Why", "?", "me", pull_request=False)


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (_no_pull_request, "has no pull request 1"),
        (_closed, "is closed"),
        (_merged, "is merged"),
        (_discussion, "is a discussion"),
    ],
)
def test_a_number_that_names_no_open_pull_request(
    prepare: Callable[[Repository], None],
    said: str,
    repository: Repository,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare(repository)
    status, out, err = call(capsys, "review", "--hub", REPO, "--pr", "1")
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--hub", REPO), "--pr"),
        (("--pr", "1"), "--hub"),
        (("--hub", "no", "--pr", "1"), "OWNER/NAME"),
        (("--hub", REPO, "--pr", "0"), "--pr"),
        (("--hub", REPO, "--pr", "1", "--base", "main"), "--base"),
        (("--hub", "lab/none", "--pr", "1"), "lab/none"),
    ],
)
def test_wrong_usage_is_one_line(
    repository: Repository,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    status, out, err = call(capsys, "review", *arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert len([x for x in err.splitlines() if not x.startswith("Usage")]) == 1


@pytest.mark.parametrize(
    "fault",
    [
        refuse("discussion", 500, "broken"),
        refuse("commits", 500, "broken"),
        Fault("commits", Does.WRONG_BYTES, times=None),
        refuse("tree", 403, "no"),
        Fault("resolve", Does.CUT_ANSWER, times=None),
        Fault("resolve", Does.WRONG_BYTES, times=None),
        refuse("resolve", 403, "no", "GatedRepo"),
    ],
)
def test_a_review_is_whole_or_none(
    repository: Repository,
    hub: Hub,
    fault: Fault,
    capsys: pytest.CaptureFixture[str],
) -> None:
    propose(repository, {FILE: definition(FIRST, description="other")})
    hub.faults.use(fault)
    status, out, err = call(capsys, "review", "--hub", REPO, "--pr", "1")
    assert hub.faults.struck
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_what_heals_does_not_change_the_review(
    repository: Repository, review: Review, hub: Hub
) -> None:
    propose(repository, *CHANGES["a new definition"])
    wanted = review()
    hub.faults.use(Fault("*", Does.CUT_ANSWER, times=None, probability=0.3))
    assert review() == wanted


def test_the_command_as_a_process_writes_its_reports(
    repository: Repository, hub: Hub, tmp_path: Path
) -> None:
    propose(repository, *CHANGES["a new definition"])
    out = tmp_path / "out"
    done = black_box(hub, "review", "--hub", REPO, "--pr", "1", "--output", out)
    assert done.returncode in (1, 3), done.stderr
    assert THIRD in done.stdout
    assert (out / "review.md").exists()
    assert (out / "tests/references/test_gemm.py").exists()
