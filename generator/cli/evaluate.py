"""The command `trace-dataset evaluate`: run solutions confined, compare and time them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import (
    EXIT_USAGE,
    check_writable,
    progress,
    require_modules,
    say,
    show,
    write_files,
)
from generator.evaluation.clock.offsets import MOST_STARTS
from generator.evaluation.conditions.condition import NAMES, OF_CUDA, SANITIZERS
from generator.problems.messages import one_line, plural

_NEEDED = ("torch", "numpy", "pytest", "safetensors")
# the module of the tasks, which imports torch
_TASKS = "generator.evaluation.task"
# tasks beside each other on one; while one of them times, the others build or wait
_ON_A_GPU = 4


def chosen_names(
    option: str, values: tuple[str, ...], names: tuple[str, ...] = NAMES
) -> list[str]:
    """Return which of `names` an option has, in their order; `all` is all of them."""
    words = [word.strip() for value in values for word in value.split(",")]
    for word in words:
        if word not in (*names, "all"):
            raise click.BadParameter(
                f"{one_line(word, 40)!r} is not one of {', '.join(names)}, all.",
                param_hint=option,
            )
    return [name for name in names if name in words or "all" in words]


@options.command()
def evaluate(
    solutions: tuple[str, ...] = options.argument(nargs=-1, metavar="[SOLUTION]..."),
    authors: tuple[str, ...] = options.several(
        "Choose the solutions of this author; may be repeated.", "AUTHOR", "--author"
    ),
    choice: Choice = options.choice,
    device: str = options.value(
        "Where the solutions run.", ["cpu", "cuda"], default="cpu"
    ),
    workloads: str = options.value(
        "What is asked: the dataset's workloads, the definition's own cases, or both.",
        ["dataset", "cases", "both"],
        default="both",
    ),
    fuzz: int = options.value(
        "Ask N random cases inside the definition's constraints as well.",
        click.IntRange(0, 10_000),
        metavar="N",
        default=0,
    ),
    seed: int | None = options.value(
        "Seed all values and the order; secret and of this run alone if not given.",
        click.IntRange(0, 2**62),
        metavar="N",
    ),
    case: str = options.value(
        "Ask one case alone, by the name that a refusal says; with --seed the same values.",
        "CASE",
        default="",
    ),
    keep_failures: Path | None = options.keep_failures,
    secret: bool = options.flag(
        "For contests: of a refused solution print the verdict alone, no value and no length."
    ),
    conditions: tuple[str, ...] = options.several(
        "Call as engines do: graph, stream, strided, compile, batch, soak, or all; "
        "several with commas. Asked of what passed.",
        "CONDITION,...",
        "--as",
    ),
    required: tuple[str, ...] = options.several(
        "The same, and refuse a solution under which one of these is broken or "
        "unsupported.",
        "CONDITION,...",
        "--require",
    ),
    soak: float = options.value(
        "How long the condition soak lasts.",
        options.Seconds(1.0, 86_400.0),
        metavar="SECONDS",
        default=10.0,
    ),
    sanitize: tuple[str, ...] = options.sanitize,
    memory: bool = options.flag(
        "Measure the greatest memory of a call at the largest case, beside the "
        "reference's and production kernels'."
    ),
    timing: bool = options.flag("On CUDA: measure the workloads of what passed."),
    starts: int = options.value(
        "With --timing: measure in N starts of all processes, whose error is smaller. "
        "Another start takes 5 to 15 s.",
        click.IntRange(1, MOST_STARTS),
        metavar="N",
        default=1,
    ),
    timeout: float = options.value(
        "For one call.",
        options.Seconds(0.1, 3600.0),
        metavar="SECONDS",
        default=60.0,
    ),
    budget: float | None = options.value(
        "For all calls of a solution; by default --timeout twice, and a twentieth of it "
        "for each call.",
        options.Seconds(0.1, 604_800.0),
        metavar="SECONDS",
    ),
    memory_limit: int | None = options.value(
        "Memory that each process of a solution may have, and that torch may allocate "
        "for it on a GPU; 8192 on a CPU if not given.",
        click.IntRange(1024, 2**30),
        metavar="MIB",
    ),
    output: Path | None = options.path(
        "Write traces and results.json there, in a dataset's layout."
    ),
    dialect: str = options.value(
        "Whose format the files have; flashinfer-bench has no status REWARD_HACK.",
        ["flashinfer-bench", "sol-execbench"],
        default="flashinfer-bench",
    ),
    jobs: int = options.jobs(),
    executor: str = options.executor,
    form: str = options.form(),
) -> int:
    """Run solutions in a sandbox and say of each whether it is right, and why not.

    Choose files or names of solutions, or --author, --op-type, --definition-name or
    --all. Each solution has a sandbox of its own, without the reference and without an
    expected value; a reference that judges runs in another. The result goes to stdout,
    messages to stderr. Exit status: 0 every solution passed or needs what this machine
    lacks; 1 a solution is refused; 2 wrong usage, unreadable input, or a solution that
    the judge could not judge.
    """
    if not (solutions or authors or choice.is_made):
        raise click.UsageError(
            "Say what to evaluate: a solution, --author, --definition-name, --op-type, "
            "--all."
        )
    if solutions and (authors or choice.is_made):
        raise click.UsageError("Name solutions, or choose them by options: not both.")
    if timing and device != "cuda":
        raise click.UsageError("--timing goes with --device cuda.")
    if starts > 1 and not timing:
        raise click.UsageError("--starts goes with --timing.")
    if secret and keep_failures:
        raise click.UsageError("--keep-failures shows what --secret hides: not both.")
    if keep_failures and executor == "ray":
        raise click.UsageError("--keep-failures is for a run on this machine.")
    must = chosen_names("--require", required)
    under = [*dict.fromkeys((*chosen_names("--as", conditions), *must))]
    if lacking := [name for name in must if name in OF_CUDA and device != "cuda"]:
        raise click.UsageError(f"--require {lacking[0]} goes with --device cuda.")
    choice.find()
    require_modules("An evaluation needs", _NEEDED)
    from generator.execution.gpus import visible_gpus

    gpus: tuple[str, ...] = ()
    if device == "cuda" and executor == "local":
        gpus = _ON_A_GPU * tuple(gpu.name for gpu in visible_gpus().found)
        jobs = min(jobs, len(gpus) or 1)
    # before torch is imported here: so it is in both processes at a time
    share = 1.0 if device == "cuda" else 0.0
    runs = options.make_executor(executor, jobs, gpus=share, begins=_TASKS)
    from generator.execution.collecting import uncollected

    with uncollected():
        from generator import api
        from generator.evaluation.environment import environment, now
        from generator.evaluation.evaluate import EvaluationRequest
        from generator.evaluation.failures import without_details
        from generator.evaluation.report import evaluation_report
        from generator.evaluation.traces import after_earlier_traces, trace_files

    api.require_sandbox(device)
    dataset = choice.opened()
    chosen = api.read_solutions(dataset, solutions, authors)
    asks = EvaluationRequest(
        device, workloads, fuzz, timing, timeout, seed, gpus, budget=budget
    )
    if keep_failures is not None:
        check_writable(keep_failures)
    folder = str(keep_failures.absolute()) if keep_failures else ""
    asks = replace(asks, case=case, keep_failures=folder)
    asks = replace(asks, conditions=under, required=must, soak=soak)
    tools = chosen_names("--sanitize", sanitize, SANITIZERS)
    asks = replace(asks, sanitizers=tools, memory=memory, starts=starts)
    asks = replace(asks, memory_bytes=memory_limit and memory_limit << 20)
    if output is not None:
        check_writable(output)
    with progress(f"Evaluating {plural(len(chosen), 'solution')}"):
        by_place = {}
        for place, one in api.Evaluator(jobs, runs).verdicts(dataset, chosen, asks):
            by_place[place] = one
            why = "" if secret else one.reason
            say(f"{one_line(one.solution, 100)}: {one.verdict} {why}")
    verdicts = [by_place[place] for place in range(len(chosen))]
    if secret:
        verdicts = [without_details(verdict) for verdict in verdicts]
    if output is not None:
        keeps = dialect == "sol-execbench"
        files = trace_files(verdicts, environment(device), now(), keeps_hacks=keeps)
        write_files(output, after_earlier_traces(output, files))
    status = show(evaluation_report(verdicts), form)
    return status if all(verdict.is_judged for verdict in verdicts) else EXIT_USAGE
