"""Check units in order, in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from generator.validation.definition_check import (
    CheckedDefinition,
    DefinitionFiles,
    check_unit,
)

_CHUNK = 32
"""Units of one task: passing a task takes about as long as checking a small unit."""

_FEW = 256
"""Fewer units are checked sooner than processes are started."""

_TIMEOUT = 600.0
"""Seconds for a task."""

Checked = Iterator[tuple[DefinitionFiles, CheckedDefinition]]
"""Units in order, each with its outcome."""


def outcomes(
    root: Path,
    units: Sequence[DefinitionFiles],
    config: Mapping[str, Any] | None,
    jobs: int,
) -> Checked:
    """Yield each unit with its outcome, in order; memory does not grow with them."""
    if jobs < 2 or len(units) < _FEW or not hasattr(os, "fork"):
        return ((unit, check_unit(root, unit, config)) for unit in units)
    return _in_processes(root, units, config, jobs)


def _in_processes(
    root: Path,
    units: Sequence[DefinitionFiles],
    config: Mapping[str, Any] | None,
    jobs: int,
) -> Checked:
    # imported here: most datasets are small, and these take 20 ms
    import base64
    import pickle

    from generator.execution.forks import Forks

    # small datasets in smaller tasks, so that every process has some
    chunks = _chunks(units, max(1, min(_CHUNK, len(units) // (4 * jobs))))

    def work(place: int, link: object) -> str:
        checked = [check_unit(root, unit, config) for unit in chunks[place]]
        return base64.b64encode(pickle.dumps(checked)).decode()

    forks = Forks(jobs, _TIMEOUT, in_order=True, collects=False)
    for place, outcome in forks.run(work, range(len(chunks))):
        if outcome.value is None:
            # killed, most likely for memory that others use
            what = "a process ended before its work was done; try --jobs 1"
            raise OSError(None, f"{what}: {outcome.why}")
        checked = pickle.loads(base64.b64decode(outcome.value))
        yield from zip(chunks[place], checked, strict=True)


def _chunks(
    units: Sequence[DefinitionFiles], size: int
) -> list[Sequence[DefinitionFiles]]:
    """Return the units in chunks of one op_type each.

    A process learns what an op_type serves, and reads the texts that its definitions
    share, once; of most op_types only one process does.
    """
    groups = [list(group) for _, group in groupby(units, lambda u: u.file.op_type)]
    return [g[at : at + size] for g in groups for at in range(0, len(g), size)]
