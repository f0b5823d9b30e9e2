"""The command `trace-dataset audit`: prove that the tests can fail."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import (
    numbered,
    progress,
    require_modules,
    say,
    show,
    write_files,
)
from generator.evaluation.checkers.names import NAMES
from generator.problems.messages import did_you_mean, plural, quote

if TYPE_CHECKING:
    from generator.execution.definition_task import DefinitionTask

_NEEDED = ("torch", "numpy", "pytest", "safetensors")
_MOST = 10**6
_WITHOUT_REVIEW = """op-type definition-name all jobs executor resume fresh tolerance
    seeds whole record survivors limits checker tolerances output"""
_FORM = re.compile(r"(?:([0-9]{1,7})-)?([0-9]{1,7})")


def _read_seeds(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Return the first and the last seed: of `50` 1 and 50, of `17-20` these two."""
    if value is None:
        return None
    form = _FORM.fullmatch(value)
    if form is not None:
        first, last = int(form[1] or 1), int(form[2])
        if 1 <= first <= last <= _MOST:
            return first, last
    raise click.UsageError(
        f"--seeds {quote(value)}: choose a number from 1 to {_MOST}, or a range such as "
        "17-20."
    )


def _known_checker(name: str) -> str:
    """Return a checker's name, or a command with the whole paths of its files."""
    if name in NAMES:
        return name
    try:
        words = shlex.split(name)
    except ValueError:
        words = []
    program = shutil.which(words[0]) if words else None
    if program is None:
        known = (
            did_you_mean(name, NAMES) or f" Choose {', '.join(NAMES)}, or a command."
        )
        raise click.UsageError(f"--checker {quote(name)}: no such program.{known}")
    files = (os.path.abspath(w) if os.path.isfile(w) else w for w in words[1:])
    return shlex.join([os.path.abspath(program), *files])


def _review(choice: Choice, form: str) -> int:
    """Review the pull requests of the audit; return the exit status."""
    others = [f"--{name}" for name in _WITHOUT_REVIEW.split()]
    options.drop("--review plants nothing and takes a part of the dataset", *others)
    from generator.review.audit.every import bad_pull_requests, good_pull_requests
    from generator.review.audit.run import audit_report, audit_reviews
    from generator.review.audit.subject import make_subject

    subject = make_subject(choice.dataset)
    with progress("Reviewing pull requests"):
        reviews = [*audit_reviews(bad_pull_requests(), good_pull_requests(), subject)]
    return show(audit_report(reviews, subject), form)


