"""`trace-dataset audit` and its like as processes, and small datasets to audit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.builders import ROOT, resized_json, write_dataset

NORM = "rmsnorm_h128"
# where packages lie in a folder of their own, the command needs that as well
_PATHS = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
_COMMAND = [sys.executable, "-m", "generator.cli.trace_dataset"]


def start(*arguments: str | Path, command: str = "audit") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_COMMAND, command, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": _PATHS, "PLANTED_SECRET": "hidden"},
    )


def audit(*arguments: str | Path, command: str = "audit") -> tuple[int, str, str]:
    """Return a run's exit status, stdout and stderr."""
    process = start(*arguments, command=command)
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err
    return process.returncode, out, err


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
