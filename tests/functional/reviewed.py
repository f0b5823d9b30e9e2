"""Small git repositories with a dataset, to be changed and reviewed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.rules.basis import basis_in
from generator.rules.load import load_definitions
from tests.functional.hostile import LINES, write
from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD, run

REFERENCE: str = DEFINITION["reference"]


def git(root: Path, *arguments: str) -> str:
    """Run git in a repository, whatever the user's own settings are."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def make(root: Path) -> None:
    """Write a good dataset with two definitions, and commit it on main."""
    write(root, FILE, DEFINITION)
    write(root, LINES, json.dumps(WORKLOAD) + "\n")
    other = {**DEFINITION, "name": "gemm_n9_k4", "axes": axes(9)}
    write(root, FILE.replace("n8", "n9"), other)
    line = {**WORKLOAD, "definition": "gemm_n9_k4"}
    write(root, LINES.replace("n8", "n9"), json.dumps(line) + "\n")
    git(root, "init", "-q", "-b", "main")
    commit(root)


def axes(n: int) -> dict[str, Any]:
    """Return the axes of the definition with another N."""
    return {**DEFINITION["axes"], "N": {"type": "const", "value": n}}


def commit(root: Path) -> str:
    """Commit all that lies there; return the commit."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "change")
    return git(root, "rev-parse", "HEAD")


def changed(root: Path, **fields: Any) -> None:
    """Change fields of the definition in the working tree."""
    write(root, FILE, {**DEFINITION, **fields})


def review(root: Path, *arguments: str) -> Any:
    """Run `trace-dataset review` on a repository."""
    return run("review", "--dataset", str(root), *arguments)


def reviewed(root: Path, *arguments: str, status: int | None = None) -> dict[str, Any]:
    """Return what a review says as JSON."""
    done = review(root, "--format", "json", *arguments)
    assert done.stderr == ""
    assert status in (None, done.returncode), done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def answers(found: dict[str, Any], name: str = "gemm_n8_k4") -> dict[str, str]:
    """Return point → answer of a definition's checklist."""
    listed = (a for a in found["checklist"] if a["definition"] in (name, ""))
    return {a["point"]: a["answer"] for a in listed}


def differences(found: dict[str, Any], part: str) -> list[str]:
    """Return the differences of a part, of all definitions."""
    return [
        d["text"]
        for c in found["changes"]
        for d in c["differences"]
        if d["part"] == part
    ]


def evidence(root: Path, name: str = "gemm_n8_k4", verdict: str = "PASSED") -> None:
    """Write a run on a GPU that is about the definition's text as it is."""
    write_runs(root, "gpu", run_of(root, name, verdict=verdict))


def run_of(
    root: Path,
    *names: str,
    verdict: str = "PASSED",
    source: str = "flashinfer/fa2",
    **machine: str,
) -> dict[str, Any]:
    """Return a run that is about the definitions' texts as they are."""
    entries = {}
    for name in names:
        basis = basis_in(root, f"definitions/gemm/{name}.json")
        sources = {source: {"verdict": verdict, "cases": 3}}
        entries[name] = {"sha256": basis, "sources": sources}
    known = {"device": "cuda", "gpu": "NVIDIA H200", "flashinfer": "0.6.18"}
    return {
        "date": "2026-11-21",
        "machine": {**known, **machine},
        "definitions": entries,
    }


def write_runs(root: Path, name: str, *runs: dict[str, Any]) -> None:
    """Write an evidence file with runs."""
    write(root, f"verification/{name}.json", {"format": 1, "runs": list(runs)})


def render(root: Path) -> None:
    """Render the tests of the dataset as it is."""
    loaded = load_definitions(root)
    output = root / "tests/references"
    generate(root, loaded, output, RenderOptions(), everything=True)
