"""The commands `trace-dataset import` and `export`: other dialects of datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import progress, say, status_of, write, write_json
from generator.problems.failure import Failure
from generator.problems.messages import one_line, plural

if TYPE_CHECKING:
    from generator.dialects.imported import Import

_DIALECTS = ("flashinfer", "sol-execbench", "flashinfer-bench")


def _axes(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    sizes = {}
    for value in values:
        name, _, size = value.partition("=")
        axis = name.rpartition(":")[2]
        if not axis.isidentifier() or not size.isdigit() or int(size) == 0:
            raise click.UsageError(f"--axis {value}: write [OP_TYPE:]NAME=SIZE.")
        sizes[name] = int(size)
    return sizes


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path), required=False)
@click.option(
    "--dialect",
    type=click.Choice(_DIALECTS),
    required=True,
    help="Whose format the files have.",
)
@click.option(
    "--from-installed",
    "from_installed",
    is_flag=True,
    help="Read the templates of the installed FlashInfer; its code is imported.",
)
@click.option(
    "--op-type",
    "op_types",
    multiple=True,
    metavar="OP_TYPE",
    help="Choose the definitions of this op_type; may be repeated.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="[OP_TYPE:]NAME=SIZE",
    callback=_axes,
    help="The size of an axis of templates, of all or of one op_type; may be "
    "repeated. Else it is what FlashInfer's own inputs have.",
)
@options.output("Root of the dataset to write.", "DIR", required=True)
@options.as_json
def import_(
    source: Path | None,
    dialect: str,
    from_installed: bool,
    op_types: tuple[str, ...],
    axes: dict[str, int],
    output: Path,
    as_json: bool,
) -> int:
    """Read definitions of another dialect, and list every change that it takes.

    SOURCE is a folder of FlashInfer's dumps, of SOL-ExecBench's problems, or a dataset
    of flashinfer-bench. Its files are read as text: nothing of them is executed. Exit
    status 1 where something can't become a definition; its reason is printed.
    """
    if from_installed != (source is None):
        raise click.UsageError("Give either SOURCE or --from-installed.")
    if from_installed and dialect != "flashinfer":
        raise click.UsageError("--from-installed goes with --dialect flashinfer.")
    if source is not None and (op_types or axes):
        raise click.UsageError("--op-type and --axis go with --from-installed.")
    from generator.dialects.sources import Unreadable, read_installed, read_source
    from generator.dialects.write import write as write_imports

    try:
        with progress("Reading definitions"):
            if source is None:
                given: Iterable[Import] = read_installed(op_types, axes)
            else:
                given = read_source(dialect, source)
            imports = list(write_imports(given, output))
    except Unreadable as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
    refused = [found for found in imports if found.value is None]
    if as_json:
        rows = [found.as_dict() for found in imports]
        write_json({"imports": rows})
    else:
        for found in imports:
            for line in _lines(found):
                write(f"{one_line(line)}\n")
    say(f"{plural(len(imports) - len(refused), 'definition')}, {len(refused)} refused")
    return status_of(not refused)


def _lines(found: Import) -> Iterator[str]:
    if found.value is None:
        yield f"refused {found.source}: {found.reason}"
        return
    yield f"imported {found.source}: {found.value['op_type']}/{found.value['name']}"
    for change in found.changes:
        yield f"    {change}"


@click.command()
@options.choice
@click.option(
    "--dialect",
    type=click.Choice(_DIALECTS[1:]),
    required=True,
    help="Whose format the files have.",
)
@options.output("Folder to write to.", "DIR", required=True)
@options.as_json
def export(
    choice: Choice,
    dialect: str,
    output: Path,
    as_json: bool,
) -> int:
    """Write definitions and workloads in another dialect, and list what is lost.

    Exit status 1 where the dialect can't hold a definition; its reason is printed.
    """
    choice.require("export")
    from generator.dialects.export import export_dataset

    try:
        rows = list(
            export_dataset(
                choice.dataset, dialect, output, choice.op_types, choice.names
            )
        )
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error
    if not rows:
        raise Failure(f"There are no definitions in {choice.dataset}.")
    if as_json:
        write_json({"exports": rows})
    else:
        for row in rows:
            state = "refused" if row["reason"] else "exported"
            tail = f": {row['reason']}" if row["reason"] else ""
            write(f"{state} {row['definition']}{one_line(tail)}\n")
            for line in row["lost"]:
                write(f"    lost: {one_line(line)}\n")
    refused = sum(row["reason"] is not None for row in rows)
    say(f"{plural(len(rows) - refused, 'definition')}, {refused} refused")
    return status_of(not refused)
