"""The command `trace-dataset traces`: what the traces of a dataset say."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import progress, require_modules, show


@options.command()
def traces(
    choice: Choice = options.part,
    against: str | None = options.value(
        "List what became slower since a revision of the dataset, or since the traces "
        "of a folder, a trace file or a results.json.",
        click.STRING,
        metavar="REVISION|PATH",
        default=None,
    ),
    picture: Path | None = options.path(
        "Write a page for each op_type there: times against batch size."
    ),
    form: str = options.form(),
) -> int:
    """List the best solutions, and traces that can't be believed.

    Traces are compared on one kind of hardware at a time. A stale trace is of a
    definition, solution or workload that the dataset does not have, or of a workload
    whose axes changed. A contradicted one says otherwise than another trace of the same
    run, or than its own figures. Neither counts. With --against, times are listed that
    are more than 5 % and both spreads above the earlier ones; verification/waivers.json
    says of which that is accepted. Exit status: 0 fine, 1 there are such traces, lines
    that are no traces or slower times, 2 wrong usage or no traces.
    """
    if against is not None:
        return _against(choice, against, form)
    from generator.evaluation.trace_report import traces_report
    from generator.evaluation.trace_statistics import statistics_of

    _, files = choice.find()
    keys = [(file.op_type, file.name) for file in files]
    with progress("Reading traces"):
        statistics = statistics_of(choice.dataset, keys, is_part=choice.is_made)
    if picture is not None:
        from generator.evaluation.pictures import write_pictures

        write_pictures(choice.dataset, files, picture)
    return show(traces_report(statistics), form)


def _against(choice: Choice, against: str, form: str) -> int:
    from generator.evaluation.against import compared, times_of, waivers_of
    from generator.evaluation.against_report import against_report

    _, files = choice.find()
    names = {file.name for file in files}
    if Path(against).exists():
        before = times_of(Path(against))
    else:
        require_modules("Reading a revision needs", ("pygit2",), "review")
        from generator.review.earlier_times import times_at

        before = times_at(choice.dataset, against)
    after = {k: t for k, t in times_of(choice.dataset).items() if k[0] in names}
    slower = compared(before, after, waivers_of(choice.dataset))
    common = len(before.keys() & after.keys())
    return show(against_report(slower, common, against), form)
