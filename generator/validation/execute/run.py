"""Call the references of a dataset in the sandbox, and check what they return.

Trusted are the sandbox's report of its process, and the number under which the process
inside passes on an answer. The answer itself comes from a process that ran the
reference: it can add Problems of that definition, and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from generator import PACKAGES
from generator.dataset.definition import LoadedDefinition, declarations
from generator.dataset.workload_files import copy_workloads
from generator.execution.sandbox import CommandOutcome, Limits, refusal, run_confined
from generator.ops.serving import spec_of
from generator.problems import Problem, Rule
from generator.problems.messages import one_line
from generator.rules.catalogue import GROUPS
from generator.rules.constants import resolve_constants, why_unresolved
from generator.rules.runtime_rules import (
    EXECUTE_KILLED,
    EXECUTE_NOT_RUN,
    EXECUTE_TIME,
)
from generator.rules.screen import EXECUTE_BLOCKED, screen
from generator.rules.static import filled_inputs
from generator.validation.execute import batch

SECONDS = 20.0
"""Wall clock of one definition without its workloads."""
_WORKLOAD_SECONDS = {"none": 0.0, "fit": 5.0, "all": 120.0}
"""Wall clock of a workload, which is given up after a part of it on the CPU."""
_START_SECONDS = 60.0
_MEMORY = 6 << 30
_BATCH = 128
"""Definitions of one sandbox: starting one takes seconds, most of them for torch."""
_FEW = 12
_LONGEST = 1000
_RULES = {rule.id: rule for rule in GROUPS["execute"]}
_PROJECT = Path(__file__).resolve().parents[3]

Answers = dict[int, list[Problem]]


def why_not() -> str | None:
    """Return in one line why nothing can be executed here, None where it can."""
    if find_spec("torch") is None or find_spec("pytest") is None:
        return "it needs torch and pytest: pip install 'gen-tests[execute]'."
    return refusal()


def check(
    definitions: Sequence[LoadedDefinition],
    *,
    trust: bool = False,
    jobs: int = 1,
    dataset: Path | None = None,
    workloads: str = "none",
) -> list[Problem]:
    """Return the Problems that calling each `run()` shows, in order.

    It is called on small inputs, and at workloads of `dataset`: none, those that fit, or
    all. Without `trust`, references that the static screen objects to are not called.
    """
    problems: dict[str, list[Problem]] = {}
    passed = []
    for definition in definitions:
        blocked = [] if trust else list(_blocked(definition))
        problems[definition.path] = blocked
        if not blocked:
            passed.append(definition)
    size = max(1, min(_BATCH, -(-len(passed) // jobs)))
    if len(passed) <= _FEW:
        size = _FEW
    shares = [passed[at : at + size] for at in range(0, len(passed), size)]
    stop = Event()
    share_called = partial(
        _share, stop=stop, dataset=dataset, workloads=workloads if dataset else "none"
    )
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            called = pool.map(share_called, shares)
            for share, answers in zip(shares, called, strict=True):
                for number, definition in enumerate(share):
                    problems[definition.path] += answers[number]
        except BaseException:
            # the pool waits for what runs: end it, and begin nothing more
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [
        problem for definition in definitions for problem in problems[definition.path]
    ]


def _blocked(definition: LoadedDefinition) -> Iterator[Problem]:
    for finding in screen(definition.reference):
        message = f"It was not called: {finding.what}: {finding.text} ({finding.why})."
        yield _problem(definition, EXECUTE_BLOCKED, message, finding.line)


def job_of(definition: LoadedDefinition, workloads: str, count: int) -> dict[str, Any]:
    """Return the job of a definition for the process inside, as plain JSON values.

    It has `count` workloads, of which `none`, those that `fit` or `all` are asked for.
    """
    spec = spec_of(definition)
    constants = resolve_constants(definition, spec)[0] if spec is not None else ()
    return {
        "name": definition.name,
        "op_type": definition.op_type,
        "is_served": spec is not None,
        "inputs": declarations(definition.inputs),
        "outputs": declarations(definition.outputs),
        "constraints": list(definition.constraints),
        "axes": definition.const_axes,
        "constants": {constant.name: constant.value for constant in constants},
        "reference": definition.reference,
        "filled": sorted(filled_inputs(definition)),
        "unresolved": why_unresolved(definition.op_type, spec, constants),
        "workloads": workloads,
        "seconds": SECONDS + count * _WORKLOAD_SECONDS[workloads],
    }


def _share(
    definitions: Sequence[LoadedDefinition],
    stop: Event,
    dataset: Path | None,
    workloads: str,
) -> Answers:
    """Return the Problems of each definition by its number in the share.

    Where one takes down the process that watches it, a new process continues.
    """
    answers: Answers = {}
    left = list(range(len(definitions)))
    while left and not stop.is_set():
        asked = [definitions[number] for number in left]
        outcome = _confined(asked, stop, dataset, workloads)
        lines = list(_lines(outcome.stdout))
        for position, how, report in _ended(lines):
            if position < len(left):
                number = left[position]
                answers[number] = list(
                    _judged(definitions[number], how, report, workloads)
                )
        missing = [number for number in left if number not in answers]
        if not missing or outcome.ok:
            for number in missing:
                answers[number] = [_without(definitions[number], outcome)]
            return answers
        # the first without an answer was being called
        answers[missing[0]] = [_without(definitions[missing[0]], outcome)]
        begun = any("begins" in line for line in lines)
        left = missing[1:]
        if not begun:
            for number in left:
                answers[number] = [_without(definitions[number], outcome)]
            return answers
    return answers


def _confined(
    definitions: Sequence[LoadedDefinition],
    stop: Event,
    dataset: Path | None,
    workloads: str,
) -> CommandOutcome:
    with TemporaryDirectory(prefix="trace-dataset-run-") as name:
        folder = Path(name)
        # the sandbox runs as another user where we are root
        folder.chmod(0o755)
        shown = folder / "shown"
        shown.mkdir()
        if dataset is not None and workloads != "none":
            keys = [(d.op_type, d.name) for d in definitions]
            copy_workloads(keys, dataset, shown)
        listed = [job_of(d, workloads, _workloads(shown, d)) for d in definitions]
        jobs = {
            "memory_bytes": _MEMORY,
            "dataset": os.path.realpath(shown),
            "definitions": listed,
        }
        seconds = _START_SECONDS + sum(job["seconds"] + 5 for job in listed)
        (shown / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        # the folder of the package itself may not be listed in the sandbox, and what
        # can't be listed has no packages for an import
        path = os.path.realpath(shown)
        for package in PACKAGES:
            os.symlink(_PROJECT / package, shown / package)
        code = f"import sys; sys.path.insert(0, {path!r})"
        code += "; from generator.validation.execute.batch import main; main()"
        limits = Limits(
            wall_seconds=seconds,
            cpu_seconds=int(seconds),
            output_bytes=2 * (2 * batch.MAX_REPORT + 200) * len(definitions),
        )
        return run_confined(
            [sys.executable, "-I", "-c", code, os.path.realpath(shown / "jobs.json")],
            read_only=[shown, *(_PROJECT / package for package in PACKAGES)],
            limits=limits,
            stop=stop,
            environment={"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            # what it calls could stop it otherwise, and wait for all of the wall clock
            is_first=True,
        )


def _workloads(folder: Path, definition: LoadedDefinition) -> int:
    """Return how many lines a definition's workloads have in a folder, at most."""
    path = folder / "workloads" / definition.op_type / f"{definition.name}.jsonl"
    return path.read_bytes().count(b"\n") + 1 if path.is_file() else 0


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _ended(lines: Sequence[dict[str, Any]]) -> Iterator[tuple[int, str, str]]:
    for line in lines:
        position, how, report = (line.get(k) for k in ("ends", "how", "report"))
        if type(position) is int and isinstance(how, str) and isinstance(report, str):
            yield position, how, report


