"""docs/first-review.md is typed word for word in a dataset of the published layout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generator.execution.sandbox import refusal
from tests.builders import ROOT
from tests.functional.reviewed import commit, git
from tests.functional.test_skills import BLOCK, shows

PAGE = ROOT / "docs/first-review.md"
NAME = "rmsnorm/rmsnorm_h4096"
CLONE = "git clone"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with tests and a card of its own, as the published one."""
    for path in (f"definitions/{NAME}.json", f"workloads/{NAME}.jsonl"):
        (tmp_path / path).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    own = tmp_path / "tests/references/test_rmsnorm_h4096.py"
    own.parent.mkdir(parents=True)
    own.write_text("def test_it(): pass\n")
    (tmp_path / "README.md").write_text("# Kernels\n")
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    return tmp_path


def typed(folder: Path, executes: bool) -> int:
    """Type the page's blocks; return how many outputs of the page were seen."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    said, seen = "", 0
    for kind, text in BLOCK.findall(PAGE.read_text("utf-8")):
        if CLONE in text or ("--execute" in text and not executes):
            continue
        if kind == "text" and said:
            assert shows(said, text), f"{text}\n--- is\n{said}"
            said, seen = "", seen + 1
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-c", text],
                check=False,
                capture_output=True,
                text=True,
                cwd=folder,
                env=environment,
            )
            assert "Traceback" not in done.stderr
            said = done.stdout
    return seen


def test_the_first_review_is_true_to_the_letter(checkout: Path) -> None:
    assert typed(checkout, executes=False) == 1


@pytest.mark.slow
@pytest.mark.skipif(refusal() is not None, reason=f"no sandbox: {refusal()}")
def test_so_is_what_it_executes(checkout: Path) -> None:
    assert typed(checkout, executes=True) == 2
