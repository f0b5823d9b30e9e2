"""Find the definitions that a command line chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.output import Failure

if TYPE_CHECKING:
    from generator.dataset.paths import DatasetFile, Discovered
    from generator.problems import Problem


def check_choice(
    verb: str, op_types: Sequence[str], names: Sequence[str], everything: bool
) -> None:
    """Raise click.UsageError if nothing is chosen, or --all beside another choice."""
    if not (op_types or names or everything):
        raise click.UsageError(
            f"Say what to {verb}: --op-type, --definition-name, --all."
        )
    if everything and (op_types or names):
        raise click.UsageError(
            "--all leaves nothing to choose: drop the other options."
        )


def require_definitions(problems: Iterable[Problem]) -> None:
    """Raise Failure if discovery found no dataset, or an empty one."""
    from generator.dataset.paths import NOTHING_THERE

    for problem in problems:
        if problem.rule in NOTHING_THERE:
            raise Failure(f"{problem.message} {problem.fix}")


def chosen_files(
    dataset: Path, op_types: Sequence[str], names: Sequence[str]
) -> tuple[Discovered, tuple[DatasetFile, ...]]:
    """Return the files of a dataset, and the chosen definition files.

    Raises Failure where there is no dataset, or nothing of the name, and BadOpType where
    an op_type of another distribution is broken: once, and not in every worker.
    """
    from generator.dataset.paths import UnknownName, discover_definitions, select
    from generator.ops.registry import op_specs
    from generator.problems import Severity

    found = discover_definitions(dataset)
    require_definitions(found.problems)
    op_specs()
    if not found.files:
        # there are files, but none that may be read
        worst = next(p for p in found.problems if p.severity is Severity.ERROR)
        raise Failure(f"{worst.file}: {worst.message} {worst.fix}")
    try:
        return found, select(found, op_types, names)
    except UnknownName as error:
        raise Failure(str(error)) from None
