"""`trace-dataset record --compare`: two recordings of the same inputs."""

from __future__ import annotations

import click

from generator.cli.output import (
    Failure,
    format_option,
    require_modules,
    say,
    show,
)
from generator.problems.messages import one_line


@click.command(hidden=True)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@format_option()
def drift(before: str, after: str, form: str) -> int:
    """Do what `trace-dataset record --compare A B` does; the name of version 0.1."""
    return compare_recordings(before, after, form)


def compare_recordings(before: str, after: str, form: str) -> int:
    """Print the outputs that differ between two recordings; return the exit status.

    `before` and `after` are recording files or folders of them. PLACE#TEXT takes the
    recordings whose label, such as flashinfer/fa2@0.6.18@NVIDIA-H200, contains TEXT.
    """
    require_modules("Comparing recordings needs", ("torch", "safetensors"))
    if before == after:
        raise Failure("A and B are the same: choose labels by PLACE#TEXT.")
    from generator.ground_truth.recording_differences import (
        Unclear,
        compare,
        differences_report,
        read_side,
    )
    from generator.testing.recording_file import Damaged

    try:
        result = compare(read_side(before), read_side(after))
    except (Unclear, Damaged) as error:
        raise Failure(one_line(str(error), 400)) from None
    if not result.definitions:
        raise Failure("No definition is in both A and B, by a common source.")
    if form != "json":
        for remark in result.remarks:
            say(remark)
    return show(differences_report(result), form)
