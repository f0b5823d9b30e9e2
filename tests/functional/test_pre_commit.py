"""The hooks for pre-commit: they choose the right files, and their entries work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.reviewed import changed, make
from tests.functional.test_validate import ROOT

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}
PROGRAMS = {
    "trace-dataset": "generator.cli.trace_dataset",
    "gen-tests": "generator.cli.gen_tests",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a dataset with its tests rendered."""
    make(tmp_path)
    entry(tmp_path, "gen-tests --all")
    return tmp_path


def entry(root: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run an entry in a repository, as pre-commit does without filenames."""
    program, *arguments = shlex.split(text)
    return subprocess.run(
        [sys.executable, "-m", PROGRAMS[program], *arguments],
        cwd=root,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_a_hook_passes_on_a_good_dataset(root: Path, hook: dict[str, Any]) -> None:
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    done = entry(root, hook["entry"])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [("trace-dataset-validate", "axis"), ("gen-tests-check", "test_gemm.py")],
)
def test_a_hook_fails_on_a_bad_one(root: Path, name: str, said: str) -> None:
    if name == "gen-tests-check":
        changed(root, reference="def run(A, B):\n    return B @ A.T\n")
    else:
        changed(root, outputs={"C": {"shape": ["M", "X"], "dtype": "float16"}})
    done = entry(root, HOOKS[name]["entry"])
    assert done.returncode == 1
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        ("definitions/gemm/a.json", {"trace-dataset-validate", "gen-tests-check"}),
        ("workloads/gemm/a.jsonl", {"trace-dataset-validate"}),
        ("blob/workloads/gemm/a/x.safetensors", {"trace-dataset-validate"}),
        ("tests/references/test_gemm.py", {"gen-tests-check"}),
        ("tests/references/SHA256SUMS", {"gen-tests-check"}),
        ("README.md", set()),
        ("old/definitions/gemm/a.json", set()),
    ],
)
def test_hooks_run_for_the_files_that_concern_them(path: str, ids: set[str]) -> None:
    assert {n for n, hook in HOOKS.items() if re.search(hook["files"], path)} == ids