@options.command()
def audit(
    choice: Choice = options.choice,
    jobs: int = options.jobs(),
    executor: str = options.executor,
    state: Path | None = options.path(
        "Folder of earlier results, which are used again if nothing changed; below "
        "~/.cache/gen-tests if not given.",
        "--resume",
    ),
    fresh: bool = options.fresh,
    tolerance: float | None = options.tolerance,
    seeds: tuple[int, int] | None = options.value(
        "Plant no defects: run the tests on the unchanged references, with inputs and "
        "draws of seeds 1 to N, or of a range such as 17-20. None may fail.",
        "N",
        callback=_read_seeds,
    ),
    whole: bool = options.flag("With --seeds: keep all axes of large definitions."),
    recorded: bool = options.flag(
        "Save the results in verification/audit.json of the dataset, with --limits in "
        "limits.json, with --checker in checkers.json; those of other definitions stay.",
        "--record",
    ),
    survivors: bool = options.flag("List each survivor with its line."),
    limits: bool = options.flag(
        "Plant defects that are right up to a limit instead: the first 2, 4, 8 … rows, "
        "positions or pages, up to the largest of the definition's workloads."
    ),
    checkers: tuple[str, ...] = options.several(
        "Ask another checker which planted defects it lets pass: flashinfer-bench, "
        "sol-execbench, kernelbench, gpu-mode, or a command of yours; may be repeated.",
        "NAME",
        "--checker",
    ),
    tolerances: bool = options.flag(
        "Plant no defects: compare each tolerance with the errors of correct outputs, "
        "measured in float64."
    ),
    review: bool = options.flag(
        "Plant no defects: review pull requests on a part of the dataset, bad ones that "
        "must be refused and good ones that must be approved. Nothing is executed."
    ),
    output: Path | None = options.output(
        "With --tolerances: write a summary there, and the tables beside it as HTML.",
        "FILE.md",
    ),
    form: str = options.form(),
) -> int:
    """Plant defects in references, run them unconfined, and check that tests see them.

    One defect is planted at a time. Choose definitions by --op-type, --definition-name
    or --all. After an interrupt, the same command continues. The result goes to stdout,
    messages to stderr. Exit status: 0 every defect is caught, or with --seeds no test
    fails, or with --tolerances every tolerance fits; 1 a defect survives, a test fails,
    a tolerance does not fit or a definition can't be audited; 2 wrong usage or
    unreadable input. With --review, 1 where a pull request was not judged as it must
    be. With --checker, 1 only where a definition can't be asked about.
    """
    if review:
        return _review(choice, form)
    choice.require("audit")
    if tolerances:
        others: tuple[str, ...] = (
            "--seeds",
            "--record",
            "--survivors",
            "--limits",
            "--resume",
            "--fresh",
        )
        options.drop("--tolerances plants nothing and keeps nothing", *others)
    if checkers:
        others = ("--seeds", "--survivors", "--limits", "--tolerances", "--tolerance")
        others += ("--resume",)
        options.drop("--checker asks another checker", *others)
        checkers = tuple(map(_known_checker, dict.fromkeys(checkers)))
        if recorded and not {*checkers} <= {*NAMES}:
            raise click.UsageError("--record keeps what checkers of a name let pass.")
    if seeds is not None:
        others = ("--tolerance", "--survivors", "--limits", "--record")
        options.drop("--seeds plants nothing", *others)
    if recorded:
        options.drop("--record keeps what the tests catch as they are", "--tolerance")
    options.only_with("--seeds", "--whole")
    options.only_with("--tolerances", "--output")
    if tolerances and tolerance == 0.0:
        raise click.UsageError(f"--tolerance {tolerance}: choose a number above 0.")
    if output is not None and output.suffix != ".md":
        raise click.UsageError(f"--output {output}: choose a name that ends in .md.")
    from generator.dataset.paths import AUDIT, LIMITS_KEPT
    from generator.execution.cache_key import default_folder
    from generator.execution.definition_task import OutcomeCache, run_task
    from generator.mutation.recorder import Recorder
    from generator.mutation.report import mutants_report, seeds_report
    from generator.mutation.tasks import audit_task, seeds_task, tolerance_task
    from generator.mutation.tolerances.judge import problems
    from generator.mutation.tolerances.report import tolerances_pages, tolerances_report

    _, files = choice.find()
    require_modules("An audit needs", _NEEDED)
    dataset = choice.dataset
    runs = options.make_executor(executor, jobs, large_pages=False)
    cache = OutcomeCache(
        None if tolerances or checkers else state or default_folder(), fresh, say
    )

    def results(
        task: DefinitionTask[Any], failed: str, describe: Callable[[Any], str]
    ) -> list[Any]:
        with progress(f"Asking {plural(len(files), 'definition')}"):
            results = run_task(files, task, runs, cache)
            return numbered(results, len(files), failed, describe)

    if checkers:
        from generator.evaluation.checkers.report import checkers_report
        from generator.evaluation.checkers.result import checkers_task, kept, record

        if recorded:
            kept(dataset)
        outcomes = results(
            checkers_task(dataset, checkers), "not asked", lambda result: ""
        )
        if recorded:
            record(dataset, outcomes)
        report = checkers_report(outcomes)
    elif tolerances:
        task = tolerance_task(dataset, tolerance)
        outcomes = results(task, "not measured", lambda result: "")
        against = problems(outcomes)
        if output is not None:
            pages = tolerances_pages(outcomes, against, output.stem)
            write_files(output.parent, {n: t.encode() for n, t in pages.items()})
        report = tolerances_report(outcomes, against, is_page=form == "markdown")
    elif seeds is not None:
        outcomes = results(
            seeds_task(dataset, *seeds, whole),
            "not asked to the end",
            lambda result: (
                f"{plural(result.asked, 'test')}, {plural(len(result.alarms), 'alarm')}, "
            ),
        )
        report = seeds_report(outcomes, seeds)
    else:
        # before the work: what can't be added to must not be found out at its end
        path = LIMITS_KEPT if limits else AUDIT
        recorder = Recorder(dataset, files, path) if recorded else None
        outcomes = results(
            audit_task(dataset, tolerance, limits=limits),
            "not audited",
            lambda result: (
                f"{plural(len(result.mutants), 'mutant')}, "
                f"{result.counts['survived']} survived, "
            ),
        )
        for line in recorder.record(outcomes) if recorder is not None else ():
            say(line)
        report = mutants_report(outcomes, survivors=survivors)
    return show(report, form)
