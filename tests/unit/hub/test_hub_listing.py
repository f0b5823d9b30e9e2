"""What is taken of a listing, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.hub.pull import PullState, choose, read_state, write_state
from generator.hub.remote import RemoteFile, listing_of
from generator.review.sources import blobs_named

OID = "0" * 40


def file(path: str, size: int = 3) -> RemoteFile:
    return RemoteFile(path, size, OID, None)


def taken(*paths: str) -> list[str]:
    return list(listing_of(OID, [*map(file, paths)]).files)


def test_what_collides_is_refused_on_both_sides() -> None:
    assert taken("blob/a", "blob/A", "blob/b") == ["blob/b"]
    assert taken("blob/x/a", "blob/X/b", "blob/y") == ["blob/y"]
    # composed and decomposed, which some systems take for the same
    assert taken("blob/\u00e9", "blob/e\u0301", "blob/y") == ["blob/y"]


def test_a_file_that_others_have_for_a_folder() -> None:
    assert taken("blob/a", "blob/a/b", "blob/c") == ["blob/a", "blob/c"]


def test_a_path_that_is_listed_twice() -> None:
    assert taken("blob/a", "blob/a", "blob/c") == ["blob/c"]


def test_files_beside_the_dataset_are_no_harm() -> None:
    listing = listing_of(OID, [file(".gitattributes"), file("a?"), file("../a")])
    assert list(listing.files) == [".gitattributes", "a?"]
    assert list(listing.refused) == ["../a"]
    assert choose(listing, (), ()) == ([], [])


@pytest.mark.parametrize(
    "bad",
    [
        RemoteFile("a", True, "x", None),
        RemoteFile("a", 1, OID, "0" * 63),
        RemoteFile(None, 1, OID, None),  # type: ignore[arg-type]
        RemoteFile("a", 1.5, OID, None),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_listing(bad: RemoteFile) -> None:
    with pytest.raises(ValueError, match="without"):
        listing_of(OID, [bad])


def test_both_places_of_traces_belong_to_a_definition() -> None:
    paths = ["traces/me/gemm/a.jsonl", "traces/gemm/a.jsonl", "traces/gemm/b.jsonl"]
    solution = "solutions/me/gemm/a/fast.json"
    every = [*paths, solution, "definitions/gemm/a.json", "definitions/gemm/b.json"]
    texts, _ = choose(listing_of(OID, [*map(file, every)]), (), ["a"])
    found = sorted(file.path for file in texts)
    assert found == sorted([*paths[:2], solution, "definitions/gemm/a.json"])


def test_broken_workloads_name_no_blobs(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_text('[]\n{"workload": 3}\n{"workload": {}}\n{\n')
    assert blobs_named(tmp_path, "w.jsonl") == set()
    assert blobs_named(tmp_path, "missing.jsonl") == set()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 1, "files": 3}', '{"format": 9}', "\xff"]
)
def test_a_broken_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".trace-dataset").mkdir()
    (tmp_path / ".trace-dataset/pull.json").write_text(text)
    state = read_state(tmp_path)
    assert state == PullState()
    assert state.kept("a/b", "main") is None


def test_a_listing_is_kept_for_its_repository_and_revision(tmp_path: Path) -> None:
    listing = listing_of(OID, [file("blob/a"), file("README.md")])
    state = PullState()
    state.keep("a/b", "main", listing)
    write_state(tmp_path, state)
    state = read_state(tmp_path)
    assert state.kept("a/b", "main") == listing
    assert state.kept("a/b", "v2") is None
    assert state.kept("a/c", "main") is None
