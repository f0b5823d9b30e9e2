"""The recipes of skills/ are followed word for word in a checkout of a small dataset."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from generator import api
from generator.execution.sandbox import refusal
from tests.builders import ROOT
from tests.functional.reviewed import commit, git

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(refusal() is not None, reason=f"no sandbox: {refusal()}"),
]
NAME = "layernorm/layernorm_h128"
SKILLS = sorted(path.parent.name for path in (ROOT / "skills").glob("*/SKILL.md"))
BLOCK = re.compile(r"^ *```(sh|text)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def steps(skill: str) -> list[tuple[str, str]]:
    """Return each command of a recipe with the output that it shows, empty for none."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall((ROOT / f"skills/{skill}/SKILL.md").read_text()):
        text = textwrap.dedent(text)
        if kind == "sh":
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], text)
    return found


def shows(output: str, expected: str) -> bool:
    """Return whether lines come in this order; … stands for anything."""
    lines = [line.strip() for line in expected.splitlines() if line.strip() != "…"]
    pattern = ".*".join(
        ".*".join(map(re.escape, line.split("…"))) for line in lines if line
    )
    return re.search(pattern, output, re.DOTALL) is not None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository: main has a definition and its tests, change a wrong eps."""
    for path in (f"definitions/{NAME}.json", f"workloads/{NAME}.jsonl"):
        (tmp_path / path).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    api.render(api.open_dataset(tmp_path))
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "change")
    definition = tmp_path / f"definitions/{NAME}.json"
    text = definition.read_text()
    assert "EPS = 1e-06" in text
    definition.write_text(text.replace("EPS = 1e-06", "EPS = 1e-02"))
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    return tmp_path


def test_three_recipes_are_there() -> None:
    assert SKILLS == ["add-definition", "review-dataset-pr", "write-solution"]


@pytest.mark.parametrize("skill", SKILLS)
def test_a_recipe_can_be_followed_word_for_word(skill: str, checkout: Path) -> None:
    who = {
        f"GIT_{role}_{what}": "a"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environment = {
        **os.environ,
        **who,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    for command, expected in steps(skill):
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            check=False,
            cwd=checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        allowed = (0, 3) if "trace-dataset review" in command else (0,)
        assert done.returncode in allowed, f"{command}\n{done.stdout}"
        assert shows(done.stdout, expected), f"{command}\n{done.stdout}"


def test_what_is_shown_is_compared() -> None:
    assert shows("a 1\nb 2\n", "a …\nb 2")
    assert not shows("b 2\na 1\n", "a …\nb 2")
    assert not shows("b 2\n", "a")
