"""Blobs, workloads and solutions of an imported dataset: copied, left out, never overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.dialects.blobs import copy_blobs
from generator.dialects.export import export_dataset
from generator.dialects.sources import read_source
from generator.dialects.write import write
from tests.unit.dialects.dumped import dump

PAYLOAD = {"type": "safetensors", "path": "blob/workloads/norm/x.safetensors"}


@pytest.mark.parametrize("dialect", ["sol-execbench", "flashinfer-bench"])
def test_blobs_come_back(tmp_path: Path, dialect: str) -> None:
    value = dump(reference="def run(x, eps):\n    return x * eps\n", tags=[])
    del value["check"], value["description"]
    inputs = {
        "x": {**PAYLOAD, "tensor_key": "x"},
        "eps": {"type": "scalar", "value": 1},
    }
    workload = {"uuid": "a", "axes": {"m": 2}, "inputs": inputs}
    line = {"definition": "norm_h4", "workload": workload}
    files = {
        "definitions/norm/norm_h4.json": json.dumps(value),
        "workloads/norm/norm_h4.jsonl": json.dumps(line),
        PAYLOAD["path"]: "some tensors",
    }
    for path, text in files.items():
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_text(text)
    out, back = tmp_path / "out", tmp_path / "back"
    (row,) = export_dataset(tmp_path / "in", dialect, out, [], [])
    assert row["reason"] is None
    (found,) = write(read_source(dialect, out), back)
    assert not [change for change in found.changes if "blob" in change]
    assert (back / PAYLOAD["path"]).read_text() == "some tensors"
    (back / PAYLOAD["path"]).write_text("others")
    (found,) = write(read_source(dialect, out), back)
    assert found.changes[-1].endswith("it is not overwritten")
    assert (back / PAYLOAD["path"]).read_text() == "others"


def _solution(**fields: Any) -> dict[str, Any]:
    spec = {
        "language": "python",
        "target_hardware": ["cpu"],
        "entry_point": "a.py::run",
    }
    sources = [{"path": "a.py", "content": "x"}]
    named = {"name": "s", "definition": "norm_h4", "author": "me", **fields}
    return {**named, "spec": spec, "sources": sources}


def _bench(root: Path, *solutions: dict[str, Any]) -> Path:
    value = dump(reference="def run(x, eps):\n    return x * eps\n", tags=[])
    del value["check"], value["description"]
    workload = {"uuid": "a", "axes": {"m": 2}, "inputs": {}}
    files = {
        "definitions/norm/norm_h4.json": value,
        "workloads/norm/norm_h4.jsonl": {"definition": "norm_h4", "workload": workload},
        **{f"solutions/{n}.json": one for n, one in enumerate(solutions)},
    }
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(content))
    return root


@pytest.mark.parametrize(
    "fields",
    [
        *({"author": bad} for bad in ("../../../x", "a/b", ".", ".git", "", "a\0b")),
        *({"name": bad} for bad in ("/etc/x", "../x", "con", "a" * 300, "\ud800")),
    ],
    ids=str,
)
def test_a_solution_whose_name_is_no_part_of_a_path_is_left_out(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    source = _bench(tmp_path / "in", _solution(**fields), _solution(name="good"))
    (found,) = write(read_source("flashinfer-bench", source), tmp_path / "out")
    assert not found.reason
    names = [p.name for p in tmp_path.rglob("*.json") if p.parts[-4:-3] == ("me",)]
    assert names == ["good.json"]
    assert not (tmp_path / "x").exists()
    # an empty name fits no schema, and is no solution
    said = [line for line in found.changes if line.startswith("the solution")]
    assert len(said) == ("" not in fields.values())


def test_an_import_overwrites_nothing(tmp_path: Path) -> None:
    source = _bench(tmp_path / "in", _solution(description="\ud800"))
    out = tmp_path / "out"
    (found,) = write(read_source("flashinfer-bench", source), out)
    (found,) = write(read_source("flashinfer-bench", source), out)
    assert not [line for line in found.changes if "overwritten" in line]
    mine = ("workloads/norm/norm_h4.jsonl", "solutions/me/norm/norm_h4/s.json")
    for path in mine:
        (out / path).write_text("mine")
    (found,) = write(read_source("flashinfer-bench", source), out)
    assert [(out / path).read_text() for path in mine] == ["mine", "mine"]
    assert [line.split("'")[1] for line in found.changes[-2:]] == [*mine]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("blob/y.safetensors", "is not there"),
        ("../secret.safetensors", "leads upwards"),
        (".git/hooks/pre-commit", "does not end in .safetensors"),
    ],
)
def test_a_blob_that_is_not_copied_is_named(
    tmp_path: Path, path: str, said: str
) -> None:
    (tmp_path / "secret.safetensors").write_text("a secret")
    inputs = {"x": {**PAYLOAD, "path": path}, "y": 3, "z": {"type": "safetensors"}}
    lines: list[dict[str, Any]] = [{"workload": {"inputs": inputs}}, {"workload": None}]
    (tmp_path / "in").mkdir()
    (why,) = copy_blobs(tmp_path / "in", lines, tmp_path / "out")
    assert why == f"the blob '{path}' {said}"
    assert not (tmp_path / "out").exists()
