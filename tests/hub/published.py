"""A small published dataset: what the loopback Hub holds, and what pulls bring."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from tests.functional.test_validate import DEFINITION, WORKLOAD
from tests.hub.server import Hub
from tests.hub.store import Repository, takes_lfs

NAMES = ("gemm_n8_k4", "gemm_n9_k4")


def definition(name: str, **fields: Any) -> bytes:
    """Return the text of a definition whose N its name says."""
    n = int(name.split("_")[1][1:])
    axes = {**DEFINITION["axes"], "N": {"type": "const", "value": n}}
    return json.dumps({**DEFINITION, "name": name, "axes": axes, **fields}).encode()


def tensor(name: str, rows: int, value: int = 0) -> bytes:
    """Return a safetensors file with one float16 matrix of 4 columns."""
    size = rows * 4 * 2
    entry = {"dtype": "F16", "shape": [rows, 4], "data_offsets": [0, size]}
    head = json.dumps({name: entry}).encode()
    return struct.pack("<Q", len(head)) + head + bytes([value]) * size


def lines(name: str) -> bytes:
    """Return two workloads, of which the second one names a blob."""
    blob = {"type": "safetensors", "path": f"./{blob_path(name)}", "tensor_key": "A"}
    second = {
        "uuid": "two",
        "axes": {"M": 5},
        "inputs": {"A": blob, "B": {"type": "random"}},
    }
    every = [{**WORKLOAD["workload"]}, second]
    rows = [json.dumps({"definition": name, "workload": one}) for one in every]
    return "".join(f"{row}\n" for row in rows).encode()


def blob_path(name: str, file: str = "two") -> str:
    """Return the path of a definition's blob."""
    return f"blob/workloads/gemm/{name}/{file}.safetensors"


def files_of(name: str) -> dict[str, bytes]:
    """Return all files of one definition."""
    return {
        f"definitions/gemm/{name}.json": definition(name),
        f"workloads/gemm/{name}.jsonl": lines(name),
        blob_path(name): tensor("A", 5),
        blob_path(name, "unused"): tensor("A", 7),
        f"blob/ground_truth/gemm/{name}.safetensors": tensor("C", 2),
        f"traces/baseline/gemm/{name}.jsonl": b"",
        f"traces/gemm/{name}.jsonl": b"\n",
    }


def every_file() -> dict[str, bytes]:
    """Return the whole dataset, with files beside it that are none of its own."""
    found = {path: data for name in NAMES for path, data in files_of(name).items()}
    return {
        **found,
        "verification/gpu.json": b'{"format": 1, "runs": []}',
        "tests/references/test_gemm.py": b"# rendered\n",
        "README.md": b"# card\n",
        ".gitattributes": b"*.safetensors filter=lfs\n",
    }


def add(repository: Repository, files: dict[str, bytes], **more: Any) -> Any:
    """Commit files, those in LFS that the Hub would put there."""
    large = {p: d for p, d in files.items() if takes_lfs(p, len(d))}
    return repository.commit(
        more.pop("revision", "main"),
        title="Add",
        author="maintainer",
        add={p: d for p, d in files.items() if p not in large},
        add_lfs={p: (repository.keep_lfs(d), len(d)) for p, d in large.items()},
        **more,
    )


def publish(hub: Hub, repo: str) -> Repository:
    """Fill a hub's repository with the dataset."""
    repository = hub.repositories[repo]
    add(repository, every_file())
    return repository


def snapshot(root: Path) -> dict[str, bytes]:
    """Return the files of a folder but for those that pull keeps for itself."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".trace-dataset" not in path.parts
    }


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()
