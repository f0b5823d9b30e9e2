"""Run the reference tests of what changed, in the sandbox, and read what they say.

What is trusted: the sandbox's own account of the process (how it ended, what limit it
broke), and the list of tests, which is made before a reference runs. The results were
written by the process that ran the reference: that a test failed is believed, that one
passed only where the list is complete, the process ended by itself, the screen of the
sources found nothing, and every canary (see canary.py) failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from generator.dataset.definition import LoadedDefinition
from generator.execution import sandbox
from generator.problems import Failure
from generator.problems.messages import one_line
from generator.rendering.embedding import can_be_nested
from generator.rendering.plan import TestPlan
from generator.results.run_results import TestResult, parse_results
from generator.review.account import account
from generator.review.canary import plant
from generator.review.change import Change
from generator.review.confined_folder import lay_out, readable, render
from generator.review.executed import (
    Executed,
    ExecutedComparison,
    agreed_with_kernels,
    comparisons_of,
)
from generator.review.scratch import scratch
from generator.rules.screen import screen

_FILE = "results.jsonl"
_RESULTS = 64 * 1024 * 1024
_SHOWN = 20
# the first import of a build for CUDA reads some GiB
_COLLECT_SECONDS = 300.0
# of the CPU, for a comparison at a workload
_WORKLOAD_SECONDS = 10.0


def why_not(device: str = "cpu") -> str | None:
    """Return in one line why nothing can be executed here, None where it can."""
    refusal = sandbox.refusal()
    if refusal is None and device == "cuda":
        lack = sandbox.no_cuda()
        refusal = lack and f"--device cuda: {lack}."
    return refusal


def render_changes(changes: Sequence[Change], dataset: Path, output: Path) -> int:
    """Render the tests of the changed definitions; return how many could be."""
    return sum(len(plan.classes) for plan in render(_names(changes), dataset, output))


def _names(changes: Sequence[Change]) -> list[str]:
    return [change.name for change in changes if change.new is not None]


def execute_changes(
    changes: Sequence[Change], dataset: Path, device: str, trust: bool
) -> Executed | None:
    """Run the tests of the changed definitions; None where there is none to run."""
    definitions = [change.new for change in changes if change.new is not None]
    if not definitions:
        return None
    findings = [(d, finding) for d in definitions for finding in screen(d.reference)]
    if findings and not trust:
        problem = "not run: the screen of the sources objects (--trust runs it anyway)"
        lines = [
            one_line(f"{d.name} line {f.line}: {f.what}: {f.text} ({f.why})", 400)
            for d, f in findings[:_SHOWN]
        ]
        return Executed(device, problems=(problem, *lines))
    with scratch("trace-dataset-run-") as folder:
        plans = lay_out(_names(changes), dataset, folder)
        if not plans:
            problem = "none of the changed definitions could be rendered"
            return Executed(device, problems=(problem,))
        return _run(definitions, plans, len(findings), folder, device)


def _run(
    definitions: Sequence[LoadedDefinition],
    plans: Sequence[TestPlan],
    count: int,
    folder: Path,
    device: str,
) -> Executed:
    tests, results = folder / "tests", folder / _FILE
    files = [tests / "references" / f"{plan.module}.py" for plan in plans]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    command += ["--device", device, "--error-maps"]
    command += ["--workload-seconds", str(_WORKLOAD_SECONDS)]
    cuda = device == "cuda"
    limits = sandbox.CUDA_LIMITS if cuda else sandbox.Limits()
    confined = partial(sandbox.run_confined, read_only=readable(folder), devices=cuda)
    expected, lack = _listed(confined, [*command, *map(str, files)], limits)
    problems = [f"the static screen found {count} in the reference"] if count else []
    problems += [
        f"the text of {one_line(d.name)} runs when tests are listed: the list may be its"
        for d in definitions
        if not can_be_nested(d.reference)
    ]
    layers = sandbox.warnings()
    if lack is not None:
        problems.append(one_line(f"the tests could not be listed: {lack}", 300))
        return Executed(device, problems=tuple(problems), layers=layers)
    canaries = plant(plans, expected, tests / "references")
    wrong = canaries.all
    # too many for a command line where much has changed
    arguments = tests / "arguments"
    arguments.write_text("\n".join(canaries.arguments(files)) + "\n", "utf-8")
    command += ["-q", "--results", _FILE, f"@{arguments}"]
    outcome = confined(command, results=results, limits=limits)
    ran: Sequence[TestResult] = ()
    results_here: Sequence[TestResult] = ()
    comparisons: tuple[ExecutedComparison, ...] = ()
    try:
        data = sandbox.read_result(results, limit=_RESULTS)
        if data is None:
            problems.append("there are no results that can be read")
        else:
            # messages name files as they lie in the dataset, not here
            ran = parse_results(data.replace(f"{folder}/".encode(), b""), _FILE).tests
        # what a canary compares is no word on the definition that it copies
        results_here = [test for test in ran if test.test not in wrong]
        comparisons = comparisons_of(results_here, {d.name for d in definitions})
    except (OSError, ValueError, Failure) as error:
        problems.append(one_line(f"the results can't be read: {error}", 300))
    reported = [(test.test, test.status) for test in ran]
    tally = account(outcome, expected, reported, wrong)
    problems += [one_line(problem, 300) for problem in tally.problems]
    return Executed(
        device,
        len(tally.passed),
        tuple(one_line(name) for name in tally.failed),
        len(tally.skipped),
        tuple(problems),
        layers,
        agreed_with_kernels(results_here) if not problems and device == "cuda" else (),
        outcome.seconds,
        comparisons,
    )


def _listed(
    confined: Callable[..., sandbox.CommandOutcome],
    command: Sequence[str],
    limits: sandbox.Limits,
) -> tuple[list[str], str | None]:
    """Return the tests that there are, and why they could not be listed.

    No reference runs at this point: each is inside of a function.
    """
    collected = confined(
        [*command, "--collect-only", "-q"],
        limits=replace(limits, wall_seconds=_COLLECT_SECONDS),
    )
    # what pytest lists is file::TestX::test_y[case]
    listing = [x.partition("::")[2].strip() for x in collected.stdout.splitlines()]
    expected = [test for test in listing if test]
    if collected.ok and expected and not collected.truncated:
        return expected, None
    lines = (collected.stderr or collected.stdout).strip().splitlines()
    last = lines[-1] if lines else "nothing was printed"
    return expected, collected.detail or last
