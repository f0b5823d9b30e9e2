"""The command `trace-dataset certify`: production kernels under engines' conditions."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from pathlib import Path

from generator.api import require_device
from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.evaluate import chosen_names
from generator.cli.output import (
    check_writable,
    progress,
    require_modules,
    say,
    show,
    status_of,
    write_files,
)
from generator.evaluation.conditions.condition import SANITIZERS
from generator.problems.messages import plural
from kernel_judge.provider import providers as known_providers

_NEEDED = ("torch", "numpy")


@options.command()
def certify(
    choice: Choice = options.part,
    providers: tuple[str, ...] = options.several(
        "Take the kernels of flashinfer, sglang or pytorch; several with commas. All "
        "if not given.",
        "PROVIDER,...",
        "--provider",
    ),
    conditions: tuple[str, ...] = options.several(
        "Call as engines do: graph, stream, strided, compile, batch, soak, or all; "
        "several with commas. All if not given, none with --sanitize.",
        "CONDITION,...",
        "--as",
    ),
    sanitize: tuple[str, ...] = options.sanitize,
    soak: float = options.value(
        "How long the condition soak lasts.",
        options.Seconds(1.0, 86_400.0),
        metavar="SECONDS",
        default=10.0,
    ),
    device: str = options.value(
        "Where the kernels run.", ["cpu", "cuda"], default="cuda"
    ),
    timeout: float = options.value(
        "For one call.",
        options.Seconds(1.0, 3600.0),
        metavar="SECONDS",
        default=600.0,
    ),
    output: Path | None = options.output(
        "Write the results there, a JSON line a definition.", "FILE"
    ),
    recorded: tuple[Path, ...] = options.path(
        "Keep the results of this file in verification/conditions.json of the dataset, "
        "and ask nothing; may be repeated.",
        "--record",
        multiple=True,
        metavar="RESULTS",
    ),
    jobs: int = options.jobs(),
    executor: str = options.executor,
    form: str = options.form(),
) -> int:
    """Call ground truth kernels, and references unconfined, as engines do.

    Each kernel runs in a process of its own, with the calls, values and verdicts of
    trace-dataset evaluate --as. Without a choice, all definitions. Exit status: 0 all
    kernels that run here were asked, whatever came of it, 1 one could not be asked, 2
    wrong usage.
    """
    dataset = choice.dataset
    _, files = choice.find()
    from generator.evaluation.certification.report import certificate
    from generator.evaluation.certification.result import (
        Certified,
        certify_task,
        current,
        read_lines,
        record,
    )

    if recorded:
        for path in recorded:
            names = record(dataset, read_lines(path))
            say(f"{path}: {plural(len(names), 'definition')} recorded")
        return show(certificate(current(dataset)), form)
    require_modules("Certifying needs", _NEEDED)
    from generator.execution.definition_task import OutcomeCache, run_task
    from generator.execution.gpus import visible_gpus

    require_device(device)
    if output is not None:
        check_writable(output.parent)
    gpus: tuple[str, ...] = ()
    if device == "cuda" and executor == "local":
        # kernels share it: what they are asked takes little of it
        gpus = jobs * tuple(gpu.name for gpu in visible_gpus().found)
    under = conditions or (() if sanitize else ("all",))
    task = certify_task(
        dataset,
        {
            "device": device,
            "providers": chosen_names(
                "--provider", providers or ("all",), tuple(known_providers())
            ),
            "conditions": chosen_names("--as", under),
            "sanitizers": chosen_names("--sanitize", sanitize, SANITIZERS),
            "soak": soak,
            "timeout": timeout,
            "secret": secrets.randbits(62),
            "gpus": list(gpus),
        },
    )
    runs = options.make_executor(executor, jobs, gpus=1.0 if device == "cuda" else 0.0)

    lines: list[str] = []

    asked: list[Certified] = []
    with progress(f"Asking the kernels of {plural(len(files), 'definition')}"):
        for _, one, _ in run_task(files, task, runs, OutcomeCache(None)):
            asked.append(one)
            say(f"{one.definition}: {one.error or 'asked'}")
            lines.append(f"{json.dumps(asdict(one))}\n")
            if output is not None:
                # as they come: an interrupted run has those that were asked
                write_files(output.parent, {output.name: "".join(lines).encode()})
    show(certificate(asked), form)
    return status_of(not any(one.error for one in asked))
