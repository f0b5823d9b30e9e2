"""A small dataset that may be pushed: valid, rendered, with evidence for its bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.results.evidence import DefinitionEvidence, Run, SourceEvidence, as_text
from generator.rules.basis import basis_of_bytes
from generator.rules.load import load_definitions
from tests.functional.test_validate import DEFINITION, WORKLOAD
from tests.hub.commands import call, point_to
from tests.hub.fixtures import REPO
from tests.hub.server import Hub
from tests.hub.store import Repository

NAME, OTHER = "gemm_n8_k4", "gemm_n9_k4"
FILE = f"definitions/gemm/{NAME}.json"
LINES = f"workloads/gemm/{NAME}.jsonl"
RECORDING = f"blob/ground_truth/gemm/{NAME}.safetensors"
TESTS = "tests/references"
EVIDENCE = "verification/run.json"
ONE = ("--definition-name", NAME)
Push = Callable[..., tuple[int, str, str]]
GPU = {"device": "cuda", "gpu": "NVIDIA H200", "torch": "2.11", "flashinfer": "0.6.18"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make(tmp_path / "dataset")
    return tmp_path / "dataset"


@pytest.fixture
def repository(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return the empty repository that this process's client talks to."""
    point_to(hub, monkeypatch)
    return hub.repositories[REPO]


@pytest.fixture
def push(
    repository: Repository, root: Path, capsys: pytest.CaptureFixture[str]
) -> Push:
    """Push; return status, stdout and stderr. Nothing is half-written."""

    def call_it(*arguments: str, status: int = 0) -> tuple[int, str, str]:
        options = ("--repo", REPO, "--dataset", root)
        done = call(capsys, "push", *options, *arguments)
        assert done[0] == status, done
        assert repository.damage() == []
        return done

    return call_it


def make(root: Path, names: Sequence[str] = (NAME,), **fields: Any) -> None:
    """Write the dataset; the definitions differ by N, which their names say."""
    for name in names:
        n = int(name.split("_")[1][1:])
        axes = {**DEFINITION["axes"], "N": {"type": "const", "value": n}}
        tags = ["model:llama-3.1-8b"]
        definition = {**DEFINITION, "name": name, "axes": axes, "tags": tags, **fields}
        put(root, f"definitions/gemm/{name}.json", json.dumps(definition))
        line = json.dumps({**WORKLOAD, "definition": name})
        put(root, f"workloads/gemm/{name}.jsonl", line + "\n")
        put(root, f"blob/ground_truth/gemm/{name}.safetensors", f"outputs of {name}")
    render(root)
    prove(root)


def put(root: Path, path: str, content: str | bytes) -> None:
    """Write a file of the dataset."""
    data = content.encode() if isinstance(content, str) else content
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


def render(
    root: Path, output: Path | None = None, *, standalone: bool | None = None
) -> None:
    """Render the reference tests of the dataset as it is."""
    loaded = load_definitions(root)
    folder = output or root / "tests/references"
    options = RenderOptions(standalone=standalone)
    generate(root, loaded, folder, options, everything=True)


def prove(root: Path, source: str = "pytorch", verdict: str = "PASSED") -> None:
    """Write evidence for the definitions as they are."""
    entries = {}
    for path in sorted((root / "definitions").rglob("*.json")):
        sha256 = basis_of_bytes(path.read_bytes(), str(path))
        found = SourceEvidence(verdict, cases=3, seconds=0.1, nmse=1e-9)
        entries[path.stem] = DefinitionEvidence(sha256, {source: found})
    put(root, EVIDENCE, as_text([Run("2026-11-21", GPU, entries)]))


def files_of(root: Path, *names: str) -> dict[str, bytes]:
    """Return what belongs to definitions: their own files, tests and evidence.

    The tests are the standalone ones, whatever the dataset has.
    """
    found = {}
    for name, content in _files(root).items():
        own = name.startswith(("definitions/", "workloads/", "blob/"))
        is_test = name.startswith(f"{TESTS}/")
        if not is_test and (not own or any(part in name for part in names)):
            found[name] = content
    with TemporaryDirectory() as folder:
        render(root, Path(folder, TESTS), standalone=True)
        return {**found, **_files(Path(folder))}


def _files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def add_blobs(root: Path, count: int) -> None:
    """Give the definition `count` workloads, each with a blob of its own."""
    lines = []
    for number in range(count):
        path = f"blob/workloads/gemm/{NAME}/{number:04}.safetensors"
        values = struct.pack("<12e", *(float(number + n) for n in range(12)))
        entry = {"dtype": "F16", "shape": [3, 4], "data_offsets": [0, len(values)]}
        head = json.dumps({"A": entry}).encode()
        put(root, path, struct.pack("<Q", len(head)) + head + values)
        inputs = {
            "A": {"type": "safetensors", "path": path, "tensor_key": "A"},
            "B": {"type": "random"},
        }
        workload = {"uuid": f"w{number}", "axes": {"M": 3}, "inputs": inputs}
        lines.append(json.dumps({"definition": NAME, "workload": workload}))
    put(root, LINES, "\n".join(lines) + "\n")
