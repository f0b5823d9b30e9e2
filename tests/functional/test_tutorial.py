"""docs/tutorial.md is typed word for word: each command, and the output that it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.builders import ROOT
from tests.functional.test_skills import BLOCK, shows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("flashinfer") is not None or find_spec("sglang") is not None,
        reason="the tutorial shows what a machine without FlashInfer and SGLang prints",
    ),
]
# what it says of an environment, which is there
INSTALLS = "python3 -m venv"
# the commands that fail, as the tutorial says before their output
FAIL = "against oracle, one-row: FAILED"


def steps() -> list[tuple[str, list[str]]]:
    """Return each block of commands with the outputs that the page shows of it."""
    typed: list[tuple[str, list[str]]] = []
    for kind, text in BLOCK.findall((ROOT / "docs/tutorial.md").read_text("utf-8")):
        if kind == "sh":
            typed.append((text, []))
        else:
            typed[-1][1].append(text)
    return typed


def test_the_tutorial_is_true_to_the_letter(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    where = clone
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    shown = 0
    for number, (commands, outputs) in enumerate(steps()):
        if INSTALLS in commands:
            assert number == 0
            continue
        done = subprocess.run(
            [
                "bash",
                "-c",
                f"{commands}\nstatus=$?\npwd > {tmp_path}/where\nexit $status",
            ],
            check=False,
            capture_output=True,
            text=True,
            cwd=where,
            env=environment,
        )
        where = Path((tmp_path / "where").read_text().strip())
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        expected = any(FAIL in output for output in outputs)
        assert done.returncode == int(expected), f"{commands}\n{text}"
        for output in outputs:
            shown += 1
            assert shows(text, output), f"{commands}\n{output}\n--- is\n{text}"
    assert shown >= 5
    assert where == tmp_path / "my-dataset"
