"""Load the definition that a task names, in the worker's child process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.definition import Definition
from generator.dataset.paths import DatasetFile
from generator.execution.task import CannotRun
from generator.problems import Problem
from generator.rules.load import load_definitions, load_file


def task_definition(task: Mapping[str, Any]) -> Definition:
    """Return the definition of a task's file. Raises CannotRun if it can't be loaded."""
    file = DatasetFile(**task["file"])
    definition, problems = load_file(Path(task["root"]), file)
    if definition is None:
        raise _unreadable(problems)
    return definition


def task_definitions(
    task: Mapping[str, Any],
) -> tuple[Definition, Sequence[Definition]]:
    """Return the definition of a task's file, and all definitions of its op_type.

    Raises CannotRun if the definition can't be loaded.
    """
    file = DatasetFile(**task["file"])
    loaded = load_definitions(Path(task["root"]), op_types=[file.op_type])
    for definition in loaded.definitions:
        if definition.path == file.path:
            return definition, loaded.definitions
    raise _unreadable([p for p in loaded.problems if p.file == file.path])


def _unreadable(problems: Sequence[Problem]) -> CannotRun:
    return CannotRun(str(problems[0]) if problems else "it can't be read")
