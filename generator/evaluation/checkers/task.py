"""The task of a worker: what checkers let pass of one definition's planted defects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.dataset.workload_files import workloads_of
from generator.evaluation.checkers import command
from generator.evaluation.checkers.checker import CHECKERS
from generator.evaluation.checkers.posed_rounds import Planted, judged
from generator.execution.child import Link
from generator.execution.outcome import CannotRun
from generator.rules.load import load_file

_WITHIN = 900.0


def check(task: Mapping[str, Any], link: Link) -> dict[str, Any]:
    """Return the defects, and for each checker those that pass. Raises CannotRun."""
    file, root = DatasetFile(**task["file"]), Path(task["root"])
    definition, problems = load_file(root, file)
    if definition is None:
        raise CannotRun(str(problems[0]) if problems else "it can't be read")
    torch.set_num_threads(1)
    planted = Planted.of(definition, workloads_of(root, file.op_type, file.name), root)
    checkers_rounds = {}
    for name in task["checkers"]:
        link.at(f"asking {name}", within=_WITHIN)
        known = CHECKERS.get(name)
        answer = judged(planted, known) if known else command.judged(planted, name)
        checkers_rounds[name] = asdict(answer)
    return {
        "defects": [defect.name for defect in planted.defects],
        "reduced": dict(planted.axes),
        "checkers": checkers_rounds,
    }
