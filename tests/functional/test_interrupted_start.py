"""Ctrl-C while a command starts is one line, whatever is being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# at a place that does not depend on timing: where a module is looked for
INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.{handler})
sys.meta_path.insert(0, Finder())
import gen_tests
gen_tests.{command}()
"""
COMMANDS = ("gen_tests", "trace_dataset")


def start(
    command: str, module: str, handler: str = "default_int_handler"
) -> subprocess.CompletedProcess[str]:
    """Start a command which is interrupted where it imports a module."""
    code = INTERRUPTED.format(command=command, handler=handler)
    return subprocess.run(
        [sys.executable, "-c", code, module],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "module",
    [
        "generator",
        "kernel_judge",
        "generator.dataset.plugins",
        "click",
        "generator.cli",
        "generator.cli.output",
    ],
)
def test_an_interrupted_import_is_one_line(command: str, module: str) -> None:
    done = start(command, module)
    assert (done.stdout, done.stderr) == ("", "Interrupted.\n")
    assert done.returncode == 128 + signal.SIGINT


def test_what_the_caller_ignores_stays_ignored() -> None:
    done = start("gen_tests", "generator", "SIG_IGN")
    assert done.stderr.startswith("Usage: gen-tests"), done.stderr
    assert done.returncode == 2
