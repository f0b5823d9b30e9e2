"""`gen-tests` as a black box and small datasets to run it on; imports no torch."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import generator
from tests.forking import run_module

ROOT = Path(generator.__file__).parent.parent
Done = subprocess.CompletedProcess[str]
# of the repository: what was built is checked by tests/unit/dataset
NAMES = {path.stem for path in (ROOT / "definitions").glob("*/*.json")}
OP_TYPES = {path.name for path in (ROOT / "definitions").iterdir()}
# an op_type without a module: it renders like any other
DEFINITION: Mapping[str, Any] = {
    "name": "twice_n4",
    "op_type": "twice",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}},
    "reference": "def run(x):\n    return x * 2\n",
}
RMSNORM: Mapping[str, Any] = {
    "name": "rmsnorm_h8",
    "op_type": "rmsnorm",
    "tags": ["model:llama-3.1-8b"],
    "axes": {
        "batch_size": {"type": "var"},
        "hidden_size": {"type": "const", "value": 8},
    },
    "inputs": {
        "hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
        "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
    },
    "outputs": {
        "output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
    },
    "reference": (
        "EPS = 1e-05\n\n\n"
        "def run(hidden_states, weight):\n"
        "    x = hidden_states.float()\n"
        "    scale = (x.square().mean(dim=-1, keepdim=True) + EPS).rsqrt()\n"
        "    return (x * scale * weight.float()).to(hidden_states.dtype)\n"
    ),
}


def gen_tests(
    *arguments: str | Path,
    before: str = "",
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run the command; nothing that it does may print a traceback.

    `before` is code that runs in the same process first, to inject a fault: the process
    is a fresh one then.
    """
    paths = {"PYTHONPATH": str(ROOT), **(env or {})}
    if not before:
        module = "generator.cli.gen_tests"
        done = run_module(module, *arguments, cwd=cwd, env=paths)
    else:
        code = f"{before}\nfrom generator.cli.gen_tests import main\nmain()\n"
        environment = {**os.environ, **paths}
        # where coverage is measured it writes a file too, and would meet the fault
        environment.pop("COVERAGE_PROCESS_CONFIG", None)
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd,
            timeout=60,
            env=environment,
        )
    assert "Traceback" not in done.stderr, done.stderr
    return done


class Dataset:
    """A dataset on disk, rendered into the folder that the command takes by itself."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = root / "tests" / "references"

    def add(self, base: Mapping[str, Any] = DEFINITION, **changes: Any) -> Path:
        """Write a definition with fields changed; its path follows from its names."""
        value = {**copy.deepcopy(dict(base)), **changes}
        path = self.root / "definitions" / value["op_type"] / f"{value['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def run(self, *arguments: str | Path, **keywords: Any) -> Done:
        """Run the command on this dataset."""
        return gen_tests("--dataset", self.root, *arguments, **keywords)

    def render(self, *arguments: str | Path) -> Done:
        """Render everything, which must be fine."""
        done = self.run("--all", *arguments)
        assert done.returncode == 0, done.stderr
        return done

    def file(self, op_type: str = "twice") -> Path:
        """Return the path of an op_type's rendered file."""
        return self.output / f"test_{op_type}.py"

    def text(self, op_type: str = "twice") -> str:
        """Return what an op_type's rendered file holds."""
        return self.file(op_type).read_text(encoding="utf-8")

    def state(self) -> dict[str, tuple[int, bytes]]:
        """Return every file in the output folder: when it was written, and its bytes."""
        return {
            path.relative_to(self.output).as_posix(): (
                path.stat().st_mtime_ns,
                path.read_bytes(),
            )
            for path in sorted(self.output.rglob("*"))
            if path.is_file()
        }


NOTHING = "NOTHING COMPARED with 1 definition: twice_n4 (no op module for twice)"


def statuses(done: Done) -> dict[str, str]:
    """Return what the command printed of each file, `--json` or not."""
    if done.stdout.startswith("{"):
        files = json.loads(done.stdout)["files"]
        return {file["path"]: file["status"] for file in files}
    pairs = (line.split() for line in done.stdout.splitlines())
    return {path: status for status, path in pairs}


def wrong_sums(folder: Path) -> list[str]:
    """Return the files for which `sha256sum -c SHA256SUMS` would say FAILED."""
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("  ", 1) for line in lines]
    assert pairs, "SHA256SUMS is empty"
    return [
        path
        for digest, path in pairs
        if hashlib.sha256((folder / path).read_bytes()).hexdigest() != digest
    ]
