"""The command `trace-dataset record`: record ground truths on a machine with a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.choose import check_choice, chosen_files
from generator.cli.executors import make_executor
from generator.cli.options import (
    choice_options,
    dataset_option,
    executor_option,
    fresh_option,
    jobs_option,
    output_option,
)
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    format_option,
    require_modules,
    say,
    write,
)
from generator.cli.record_compare import compare_recordings
from generator.problems.messages import one_line, plural

if TYPE_CHECKING:
    from generator.ground_truth.recording import RecordingResult

_PROVIDERS = ("flashinfer", "sglang", "pytorch")
_SIZES = ("small", "medium", "large")
_NEEDED = ("torch", "numpy", "safetensors", "pytest")


@click.command()
@choice_options()
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
@output_option(
    "Folder of the recordings; blob/ground_truth in the dataset if not given.",
    "DIR",
    "--out",
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
@jobs_option(default=4)
@executor_option
@click.option(
    "--logs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the output of the kernels and their errors.",
)
@fresh_option("--force")
@click.option(
    "--compare",
    nargs=2,
    metavar="A B",
    help="Record nothing: print where the outputs of recording B differ from those of A. "
    "A and B are files or folders; PLACE#TEXT takes the recordings whose label contains "
    "TEXT.",
)
@format_option()
def record(
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    providers: tuple[str, ...],
    dataset: Path,
    tests: Path | None,
    output: Path | None,
    sizes: tuple[str, ...],
    device: str,
    jobs: int,
    executor: str,
    logs: Path | None,
    fresh: bool,
    compare: tuple[str, str] | None,
    form: str,
) -> int:
    """Record the outputs of production kernels, for replay on any machine.

    Choose definitions by --op-type, --definition-name or --all. Recordings that are up
    to date are skipped, so that a second run continues the first. The result goes to
    stdout, messages to stderr. Exit status: 0 fine, 1 a definition has no recording or
    disagrees with the oracle, or with --compare an output differs; 2 wrong usage or no
    device.
    """
    if compare is not None:
        if op_types or names or everything:
            raise click.UsageError("--compare takes two recordings: drop the choice.")
        return compare_recordings(*compare, form)
    if form != "text":
        raise click.UsageError("--format and --json go with --compare.")
    from generator.dataset.paths import RECORDINGS
    from generator.ground_truth.recording import RecordOptions
    from generator.ground_truth.recording import record as record_definitions

    check_choice("record", op_types, names, everything)
    _, files = chosen_files(dataset, op_types, names)
    _check_device(device, is_here=executor == "local")
    # on a cluster so many share a GPU
    gpus = 1.0 / jobs if device.startswith("cuda") else 0.0
    at_a_time = jobs if executor == "local" else None
    runs = make_executor(executor, at_a_time, imports="tests", gpus=gpus)
    results = record_definitions(
        files,
        RecordOptions(
            dataset,
            tests if tests is not None else dataset / "tests" / "references",
            output if output is not None else dataset / RECORDINGS,
            "cuda:0" if device == "cuda" else device,
            providers,
            sizes,
            fresh,
            logs,
        ),
        runs,
        _print_result,
    )
    counts = dict.fromkeys(("recorded", "current", "unusable", "failed"), 0)
    for result in results:
        counts[result.status] += 1
    totals = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    size = sum(result.bytes for result in results)
    say(
        f"{plural(len(results), 'definition')}: {totals}; "
        f"{size / 2**20:.1f} MiB written"
    )
    return EXIT_FINE if all(r.is_fine for r in results) else EXIT_PROBLEMS


def _check_device(device: str, *, is_here: bool) -> None:
    require_modules("Recording needs", _NEEDED)
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise Failure(f"--device {device!r}: choose cpu, cuda or cuda:N.")
    if kind == "cuda" and is_here and not _has_cuda():
        raise Failure(
            "No CUDA device here: recordings are made on a machine with a GPU. "
            "--device cpu records the few kernels that run on a CPU."
        )


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _print_result(result: RecordingResult) -> None:
    size = f"  {result.bytes / 1024:.0f} KiB" if result.bytes else ""
    labels = f"  {', '.join(result.labels)}" if result.labels else ""
    write(f"{result.status:<8}  {result.definition}{size}{labels}\n")
    for remark in dict.fromkeys(result.remarks):
        write(f"    {one_line(remark, 400)}\n")
