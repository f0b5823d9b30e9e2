"""The definition that a task of a worker names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generator.definition import Definition
from generator.discover import DatasetFile
from generator.inquiry.inquiry import CannotAsk
from generator.load import load_file


def asked_definition(task: Mapping[str, Any]) -> Definition:
    """Return the definition of a task's file. Raises CannotAsk where there is none."""
    file = DatasetFile(**task["file"])
    definition, problems = load_file(Path(task["root"]), file)
    if definition is None:
        raise CannotAsk(str(problems[0]) if problems else "it can't be read")
    return definition
