"""A dataset of one norm whose only workload has 201 rows."""

from __future__ import annotations

import json
from pathlib import Path

from generator.execution.child import Link
from tests.builders import replaced, resized_json, write_dataset

NAME = "rmsnorm_h128"
FIRST = "x = hidden_states.float()\n"


def dataset_of_one_workload(folder: Path, text: str) -> Path:
    """Write the norm with `text` in place of its first line; return the root."""
    known = resized_json(NAME, NAME)
    reference = replaced(known["reference"], FIRST, text)
    root = write_dataset(folder, [{**known, "reference": reference}])
    random = {"type": "random"}
    inputs = {"hidden_states": random, "weight": random}
    body = {"uuid": "one", "axes": {"batch_size": 201}, "inputs": inputs}
    file = root / f"workloads/rmsnorm/{NAME}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"definition": NAME, "workload": body}) + "\n")
    return root


class Silent(Link):
    """Stand in for the connection to the process that waits for a task."""

    def __init__(self) -> None:
        pass

    def at(self, where: str = "", within: float | None = None) -> None:
        """Say nothing."""