def _judged(
    definition: LoadedDefinition, how: str, report: str, workloads: str
) -> Iterator[Problem]:
    """Yield the Problems of an answer, or of a missing one."""
    if how == "time":
        more = "" if workloads == "none" else ", and some for each workload"
        message = f"`run` did not return within {SECONDS:.0f} seconds{more}."
        yield _problem(definition, EXECUTE_TIME, message)
    elif how != "exit 0":
        message = f"The process that called `run` was ended: {how}."
        yield _problem(definition, EXECUTE_KILLED, message)
    else:
        words = _said(report)
        if words is None:
            message = "The process that called `run` ended without an answer."
            yield _problem(definition, EXECUTE_KILLED, message)
        for rule, message, line in words or ():
            yield _problem(definition, rule, message, line)


def _said(report: str) -> list[tuple[Rule, str, int | None]] | None:
    """Return the Problems in an answer, None where it is not valid."""
    try:
        value = json.loads(report)["said"]
        for rule, message, line in value:
            right = rule in _RULES and isinstance(message, str)
            if not right or not (line is None or type(line) is int):
                return None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return [(_RULES[rule], message, line) for rule, message, line in value]


def _without(definition: LoadedDefinition, outcome: CommandOutcome) -> Problem:
    if outcome.status == "not started":
        why = f"the sandbox did not start: {outcome.detail}"
        return _problem(definition, EXECUTE_NOT_RUN, f"It was not called: {why}.")
    ended = outcome.limit or outcome.signal or outcome.exit_status
    message = "`run` took down the process that watches it"
    return _problem(definition, EXECUTE_KILLED, f"{message} ({ended}).")


def _problem(
    definition: LoadedDefinition, rule: Rule, message: str, line: int | None = None
) -> Problem:
    lines = definition.reference.count("\n") + 1
    return rule.problem(
        definition.path,
        one_line(message, _LONGEST),
        pointer="/reference",
        line=line if line is not None and 1 <= line <= lines else None,
    )
