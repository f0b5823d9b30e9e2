"""The command `trace-dataset record`: record ground truths on a machine with a GPU."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import require_modules, say, show, status_of, write_lines
from generator.problems import Failure
from generator.problems.messages import one_line, plural
from kernel_judge.provider import providers as known_providers

if TYPE_CHECKING:
    from generator.ground_truth.recording import RecordingResult

_SIZES = ("small", "medium", "large")
_STATUSES = ("recorded", "current", "unusable", "failed")
_NEEDED = ("torch", "numpy", "safetensors", "pytest")


@options.command()
def record(
    choice: Choice = options.choice,
    providers: tuple[str, ...] = options.several(
        "Take this provider's kernels; may be repeated. The first usable one of "
        "flashinfer, sglang and pytorch if not given.",
        tuple(known_providers()),
        "--provider",
    ),
    tests: Path | None = options.tests,
    output: Path | None = options.output(
        "Folder of the recordings; blob/ground_truth in the dataset if not given.",
        "DIR",
    ),
    sizes: tuple[str, ...] = options.several(
        "Record cases of this size; may be repeated.",
        _SIZES,
        "--size",
        default=("small",),
    ),
    device: str = options.value(
        "cuda, cuda:N, or cpu for the few kernels that run on it.",
        "DEVICE",
        default="cuda",
    ),
    jobs: int = options.jobs(4, "4"),
    executor: str = options.executor,
    logs: Path | None = options.path(
        "Folder for the output of the kernels and their errors."
    ),
    fresh: bool = options.fresh,
    compare: tuple[str, str] | None = options.value(
        "Record nothing: print where the outputs of recording B differ from those of A. "
        "A and B are files or folders; PLACE#TEXT takes the recordings whose label contains "
        "TEXT.",
        "A B",
        nargs=2,
    ),
    form: str = options.form(),
) -> int:
    """Record outputs of production kernels, for replay anywhere.

    Choose definitions by --op-type, --definition-name or --all. Recordings that are up
    to date are skipped, so that a second run continues the first. The result goes to
    stdout, messages to stderr. Exit status: 0 fine, 1 a definition has no recording or
    disagrees with the oracle, or with --compare an output differs; 2 wrong usage or no
    device.
    """
    if compare is not None:
        if choice.is_made:
            raise click.UsageError("--compare takes two recordings: drop the choice.")
        return _compare(*compare, form)
    options.only_with("--compare", "--format", "--json")
    from generator.dataset.paths import RECORDINGS
    from generator.ground_truth.recording import RecordOptions
    from generator.ground_truth.recording import record as record_definitions

    choice.require("record")
    _, files = choice.find()
    _check_device(device, is_here=executor == "local")
    # on a cluster, `jobs` tasks share each GPU
    gpus = 1.0 / jobs if device.startswith("cuda") else 0.0
    results = record_definitions(
        files,
        RecordOptions(
            choice.dataset,
            tests or choice.dataset / "tests" / "references",
            output or choice.dataset / RECORDINGS,
            "cuda:0" if device == "cuda" else device,
            providers,
            sizes,
            fresh,
            logs,
        ),
        options.make_executor(executor, jobs, imports="tests", gpus=gpus),
        _print_result,
    )
    counts = Counter(result.status for result in results)
    totals = ", ".join(f"{counts[s]} {s}" for s in _STATUSES if counts[s])
    size = sum(result.bytes for result in results) / 2**20
    say(f"{plural(len(results), 'definition')}: {totals}; {size:.1f} MiB written")
    return status_of(all(result.is_fine for result in results))


def _check_device(device: str, *, is_here: bool) -> None:
    require_modules("Recording needs", _NEEDED)
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise click.UsageError(f"--device {device!r}: choose cpu, cuda or cuda:N.")
    if kind == "cuda" and is_here:
        import torch

        if not torch.cuda.is_available():
            raise Failure(
                "No CUDA device here: recordings are made on a machine with a GPU. "
                "--device cpu records the few kernels that run on a CPU."
            )


def _print_result(result: RecordingResult) -> None:
    size = f"  {result.bytes / 1024:.0f} KiB" if result.bytes else ""
    labels = f"  {', '.join(result.labels)}" if result.labels else ""
    remarks = (f"    {remark}" for remark in dict.fromkeys(result.remarks))
    write_lines([f"{result.status:<8}  {result.definition}{size}{labels}", *remarks])


def _compare(before: str, after: str, form: str) -> int:
    """Print the outputs that differ between two recordings; return the exit status."""
    require_modules("Comparing recordings needs", ("torch", "safetensors"))
    if before == after:
        raise Failure("A and B are the same: choose labels by PLACE#TEXT.")
    from generator.ground_truth.recording_differences import (
        compare,
        differences_report,
        read_side,
    )
    from kernel_judge.recording.recording_file import Damaged

    try:
        result = compare(read_side(before), read_side(after))
    except Damaged as error:
        raise Failure(one_line(str(error), 400)) from None
    if not result.definitions:
        raise Failure("No definition is in both A and B, by a common source.")
    if form != "json":
        for remark in result.remarks:
            say(remark)
    return show(differences_report(result), form)
