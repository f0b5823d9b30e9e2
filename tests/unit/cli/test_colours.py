"""Verdicts are in colour on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

import pytest

from generator.cli.colours import coloured
from tests.builders import ROOT

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
REPORT = """\
a.json
  error: line 3: /name: PASSED is no name [name-form]
    fix: Give it one.
 solution   verdict               reason
 fine       PASSED
 stale      INCORRECT_NUMERICAL   zero-rows: output: actual has NaN
verdict: changes needed
"""


def test_words_that_decide_are_coloured_and_no_text_changes() -> None:
    text = coloured(REPORT)
    assert _ESCAPE.sub("", text) == REPORT
    painted = re.findall(r"\x1b\[(3\d)m\x1b\[1m([^\x1b]*)", text)
    assert painted == [
        ("31", "error"),
        ("32", "PASSED"),
        ("31", "INCORRECT_NUMERICAL"),
        ("31", "changes needed"),
    ]


def on_terminal(folder: Path, environment: dict[str, str]) -> str:
    """Return what validate writes to a terminal on a definition that is no JSON."""
    (folder / "definitions/rmsnorm").mkdir(parents=True)
    (folder / "definitions/rmsnorm/x.json").write_text("{")
    command = [sys.executable, "-m", "generator.cli.trace_dataset", "validate"]
    command += ["--dataset", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command, variables)
    said = b""
    try:
        while piece := os.read(descriptor, 4096):
            said += piece
    except OSError:
        # Linux says so that the other end is closed
        pass
    os.waitpid(pid, 0)
    os.close(descriptor)
    return said.decode()


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({"NO_COLOR": "", "TERM": "xterm"}, True),
        ({"NO_COLOR": "1", "TERM": "xterm"}, False),
        ({"NO_COLOR": "", "TERM": "dumb"}, False),
    ],
)
def test_a_terminal_has_colours_unless_its_reader_wants_none(
    tmp_path: Path, environment: dict[str, str], is_coloured: bool
) -> None:
    said = on_terminal(tmp_path, environment)
    assert "[json-syntax]" in said
    assert ("\x1b[31m\x1b[1merror\x1b[0m" in said) is is_coloured
