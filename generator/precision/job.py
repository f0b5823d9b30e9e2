"""The floors of one definition: the work of a child process of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from generator.inquiry.asked import asked_definition
from generator.inquiry.child import Link
from generator.inquiry.limits import limit_memory
from generator.precision.measure import measure
from generator.support.memory import available_bytes


def answer(task: Mapping[str, Any], link: Link) -> None:
    """Tell the floors of a definition. Raises what its reference raises."""
    free = available_bytes(torch.device("cpu"))
    if free is not None:
        limit_memory(free)
    found = measure(
        asked_definition(task),
        task["file"]["path"],
        Path(task["recordings"]),
        tolerance=task["tolerance"],
        sharing=task["jobs"],
    )
    link.send({"event": "floors", "result": found.as_dict()})
