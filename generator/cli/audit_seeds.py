"""`trace-dataset audit --seeds`: ask the tests about references that nothing changed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Numbered,
    say,
    write,
)
from generator.wording import plural, quote

if TYPE_CHECKING:
    from generator.audit.seeds_result import SeedsResult
    from generator.discover import DatasetFile
    from generator.inquiry.pool import Options

_MOST = 10**6
_FORM = re.compile(r"(?:([0-9]{1,7})-)?([0-9]{1,7})")


def read_seeds(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Return the first and the last seed: of `50` 1 and 50, of `17-20` these two."""
    if value is None:
        return None
    form = _FORM.fullmatch(value)
    if form is not None:
        first, last = int(form[1] or 1), int(form[2])
        if 1 <= first <= last <= _MOST:
            return first, last
    raise click.UsageError(
        f"--seeds {quote(value)}: choose a number from 1 to {_MOST}, or a range of "
        "such: 17-20."
    )


def audit_seeds(
    files: Sequence[DatasetFile],
    options: Options,
    seeds: tuple[int, int],
    whole: bool,
    as_json: bool,
) -> int:
    """Ask the tests about definitions with these seeds; return the exit status."""
    from generator.audit import seeds_table
    from generator.audit.false_alarms import FalseAlarms
    from generator.inquiry.pool import ask

    inquiry = FalseAlarms(options.dataset, *seeds, whole, options.jobs)
    told = Numbered(len(files))

    def tell(result: SeedsResult, was_kept: bool) -> None:
        told.say(result.definition, _said(result, was_kept))

    results = ask(files, inquiry, options, tell)
    if as_json:
        write(json.dumps(_plain(results), indent=2) + "\n")
    else:
        write(seeds_table.table(results))
        if len({result.op_type for result in results}) > 1:
            write(seeds_table.by_op_type(results))
        for remark in seeds_table.remarks(results):
            write(f"{remark}\n")
    tests = sum(result.asked for result in results)
    wrong = sum(not result.is_fine for result in results)
    say(
        f"{plural(len(results), 'definition')}, seeds {seeds[0]} to {seeds[1]}: "
        f"{plural(tests, 'test')} of references as they are, "
        f"{plural(sum(len(r.alarms) for r in results), 'alarm')} in "
        f"{plural(wrong, 'definition')}"
    )
    return EXIT_PROBLEMS if wrong else EXIT_FINE


def _said(result: SeedsResult, was_kept: bool) -> str:
    """Return what became of a definition."""
    if result.error:
        return f"not asked to the end: {result.error}"
    how = "from the last audit" if was_kept else f"{result.seconds:.1f} s"
    alarms = plural(len(result.alarms), "alarm")
    return f"{plural(result.asked, 'test')}, {alarms}, {how}"


def _plain(results: Sequence[SeedsResult]) -> dict[str, Any]:
    return {
        "totals": {
            "definitions": len(results),
            "tests": sum(result.asked for result in results),
            "alarms": sum(len(result.alarms) for result in results),
            "statistical": sum(result.statistical for result in results),
            "fine": sum(result.is_fine for result in results),
        },
        "definitions": [
            {**result.as_dict(), "is_fine": result.is_fine} for result in results
        ],
    }
