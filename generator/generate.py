"""The main job: loaded definitions become files in a folder."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.definition import Definition
from generator.files import Outcome, Status, write_files
from generator.load import Loaded, load_definitions
from generator.plan import Options, TestPlan, plan_tests
from generator.problems import Problem
from generator.render import render_shared_files, render_test_file
from generator.rules.table import finding
from generator.wording import plural

_HEADER_LINE = re.compile(r"^[0-9a-f]{64}  (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Generated:
    """Hold what became of each file, how many definitions they test, and Problems."""

    outcomes: tuple[Outcome, ...]
    definitions: int
    problems: tuple[Problem, ...]
    plans: tuple[TestPlan, ...] = ()

    @property
    def shown(self) -> tuple[Outcome, ...]:
        """Return the outcomes worth a line: all that changed or were refused."""
        return tuple(o for o in self.outcomes if o.status is not Status.UNCHANGED)

    @property
    def incomplete(self) -> bool:
        """Return whether a file is out of date, or was left because it was edited."""
        return any(o.status in (Status.EDITED, Status.DRIFTED) for o in self.outcomes)

    @property
    def summary(self) -> str:
        """Return one line on the whole."""
        files = [o for o in self.outcomes if Path(o.path).name.startswith("test_")]
        counts = [
            f"{sum(o.status is status for o in self.outcomes)} {status.value}"
            for status in Status
            if any(o.status is status for o in self.outcomes)
        ]
        return (
            f"{plural(self.definitions, 'definition')} in "
            f"{plural(len(files), 'test file')}; "
            f"files: {', '.join(counts) or 'none'}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "definitions": self.definitions,
            "files": [
                {"path": o.path, "status": o.status.value} for o in self.outcomes
            ],
            "problems": [problem.as_dict() for problem in self.problems],
        }


def generate(
    dataset: Path,
    loaded: Loaded,
    output: Path,
    options: Options,
    *,
    by_name: bool = False,
    everything: bool = False,
    force: bool = False,
    check: bool = False,
) -> Generated:
    """Render the loaded definitions into `output`.

    `by_name`: single definitions were chosen; a file keeps the others that it holds.
    `everything`: all definitions are loaded, so files of op_types that are gone go.
    Definitions with errors are left out. Raises OSError where writing fails.
    """
    by_op_type: dict[str, list[Definition]] = defaultdict(list)
    for definition in loaded.definitions:
        by_op_type[definition.op_type].append(definition)
    problems = list(loaded.problems)
    files = {}
    plans = []
    count = 0
    for op_type, definitions in sorted(by_op_type.items()):
        name = f"test_{op_type}.py"
        if by_name:
            others, of_others = _already_there(dataset, output / name, definitions)
            definitions += others
            problems += of_others
        plan = plan_tests(op_type, definitions, options)
        plans.append(plan)
        problems += plan.problems
        count += len(plan.classes)
        files[name] = render_test_file(plan)
    if files:
        files |= render_shared_files()
    # a broken file says nothing about whether its op_type still has definitions
    complete = everything and bool(files) and not loaded.unfit and not _unread(loaded)
    outcomes = write_files(output, files, force=force, check=check, complete=complete)
    problems += [_edited(o) for o in outcomes if o.status is Status.EDITED]
    return Generated(tuple(outcomes), count, tuple(problems), tuple(plans))


def _unread(loaded: Loaded) -> bool:
    return len(loaded.files) > len(loaded.definitions)


def _already_there(
    dataset: Path, file: Path, definitions: list[Definition]
) -> tuple[list[Definition], list[Problem]]:
    """Return the definitions that a rendered file holds beside those given.

    One that is broken by now leaves the file; its Problems, returned too, say why.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return [], []
    held = set(_HEADER_LINE.findall(text)) - {d.name for d in definitions}
    if not held:
        return [], []
    loaded = load_definitions(dataset, op_types=[definitions[0].op_type])
    files = {file.path for file in loaded.files if file.name in held}
    return (
        [d for d in loaded.definitions if d.name in held],
        [problem for problem in loaded.problems if problem.file in files],
    )


def _edited(outcome: Outcome) -> Problem:
    message = "The file is not what gen-tests wrote last: somebody edited it."
    return finding("rendered-file-edited", outcome.path, message)
