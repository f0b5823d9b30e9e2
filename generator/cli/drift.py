"""The command `trace-dataset drift`: two recordings of the same inputs, compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    require_modules,
    say,
    write,
)
from generator.wording import one_line, plural

if TYPE_CHECKING:
    from generator.drift import Drift


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def drift(before: str, after: str, as_json: bool) -> int:
    """Show where a kernel answers otherwise in B than in A.

    A and B are recording files or folders of them. PLACE#TEXT takes the recordings
    whose label, such as flashinfer/fa2@0.6.18@NVIDIA-H200, has TEXT in it; so one file
    can be held against itself. Exit status: 0 no difference, 1 some, 2 wrong usage or
    unreadable input.
    """
    require_modules("Comparing recordings needs", ("torch", "safetensors"))
    if before == after:
        raise Failure("A and B are the same: choose labels by PLACE#TEXT.")
    from generator.drift import Unclear, compare, read_side
    from generator.support.recording import Damaged

    try:
        result = compare(read_side(before), read_side(after))
    except (Unclear, Damaged) as error:
        raise Failure(one_line(str(error), 400)) from None
    if not result.definitions:
        raise Failure("No definition is in both A and B, by a common source.")
    if as_json:
        rows = [drift.as_dict() for drift in result.drifts]
        value = {"drifts": rows, "outputs": result.outputs, "remarks": result.remarks}
        write(json.dumps(value, indent=2) + "\n")
    else:
        write("".join(_line(found) for found in result.drifts))
        for remark in result.remarks:
            say(remark)
        say(
            f"{len(result.drifts)} of {plural(result.outputs, 'output')} of "
            f"{plural(result.definitions, 'definition')} changed"
        )
    return EXIT_PROBLEMS if result.drifts else EXIT_FINE


def _line(found: Drift) -> str:
    def figure(value: float | None) -> str:
        return "?" if value is None else f"{value:.3g}"

    return (
        f"{found.definition}  {found.case}  {found.output}: "
        f"{found.changed} of {plural(found.elements, 'element')} changed, by "
        f"{found.max_abs:.3g} at most, NMSE {found.nmse:.3g}; against the oracle "
        f"{figure(found.oracle_before)} -> {figure(found.oracle_after)}  "
        f"({found.before} -> {found.after})\n"
    )
