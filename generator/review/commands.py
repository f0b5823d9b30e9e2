"""Commands that a review asks to be run on a machine with a GPU."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from generator.dataset.paths import rendered_folder
from generator.problems.messages import one_line
from generator.review.checklist import ChecklistAnswer
from generator.review.points import AT_WORKLOADS

_NAMED = 20
"""Definitions that are named; of more, all are asked for."""


def commands(
    answers: Sequence[ChecklistAnswer], head: Collection[str]
) -> Iterator[str]:
    """Yield what would answer these points; `head` are the paths that there are."""
    if not answers:
        return
    named = (name for a in answers for name in (a.definition, *a.others) if name)
    names = list(dict.fromkeys(named))
    folder = rendered_folder(head)
    chosen, tested = "--all", folder
    if len(names) <= _NAMED:
        quoted = [shlex.quote(one_line(name)) for name in names]
        # nearly all paths are other files'
        paths = (path for path in head if path.startswith("definitions/"))
        op_types = {
            path.parent.name for path in map(PurePosixPath, paths) if path.stem in names
        }
        files = [f"{folder}/test_{op_type}.py" for op_type in sorted(op_types)]
        chosen = " ".join(f"--definition-name {name}" for name in quoted)
        tested = " ".join(shlex.quote(one_line(file)) for file in files) or tested
        tested += "".join(f" --definition {name}" for name in quoted)
    elsewhere = "" if folder == rendered_folder() else f" --output {folder}"
    yield f"gen-tests {chosen}{elsewhere}"
    if any(answer.id == AT_WORKLOADS for answer in answers):
        tested += " --workloads all"
    yield f"pytest {tested} --device cuda --results results.jsonl"
    yield "trace-dataset verify --record results.jsonl"
    tests = elsewhere.replace("--output", "--tests")
    yield f"trace-dataset record {chosen}{tests}"
