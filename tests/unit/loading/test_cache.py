"""The cache never says what is not true any more, and never fails a command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator import parallel
from generator.cache import Cache
from generator.problems import Problem
from generator.validate import Counts, make_plan, run_plan
from tests.unit.loading.made import (
    PAGED_BLOBS,
    PAGED_VALUES,
    paged,
    solution,
    tensor_file,
)


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the cache lies, outside of the dataset."""
    return tmp_path_factory.mktemp("remembered") / "deep" / "validate.sqlite"


def found(dataset: Any, path: Path | None) -> list[Problem]:
    cache = Cache(path) if path is not None else None
    return list(run_plan(make_plan(dataset.root), Counts(), cache=cache))


def _blob(dataset: Any, **values: list[int]) -> None:
    tensors = {**PAGED_VALUES, **values}
    content = {k: ("I32", [len(v)], v) for k, v in tensors.items()}
    dataset.write(f"{PAGED_BLOBS}/0.safetensors", tensor_file(content))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "definition": lambda d: d.definition(tags=["decode"]),
    "workloads": lambda d: d.workloads("{"),
    "blob": lambda d: _blob(d, kv_indices=[7, 8, 3]),
    "blob of the same size and time": lambda d: _same_time(d),
    "blob is gone": lambda d: (d.root / f"{PAGED_BLOBS}/0.safetensors").unlink(),
    "blob is broken": lambda d: d.write(f"{PAGED_BLOBS}/0.safetensors", "x"),
    "blob too many": lambda d: d.write(f"{PAGED_BLOBS}/1.safetensors", "x"),
    "blob links out": lambda d: _link(d),
    "solution": lambda d: solution(
        d, author="alice", at="solutions/b/gemm/gemm_n8_k4/x.json"
    ),
}


def _same_time(dataset: Any) -> None:
    place = dataset.root / f"{PAGED_BLOBS}/0.safetensors"
    status = place.stat()
    _blob(dataset, kv_indices=[7, 8, 3])
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def _link(dataset: Any) -> None:
    place = dataset.root / f"{PAGED_BLOBS}/0.safetensors"
    outside = dataset.root.parent / f"{dataset.root.name}.safetensors"
    place.rename(outside)
    place.symlink_to(outside)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(dataset: Any, path: Path, change: str) -> None:
    paged(dataset)
    assert found(dataset, path) == []
    assert path.is_file()
    CHANGES[change](dataset)
    expected = found(dataset, None)
    assert expected
    assert found(dataset, path) == expected
    assert found(dataset, path) == expected


def test_what_is_known_is_not_checked_again(
    dataset: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.definition(tags=["decode", "status:verified", "fi_api:flashinfer.x"])
    first = found(dataset, path)
    assert {p.rule for p in first} == {"tag-form", "tag-evidence"}

    def fail(*arguments: object) -> None:
        raise AssertionError("checked again")

    monkeypatch.setattr(parallel, "check_unit", fail)
    assert found(dataset, path) == first


def _a_folder(path: Path) -> None:
    path.mkdir(parents=True)


def _garbage(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)


def _another_table(path: Path) -> None:
    import sqlite3

    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE outcomes (a)")


def _no_folder(path: Path) -> None:
    path.parent.write_text("")


@pytest.mark.parametrize("spoil", [_a_folder, _garbage, _another_table, _no_folder])
def test_a_spoilt_cache_costs_only_time(
    dataset: Any, path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(path)
    dataset.definition(tags=["decode"])
    for _ in range(2):
        assert [p.rule for p in found(dataset, path)] == ["tag-form"]


def test_a_spoilt_entry_is_made_anew(dataset: Any, path: Path) -> None:
    import sqlite3

    found(dataset, path)
    for value in ("{", "[]", "{}", '{"blobs": {}}', "null"):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE outcomes SET value = ?", (value,))
        database.close()
        assert found(dataset, path) == []
