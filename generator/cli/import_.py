"""The commands `trace-dataset import` and `export`: other dialects of datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import progress, say, status_of, write_json, write_lines
from generator.dataset.plugins import DIALECTS, plugins
from generator.problems import Failure
from generator.problems.messages import plural

_DIALECTS = ("flashinfer", "sol-execbench", "flashinfer-bench")


def _axes(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    sizes = {}
    for value in values:
        name, _, size = value.partition("=")
        axis = name.rpartition(":")[2]
        if not axis.isidentifier() or not size.isdecimal() or int(size) == 0:
            raise click.UsageError(f"--axis {value}: write [OP_TYPE:]NAME=SIZE.")
        sizes[name] = int(size)
    return sizes


class _Dialect(click.Choice[str]):
    """Our dialects, and those of other distributions, which are looked for if asked."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the dialect that a value names."""
        if value not in self.choices:
            self.choices = (*self.choices, *plugins(DIALECTS))
        return super().convert(value, param, ctx)


def _dialect(names: Sequence[str]) -> Any:
    return options.value(
        "Whose format the files have.", _Dialect(names), "--dialect", required=True
    )


@options.command("import")
def import_(
    source: Path | None = options.argument(
        type=click.Path(path_type=Path), required=False
    ),
    dialect: str = _dialect(_DIALECTS),
    from_installed: bool = options.flag(
        "Read the templates of the installed FlashInfer; its code is imported."
    ),
    op_types: tuple[str, ...] = options.op_type,
    axes: dict[str, int] = options.several(
        "The size of an axis of templates, of all or of one op_type; may be repeated. "
        "FlashInfer's own inputs give the sizes of the others.",
        "[OP_TYPE:]NAME=SIZE",
        "--axis",
        callback=_axes,
    ),
    output: Path = options.output(
        "Root of the dataset to write.", "DIR", required=True
    ),
    as_json: bool = options.as_json,
) -> int:
    """Read definitions of another dialect, and list every change.

    SOURCE is a folder of FlashInfer's dumps, of SOL-ExecBench's problems, or a dataset
    of flashinfer-bench. Its files are read as text: nothing of them is executed. The
    tensors that workloads name are copied. Exit status 1 where something can't become a
    definition; its reason is printed.
    """
    if from_installed != (source is None):
        raise click.UsageError("Give either SOURCE or --from-installed.")
    if from_installed and dialect != "flashinfer":
        raise click.UsageError("--from-installed goes with --dialect flashinfer.")
    options.only_with("--from-installed", "--op-type", "--axis")
    from generator.dialects.sources import Unreadable, read_installed, read_source
    from generator.dialects.write import write

    try:
        with progress("Reading definitions"):
            if source is None:
                imported = read_installed(op_types, axes)
            else:
                imported = read_source(dialect, source)
            rows = [written.as_dict() for written in write(imported, output)]
    except Unreadable as error:
        raise Failure(str(error)) from error
    return _print("imports", rows, _imported, as_json)


def _imported(row: Mapping[str, Any]) -> Iterator[str]:
    if row["reason"] is not None:
        yield f"refused {row['source']}: {row['reason']}"
        return
    yield f"imported {row['source']}: {row['op_type']}/{row['definition']}"
    for change in row["changes"]:
        yield f"    {change}"


@options.command()
def export(
    choice: Choice = options.choice,
    dialect: str = _dialect(_DIALECTS[1:]),
    output: Path = options.output("Folder to write to.", "DIR", required=True),
    as_json: bool = options.as_json,
) -> int:
    """Write definitions in another dialect, and list what is lost.

    Their workloads and the tensors of these are written too. Exit status 1 where the
    dialect can't hold a definition; its reason is printed.
    """
    choice.require("export")
    from generator.dialects.export import export_dataset

    choice.find()
    chosen = (choice.op_types, choice.names)
    with progress("Writing definitions"):
        rows = list(export_dataset(choice.dataset, dialect, output, *chosen))
    return _print("exports", rows, _exported, as_json)


def _exported(row: Mapping[str, Any]) -> Iterator[str]:
    if row["reason"] is not None:
        yield f"refused {row['definition']}: {row['reason']}"
    else:
        yield f"exported {row['definition']}"
    for line in row["lost"]:
        yield f"    lost: {line}"


def _print(name: str, rows: list[dict[str, Any]], lines: Any, as_json: bool) -> int:
    """Print what became of each definition; return the exit status."""
    refused = sum(row["reason"] is not None for row in rows)
    if as_json:
        write_json({name: rows})
    else:
        write_lines(line for row in rows for line in lines(row))
    say(f"{plural(len(rows) - refused, 'definition')}, {refused} refused")
    return status_of(not refused)
