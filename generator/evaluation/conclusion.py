"""The verdict on a solution, of those on its cases; and what it does not rest on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from traceback import extract_tb

from generator.dataset.paths import DatasetFile
from generator.evaluation.rounds import EvaluationRounds
from generator.evaluation.solution import Solution
from generator.evaluation.solution_tolerance import REFERENCE
from generator.evaluation.verdict import (
    COMPILE_ERROR,
    INVALID,
    JUDGE_ERROR,
    PASSED,
    SKIPPED,
    CaseVerdict,
    SolutionVerdict,
    worst,
)
from generator.problems.messages import one_line, plural

_SHOWN, _SHORT = 3, 260


def where(error: BaseException) -> str:
    """Return an error of the judge in a line, and where in it that was."""
    frames = [f for f in extract_tb(error.__traceback__) if "generator" in f.filename]
    text = one_line(f"{type(error).__name__}: {error}", _SHORT)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def concluded(
    solution: Solution,
    file: DatasetFile,
    cases: Sequence[CaseVerdict],
    notes: Sequence[str],
    seconds: float,
) -> SolutionVerdict:
    """Return the verdict on a solution: the worst of its cases."""
    if not cases:
        cases = [CaseVerdict("", SKIPPED, "no case and no workload can be asked here")]
    first = worst(cases)
    nowhere = (PASSED, COMPILE_ERROR, SKIPPED, INVALID, JUDGE_ERROR)
    case = "" if first.verdict in nowhere else first.case
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


def notes_on(asked: EvaluationRounds) -> list[str]:
    """Return what verdicts do not rest on: no oracle, cases that were left out."""
    notes = []
    if asked.rounds and asked.rounds[0][1][0].source == REFERENCE:
        notes.append("without an oracle: judged by the reference and relations alone")
    if asked.left_out:
        shown = "; ".join(asked.left_out[:_SHOWN])
        count = plural(len(asked.left_out), "case")
        notes.append(f"{count} left out: {shown}")
    return notes
