"""The command `trace-dataset traces`: what the traces of a dataset say."""

from __future__ import annotations

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import progress, show


@options.command()
def traces(
    choice: Choice = options.part,
    form: str = options.form(),
) -> int:
    """List the best solutions, and traces that can't be believed.

    Traces are compared on one kind of hardware at a time. A stale trace is of a
    definition, solution or workload that the dataset does not have, or of a workload
    whose axes changed. A contradicted one says otherwise than another trace of the same
    run, or than its own figures. Neither counts. Exit status: 0 fine, 1 there are such
    traces or lines that are no traces, 2 wrong usage or no traces.
    """
    from generator.evaluation.trace_report import traces_report
    from generator.evaluation.trace_statistics import statistics_of

    _, files = choice.find()
    keys = [(file.op_type, file.name) for file in files]
    with progress("Reading traces"):
        found = statistics_of(choice.dataset, keys, is_part=choice.is_made)
    return show(traces_report(found), form)
