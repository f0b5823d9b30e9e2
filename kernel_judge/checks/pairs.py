"""Pairs to compare: outputs of `run()`, each beside what a source gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from kernel_judge.checked import Compared, Defect
from kernel_judge.checks.available import rewritten_by
from kernel_judge.comparison.compare import FAILED, Comparison, compare, mismatch
from kernel_judge.comparison.error_map import error_map
from kernel_judge.comparison.metrics import unravel
from kernel_judge.comparison.policy import Question, Repeating
from kernel_judge.comparison.tolerance import RECORDED, looser
from kernel_judge.definition import Case
from kernel_judge.inputs.trial import Trial
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.source_names import PAIR
from kernel_judge.subject import Subject

ORACLE = "oracle"


@dataclass(frozen=True)
class Pair:
    """One output of `run()`, or of the source `other`, and what a source expects of it.

    `place` says which elements of the output they are, where they are not all: the flat
    positions, int64, and the output's shape. `settled` is the verdict where nothing is
    left to compare. `about` is recorded beside the verdict.
    """

    output: str
    actual: Any
    expected: Any
    source: str
    other: str | None = None
    place: tuple[torch.Tensor, tuple[int, ...]] | None = None
    settled: Comparison | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


def output_names(subject: Subject, trial: Trial) -> list[str]:
    """Return the names of what is compared, in the order of `results`."""
    return [*subject.interface.output_specs, *subject.filled(trial.inputs)]


def results(subject: Subject, trial: Trial) -> tuple[Any, ...]:
    """Return all that `run()` gave: its outputs, and the inputs that it filled.

    The outputs are those of as many calls as a policy asks for.
    """
    outputs = trial.joined_outputs(calls(subject, trial.outputs, trial.case))
    return outputs + tuple(trial.after(name) for name in subject.filled(trial.inputs))


def calls(subject: Subject, answer: tuple[Any, ...], case: Case) -> int:
    """Return how often to call who gave this answer: once, or a policy says."""
    wanted = [1]
    # an answer of too few or too many values is for `pairs` to refuse
    for name, value in zip(subject.interface.output_specs, answer, strict=False):
        policy = subject.op.policies.get(name)
        if isinstance(policy, Repeating):
            wanted.append(policy.calls(value, case))
    return max(wanted)


def pairs(
    subject: Subject,
    trial: Trial,
    actual: tuple[Any, ...],
    expected: tuple[Any, ...],
    source: str,
    other: str | None = None,
) -> Iterator[Pair]:
    """Yield each output beside that of a source, on the rows that kernels define.

    `other` is the source that gave `actual`, None where `run()` did. Raises Defect where
    the numbers of values differ, Skip where there is nothing to compare.
    """
    specs = subject.specs
    names = output_names(subject, trial)
    if len(actual) != len(names):
        raise Defect(f"run() returned {len(actual)} values")
    if len(expected) != len(names):
        raise Defect(f"{source} gave {len(expected)} values")
    rows = None
    defined_rows = subject.op.defined_rows
    if source != ORACLE and defined_rows is not None:
        rows = defined_rows(trial.definition, trial.inputs)
        if not bool(rows.any()):
            skip(Kind.NO_CASE, f"{source}: defines no row of this case")
    row_axis = specs[names[0]].leading_axis
    values = list(zip(names, actual, expected, strict=True))
    # a kernel lacks no more than its backend says; nobody else may
    lacking = [
        name
        for name, a, e in values
        if (e is None and source != ORACLE) or (a is None and other is not None)
    ]
    if len(lacking) == len(names):
        skip(Kind.NO_CASE, f"{source}: shares no output with {other}")
    left_out = 0 if rows is None else int((~rows).sum())
    about = {
        "rows_left_out": left_out,
        "not_given": lacking,
        "rewritten": rewritten_by(subject, source, other),
    }
    for name, a, e in values:
        if name in lacking:
            continue
        # only an output over the same axis has these rows: a state pool has not
        if rows is not None and specs[name].leading_axis == row_axis:
            a, e = keep_rows(a, rows), keep_rows(e, rows)
        yield Pair(name, a, e, source, other, about=about)


def judge(subject: Subject, trial: Trial, pair: Pair) -> Comparison:
    """Return the verdict on a pair, by the output's policy or else its tolerance."""
    if pair.settled is not None:
        return pair.settled
    case, source = trial.case, pair.source.removeprefix(RECORDED)
    policy = subject.op.policies.get(pair.output)
    if policy is not None:
        question = Question(trial.definition, case, trial.inputs, source, pair.other)
        return policy.judge(pair.actual, pair.expected, question)
    tolerance = subject.tolerance(pair.output, source, case)
    if pair.other is not None:
        wider = subject.tolerance(pair.output, pair.other, case)
        tolerance = looser(tolerance, wider)
    if trial.brief:
        problem = mismatch(pair.actual, pair.expected, tolerance)
        if problem:
            return Comparison(FAILED, (problem,), tolerance)
    result = compare(
        pair.actual, pair.expected, tolerance, same_dtype=pair.source != ORACLE
    )
    if trial.error_maps or (trial.error_maps is not None and not result.passed):
        where = error_map(pair.actual, pair.expected, tolerance, pair.place)
        result = replace(result, where=where)
    return result if pair.place is None else _placed(result, *pair.place)


def compared(subject: Subject, trial: Trial, pair: Pair) -> Compared:
    """Judge a pair; return the verdict with what is recorded of it."""
    source = pair.source
    if pair.other is not None:
        source = f"{source}{PAIR}{pair.other}"
    verdict = judge(subject, trial, pair)
    comparison = recorded(subject, trial, pair.output, source, verdict, **pair.about)
    if verdict.passed:
        return comparison
    return replace(comparison, values=(pair.actual, pair.expected))


def recorded(
    subject: Subject,
    trial: Trial,
    output: str,
    source: str,
    verdict: Comparison,
    **about: object,
) -> Compared:
    """Return a verdict with what is recorded of it, and the message of a failure."""
    record = {
        "definition": subject.name,
        **trial.case.as_record(),
        "source": source,
        "output": output,
        **about,
        "not_independent": list(subject.dependent_constants),
        **verdict.as_dict(),
    }
    heading = f"{subject.name} {output!r} against {source}, {trial.case.name}"
    failures = () if verdict.passed else (verdict.message(heading),)
    return Compared(output, source, verdict, record, failures)


def _placed(
    result: Comparison, positions: torch.Tensor, shape: tuple[int, ...]
) -> Comparison:
    """Return a verdict whose worst elements have their index in the whole output."""
    if result.metrics is None:
        return result
    worst = tuple(
        replace(w, index=unravel(int(positions[w.index[0]]), shape))
        for w in result.metrics.worst
    )
    return replace(result, metrics=replace(result.metrics, worst=worst))


def keep_rows(value: Any, rows: torch.Tensor) -> Any:
    """Return those rows of an output: [kept, ...] of [rows, ...], its dtype kept.

    `rows` is bool [rows]. What has another shape is left for `compare`.
    """
    if not isinstance(value, torch.Tensor) or value.shape[:1] != rows.shape:
        return value
    return value[rows.to(value.device)]
