"""The command `trace-dataset`: look after a dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator import __version__
from generator.cli.drift import drift
from generator.cli.output import EXIT_FINE, EXIT_PROBLEMS, Failure, progress, run, write
from generator.cli.record import record
from generator.cli.verify import verify
from generator.wording import one_line, plural

if TYPE_CHECKING:
    from generator.validate import Validation

_FATAL = frozenset(("dataset-missing", "dataset-empty"))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Look after a trace dataset.

    Data goes to stdout, talk to stderr. Exit status: 0 fine, 1 problems found,
    2 wrong usage or unreadable input.
    """


@cli.command()
@click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    default=Path("."),
    metavar="DIR",
    help="Root of the dataset; the current directory if not given.",
)
@click.option(
    "--op-type",
    "op_types",
    multiple=True,
    metavar="OP_TYPE",
    help="Check the definitions of this op_type; may be repeated.",
)
@click.option(
    "--definition-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Check this definition; may be repeated.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print what was found.",
)
@click.option("--strict", is_flag=True, help="Exit 1 on warnings as well.")
def validate(
    dataset: Path,
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    form: str,
    strict: bool,
) -> int:
    """Check definitions and their workloads without running any of their code."""
    from generator.problems import Severity
    from generator.select import UnknownName
    from generator.validate import validate as validate_dataset

    try:
        result = validate_dataset(dataset, op_types=op_types, names=names)
    except UnknownName as error:
        raise Failure(str(error)) from error
    for problem in result.problems:
        if problem.rule in _FATAL:
            raise Failure(f"{problem.message} {problem.fix}")
    write(_as_json(result) if form == "json" else "\n".join(_as_text(result)) + "\n")
    failed = result.count(Severity.ERROR) or (strict and result.count(Severity.WARNING))
    return EXIT_PROBLEMS if failed else EXIT_FINE


def _as_json(result: Validation) -> str:
    import json

    from generator.problems import Severity

    counts = {"definitions": result.definitions, "workloads": result.workloads}
    counts |= {f"{s.value}s": result.count(s) for s in Severity}
    problems = [problem.as_dict() for problem in result.problems]
    return json.dumps({"problems": problems, "counts": counts}, indent=2) + "\n"


def _as_text(result: Validation) -> Iterator[str]:
    """Yield lines: the problems under the file that has them, then a summary."""
    from generator.problems import Severity

    file = None
    for problem in result.problems:
        if problem.file != file:
            file = problem.file
            yield one_line(file)
        line = f"line {problem.line}: " if problem.line is not None else ""
        place = f"{one_line(problem.pointer)}: " if problem.pointer else ""
        what = f"{line}{place}{problem.message} [{problem.rule}]"
        yield f"  {problem.severity.value}: {what}"
        yield f"    fix: {problem.fix}"
    yield (
        f"{plural(result.definitions, 'definition')}, "
        f"{plural(result.workloads, 'workload')}: "
        f"{plural(result.count(Severity.ERROR), 'error')}, "
        f"{plural(result.count(Severity.WARNING), 'warning')}"
    )


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> int:
    """Say what this machine can test, and what to install for the rest.

    For each op_type: the provider that would be its ground truth here, or why none.
    Exit status 1 where no reference test can run.
    """
    import json

    from generator.doctor import can_test, diagnose, served
    from generator.ground_truth.machine import this_machine

    with progress("Trying imports"):
        checks = diagnose(this_machine())
        op_types = served(this_machine())
    if as_json:
        rows = [check.as_dict() for check in checks]
        table = [row.as_dict() for row in op_types]
        write(json.dumps({"checks": rows, "op_types": table}, indent=2) + "\n")
    else:
        for check in checks:
            write(f"{check.state.value:<7} {check.name}: {one_line(check.detail)}\n")
            if check.advice:
                write(f"        {check.advice}\n")
        width = max(len(row.op_type) for row in op_types)
        write("\nop_type, and its ground truth on this machine\n")
        for row in op_types:
            text = row.summary if row.provider else f"none ({row.summary})"
            write(f"{row.op_type:<{width}}  {one_line(text)}\n")
    return EXIT_FINE if can_test(checks) else EXIT_PROBLEMS


cli.add_command(verify)
cli.add_command(record)
cli.add_command(drift)


def main() -> None:
    """Run the command and exit with its status."""
    sys.exit(run(cli, "trace-dataset"))


if __name__ == "__main__":
    main()
