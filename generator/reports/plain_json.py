"""The report as one JSON object: `problems` and `counts`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from generator.problems import Problem
from generator.reports import Style
from generator.validate import Counts


def report(problems: Iterable[Problem], counts: Counts, style: Style) -> Iterator[str]:
    """Yield the object piece by piece."""
    separator = "\n"
    yield '{\n  "problems": ['
    for problem in problems:
        yield f"{separator}    {json.dumps(problem.as_dict())}"
        separator = ",\n"
    found = {f"{s.value}s": count for s, count in counts.found.items()}
    looked_at = {"definitions": counts.definitions, "workloads": counts.workloads}
    end = "]" if separator == "\n" else "\n  ]"
    yield f'{end},\n  "counts": {json.dumps({**looked_at, **found})}\n}}\n'
