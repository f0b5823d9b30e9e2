"""Measure the floors of one definition in the worker's child process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from generator.execution.child import Link
from generator.execution.limits import limit_memory
from generator.mutation.child_definitions import task_definition
from generator.mutation.tolerances.measure import measure
from generator.testing.memory import available_bytes


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Send the floors of a definition. Raises what its reference raises."""
    free = available_bytes(torch.device("cpu"))
    if free is not None:
        limit_memory(free)
    found = measure(
        task_definition(task),
        task["file"]["path"],
        Path(task["recordings"]),
        tolerance=task["tolerance"],
        sharing=task["jobs"],
    )
    link.send({"event": "floors", "result": found.as_dict()})
