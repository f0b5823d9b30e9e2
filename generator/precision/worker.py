"""The process that measures: torch is loaded once, each definition runs in a child.

`python -m generator.precision.worker` reads a line of JSON for each definition from
stdin and writes one, a Floors, to stdout. What a reference does to its process ends the
child, and is told as the error of its definition.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from generator.discover import DatasetFile
from generator.inquiry.limits import be_quiet, die_with_parent, limit_memory
from generator.load import load_file
from generator.precision.result import Floors
from generator.wording import one_line

SECONDS = 900.0


def main() -> int:
    """Measure the definitions that stdin names until it ends."""
    import torch

    from generator.precision import measure  # noqa: F401

    die_with_parent()
    torch.set_num_threads(1)
    answers = os.dup(1)
    for line in sys.stdin:
        task = json.loads(line)
        begun = time.monotonic()
        result = _in_child(task)
        result["seconds"] = round(time.monotonic() - begun, 2)
        _send(answers, result)
    return 0


def _in_child(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a child says of a definition, or how it ended without a word."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        # whatever happens, it never returns to the code of its parent
        try:
            os.close(read)
            os.setpgid(0, 0)
            die_with_parent()
            be_quiet()
            _send(write, _measured(task))
        finally:
            os._exit(0)
    os.close(write)
    text, until = b"", time.monotonic() + task.get("seconds", SECONDS)
    while True:
        left = until - time.monotonic()
        if not select.select([read], [], [], max(left, 0.0))[0]:
            how = f"takes more than {task.get('seconds', SECONDS):.0f} s"
            break
        more = os.read(read, 1 << 16)
        if not more:
            how = "ended its process"
            break
        text += more
        if text.endswith(b"\n"):
            break
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)
    os.close(read)
    os.waitpid(pid, 0)
    try:
        return Floors.from_dict(json.loads(text)).as_dict()
    except (ValueError, KeyError, TypeError):
        # nothing, or something else than this package wrote to the pipe
        return _failed(task, how)


def _measured(task: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    from generator.precision.measure import measure
    from generator.support.memory import available_bytes

    free = available_bytes(torch.device("cpu"))
    if free is not None:
        limit_memory(free)
    file = DatasetFile(**task["file"])
    definition, problems = load_file(Path(task["root"]), file)
    if definition is None:
        why = str(problems[0]) if problems else "it can't be read"
        return _failed(task, one_line(why))
    try:
        result = measure(
            definition,
            file.path,
            Path(task["recordings"]),
            tolerance=task["tolerance"],
            sharing=task["jobs"],
        )
    except BaseException as error:  # noqa: BLE001
        lines = str(error).strip().splitlines() or [""]
        return _failed(task, one_line(f"{type(error).__name__}: {lines[0]}", 200))
    return result.as_dict()


def _failed(task: Mapping[str, Any], why: str) -> dict[str, Any]:
    file = DatasetFile(**task["file"])
    return Floors(file.name, file.op_type, file.path, error=why).as_dict()


def _send(descriptor: int, value: Mapping[str, Any]) -> None:
    left = json.dumps(value).encode() + b"\n"
    while left:
        left = left[os.write(descriptor, left) :]


if __name__ == "__main__":
    sys.exit(main())
