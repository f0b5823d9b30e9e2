"""The command `trace-dataset record`: record ground truths on a machine with a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import (
    check_choice,
    choice_options,
    chosen_files,
    dataset_option,
)
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
    from generator.recording import Result

_PROVIDERS = ("flashinfer", "sglang", "pytorch")
_SIZES = ("small", "medium", "large")
_NEEDED = ("torch", "numpy", "safetensors", "pytest")


@click.command()
@choice_options(
    "Record the definitions of this op_type",
    "Record this definition",
    "Record all definitions",
)
@click.option(
    "--provider",
    "providers",
    multiple=True,
    type=click.Choice(_PROVIDERS),
    help="Record this provider's kernels; may be repeated. The first usable one of "
    "flashinfer, sglang and pytorch if not given.",
)
@dataset_option
@click.option(
    "--tests",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the rendered tests; tests/references in the dataset if not given.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the recordings; blob/ground_truth in the dataset if not given.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=click.Choice(_SIZES),
    default=("small",),
    show_default=True,
    help="Record cases of this size; may be repeated.",
)
@click.option(
    "--device",
    default="cuda",
    show_default=True,
    help="cuda, cuda:N, or cpu for the few kernels that run on it.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Processes side by side on the device.",
)
@click.option(
    "--logs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to keep what the kernels and their failures print.",
)
@click.option("--force", is_flag=True, help="Record anew what is current.")
def record(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    providers: tuple[str, ...],
    dataset: Path,
    tests: Path | None,
    out: Path | None,
    sizes: tuple[str, ...],
    device: str,
    jobs: int,
    logs: Path | None,
    force: bool,
) -> int:
    """Record what production kernels return, for replay on any machine.

    Choose definitions by --op-type, --definition-name or --all. What is current is left
    alone, so a second run goes on where a first one stopped. Data goes to stdout, talk
    to stderr. Exit status: 0 fine, 1 some definition has no recording or disagrees
    with the oracle, 2 wrong usage or no device.
    """
    from generator.discover import RECORDINGS
    from generator.recording import Options
    from generator.recording import record as record_definitions

    check_choice("record", op_types, names, everything)
    _, files = chosen_files(dataset, op_types, names)
    _check_device(device)
    results = record_definitions(
        files,
        Options(
            dataset,
            tests if tests is not None else dataset / "tests" / "references",
            out if out is not None else dataset / RECORDINGS,
            "cuda:0" if device == "cuda" else device,
            providers,
            sizes,
            force,
            jobs,
            logs,
        ),
        _tell,
    )
    counts = dict.fromkeys(("recorded", "current", "unusable", "failed"), 0)
    for result in results:
        counts[result.status] += 1
    told = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    size = sum(result.bytes for result in results)
    say(f"{plural(len(results), 'definition')}: {told}; {size / 2**20:.1f} MiB written")
    return EXIT_FINE if all(r.is_fine for r in results) else EXIT_PROBLEMS


def _check_device(device: str) -> None:
    from generator.ground_truth.machine import this_machine

    require_modules("Recording needs", _NEEDED)
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise Failure(f"--device {device!r}: choose cpu, cuda or cuda:N.")
    if kind == "cuda" and this_machine().capability is None:
        raise Failure(
            "No CUDA device here: recordings are made on a machine with a GPU. "
            "--device cpu records the few kernels that run on a CPU."
        )


def _tell(result: Result) -> None:
    size = f"  {result.bytes / 1024:.0f} KiB" if result.bytes else ""
    labels = f"  {', '.join(result.labels)}" if result.labels else ""
    write(f"{result.status:<8}  {result.definition}{size}{labels}\n")
    for remark in dict.fromkeys(result.remarks):
        write(f"    {one_line(remark, 400)}\n")
