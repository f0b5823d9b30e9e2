"""The task of a worker of the executor: judge solutions of one definition."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import DatasetFile
from generator.evaluation.confined import Allowed, Answer, Confinement
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import REFERENCE, Asked, rounds_of
from generator.evaluation.sharing import free_gpu, using
from generator.evaluation.solution import Solution
from generator.evaluation.timing import idle_calls, timed
from generator.evaluation.verdict import (
    COMPILE_ERROR,
    PASSED,
    SKIPPED,
    CaseVerdict,
    Refused,
    SolutionVerdict,
    worst,
)
from generator.execution.child import Link
from generator.execution.gpus import VISIBLE, bind
from generator.execution.outcome import CannotRun
from generator.ops.registry import op_folder, op_packages
from generator.problems.messages import plural
from generator.rules.load import load_file

_COMPILERS = {"cpp": ("g++", "c++", "clang++"), "cuda": ("nvcc",)}
_SHOWN = 3


def evaluate(task: Mapping[str, Any], link: Link) -> dict[str, Any]:
    """Return the verdicts on solutions of a definition; say each as it comes."""
    file = DatasetFile(**task["file"])
    root = Path(task["root"])
    definition, problems = load_file(root, file)
    if definition is None:
        raise CannotRun(str(problems[0]) if problems else "it can't be read")
    if task["gpus"]:
        bind(free_gpu(task["gpus"]))
    device = torch.device(task["device"])
    allowed = Allowed(task["timeout"])
    within = 4 * allowed.call_seconds + allowed.build_seconds
    link.at(within=within)
    alive = partial(link.at, within=within)
    gpu = os.environ.get(VISIBLE, "all") if task["device"] == "cuda" else ""
    uses = partial(using, gpu, task["timing"], alive)
    workloads = workloads_of(root, file) if "workloads" in task["asks"] else []
    with uses():
        asked = rounds_of(
            definition,
            workloads,
            root,
            device,
            random.Random(task["secret"]).randrange(2**62),
            own_cases="cases" in task["asks"],
            fuzz=task["fuzz"],
        )
    if not task["runs_references"] and any(
        one.source == REFERENCE for _, rounds in asked.rounds for one in rounds
    ):
        raise CannotRun("it has no oracle, and its reference is not executed here")
    found = []
    confined = Confinement(task["device"], allowed, _hidden(root), alive)
    with closing(confined) as confinement:
        for given in task["solutions"]:
            solution = Solution(given["value"], given["path"])
            begun = time.monotonic()
            why = _missing(solution, task["device"])
            if why is not None:
                cases = [CaseVerdict("", SKIPPED, why)]
            else:
                # whatever else is in this task: the same on every number of tasks
                own = random.Random(f"{task['secret']} {solution.path}")
                secret = own.randrange(2**62)
                cases = judged(solution, asked, confinement, device, secret, task, uses)
            notes = _notes(asked)
            verdict = _concluded(solution, file, cases, notes, time.monotonic() - begun)
            found.append(verdict.as_dict())
            link.say(found[-1])
    return {"verdicts": found}


def judged(
    solution: Solution,
    asked: Asked,
    confinement: Confinement,
    device: torch.device,
    secret: int,
    task: Mapping[str, Any],
    uses: Callable[[], AbstractContextManager[None]],
) -> list[CaseVerdict]:
    """Return the verdicts on a solution's cases; one of a build that failed.

    Whatever needs the GPU is done while it `uses` it; a build does not.
    """
    interface = asked.tests.interface
    passes = solution.passes_outputs
    count = len(interface.inputs) + (len(interface.outputs) if passes else 0)
    try:
        session = confinement.open()
    except Refused as refused:
        return [CaseVerdict("build", refused.verdict, refused.reason)]
    try:
        idle: Sequence[Answer] = []
        if task["timing"]:
            with uses():
                idle = idle_calls(session)
        try:
            session.build(solution, count)
        except Refused as refused:
            return [CaseVerdict("build", refused.verdict, refused.reason)]
        with uses():
            cases = Judge(session, asked, device, passes, secret).judge()
            if cases and task["timing"] and worst(cases).verdict == PASSED:
                cases = timed(session, asked, cases, passes, secret, idle)
        return cases
    finally:
        session.close()


def _concluded(
    solution: Solution,
    file: DatasetFile,
    cases: Sequence[CaseVerdict],
    notes: Sequence[str],
    seconds: float,
) -> SolutionVerdict:
    if not cases:
        cases = [CaseVerdict("", SKIPPED, "no case and no workload can be asked here")]
    first = worst(cases)
    case = "" if first.verdict in (PASSED, COMPILE_ERROR, SKIPPED) else first.case
    return SolutionVerdict(
        solution.name,
        solution.author,
        file.name,
        file.op_type,
        solution.path,
        first.verdict,
        first.reason,
        case,
        cases,
        notes,
        round(seconds, 3),
    )


def _notes(asked: Asked) -> list[str]:
    notes = []
    if asked.rounds and asked.rounds[0][1][0].source == REFERENCE:
        notes.append("without an oracle: judged by the reference and relations alone")
    if asked.left_out:
        shown = "; ".join(asked.left_out[:_SHOWN])
        count = plural(len(asked.left_out), "case")
        notes.append(f"{count} left out: {shown}")
    return notes


def _missing(solution: Solution, device: str) -> str | None:
    """Return what a solution needs that this machine lacks, None where it has all."""
    language = solution.language
    if language in ("triton", "cuda", "tilelang") and device != "cuda":
        return f"{language} needs --device cuda"
    if language in ("triton", "tilelang") and find_spec(language) is None:
        return f"{language} is not installed"
    compilers = _COMPILERS.get(language, ())
    if compilers and not any(map(shutil.which, compilers)):
        return f"{language} needs {' or '.join(compilers)} on PATH"
    binding = solution.how()["binding"]
    if compilers and binding == "tvm-ffi" and find_spec("tvm_ffi") is None:
        return "the binding tvm-ffi is not installed: pip install apache-tvm-ffi"
    if compilers and binding == "torch" and shutil.which("ninja") is None:
        return "torch builds extensions with ninja: pip install ninja"
    return None


def _hidden(root: Path) -> list[Path]:
    """Return the folders that no solution may see: the dataset, and other op_types."""
    return [root, *(op_folder(name) for name in op_packages())]


def workloads_of(root: Path, file: DatasetFile) -> list[Mapping[str, Any]]:
    """Return the workloads that the dataset has of a definition."""
    path = f"workloads/{file.op_type}/{file.name}.jsonl"
    if not (root / path).is_file():
        return []
    return [value["workload"] for _, value in read_json_lines(root, path).lines]
