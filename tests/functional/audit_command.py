"""`trace-dataset audit` and its like as processes, and small datasets to audit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.builders import ROOT, resized_json, write_dataset
from tests.forking import COMMANDS, run_module

NORM = "rmsnorm_h128"
# on a GPU the first one compiles kernels
_SECONDS = 600.0
_MODULE = "generator.cli.trace_dataset"
# where packages lie in a folder of their own, the command needs that as well
_PATHS = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
_VARIABLES = {"PYTHONPATH": _PATHS, "PLANTED_SECRET": "hidden"}


def start(*arguments: str | Path, command: str = "audit") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", _MODULE, command, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **_VARIABLES},
    )


def interrupt_after_first(*arguments: str | Path) -> None:
    """Interrupt an audit once it has said how the first of two definitions fared."""
    process = start(*arguments)
    assert process.stderr is not None
    assert process.stderr.readline().startswith(f"1/2 {NORM}: ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "Interrupted."


def audit(*arguments: str | Path, command: str = "audit") -> tuple[int, str, str]:
    """Return a run's exit status, stdout and stderr."""
    done = run_module(
        *(_MODULE, command, *arguments),
        # the process that judges imports torch itself
        imports=("torch", *COMMANDS) if command == "evaluate" else COMMANDS,
        env=_VARIABLES,
        timeout=_SECONDS,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def dataset(root: Path, *values: dict[str, Any]) -> Path:
    return write_dataset(root, values or (resized_json(NORM, NORM),))


def with_text(*changes: tuple[str, str], name: str = NORM) -> dict[str, Any]:
    """Return the norm with another reference."""
    value = resized_json(NORM, name)
    for old, new in changes:
        assert old in value["reference"]
        value["reference"] = value["reference"].replace(old, new)
    return value


def of_definition(out: str, name: str = NORM) -> dict[str, Any]:
    (found,) = [d for d in json.loads(out)["definitions"] if d["definition"] == name]
    return found
