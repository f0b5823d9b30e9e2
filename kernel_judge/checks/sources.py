"""Checks against what is called live: the oracle, and providers' kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from kernel_judge.checked import Compared, Defect, check
from kernel_judge.checks.asking import ask
from kernel_judge.checks.available import source_name, too_few, usable_sources
from kernel_judge.checks.pairs import (
    ORACLE,
    Pair,
    calls,
    compared,
    output_names,
    pairs,
    results,
)
from kernel_judge.definition import Backend
from kernel_judge.inputs.repeated import sampled
from kernel_judge.inputs.trial import Trial, as_tuple
from kernel_judge.obstacle import Kind
from kernel_judge.providers import backend_obstacle
from kernel_judge.skipping import Skip, skip
from kernel_judge.subject import Subject


@check
def oracle(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """The outputs agree with an independent float64 implementation."""
    with trial.limited():
        few = sampled(trial)
        for pair in oracle_pairs(subject, few):
            yield compared(subject, few, pair)


def oracle_pairs(subject: Subject, trial: Trial) -> Iterator[Pair]:
    """Yield each output beside the oracle's. Raises Skip where there is no oracle."""
    call = subject.op.oracle
    is_alone = subject.op.answers_alone
    if call is None or (subject.unresolved is not None and not is_alone):
        skip(Kind.UNRESOLVED, f"oracle: UNRESOLVED: {subject.unresolved}")
    expected = as_tuple(call(trial.definition, trial.lazy_inputs()))
    yield from pairs(subject, trial, results(subject, trial), expected, ORACLE)


@check
def ground_truth(
    subject: Subject, trial: Trial, provider: str, backend: Backend
) -> Iterator[Compared]:
    """The outputs agree with a provider's kernel on the rows that it defines."""
    with trial.limited():
        expected = answer(subject, trial, provider, backend)
        source = source_name(provider, backend)
        for pair in pairs(subject, trial, results(subject, trial), expected, source):
            yield compared(subject, trial, pair)


@check
def ground_truths_agree(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """Every usable source agrees with the first one."""
    answers = {}
    for source in usable_sources(subject, trial.device):
        # one that can't be had, or not of this case, leaves the others to compare
        with suppress(Skip):
            answers[source] = answer(subject, trial, *source)
    if len(answers) < 2:
        raise Skip(too_few(list(answers)))
    (first, expected), *others = answers.items()
    for other, actual in others:
        names = source_name(*first), source_name(*other)
        failed = False
        for pair in pairs(subject, trial, actual, expected, *names):
            one = compared(subject, trial, pair)
            failed = failed or not one.comparison.passed
            yield one
        if failed:
            return


def answer(
    subject: Subject, trial: Trial, provider: str, backend: Backend
) -> tuple[Any, ...]:
    """Return what a provider's kernel gives. Raises Skip where it can't be called.

    It is called once a trial: what it is compared with is no reason to call it again.
    """
    unresolved = subject.why_unresolved(provider)
    if unresolved is not None:
        skip(Kind.UNRESOLVED, f"{provider}: UNRESOLVED: {unresolved}")
    obstacle = backend_obstacle(provider, backend, trial.device)
    if obstacle is not None:
        skip(obstacle.kind, f"{provider}: {obstacle}")
    key = (provider, backend.name)
    if key not in trial.answers:
        trial.answers[key] = _ask(subject, trial, provider, backend)
    return trial.answers[key]


def _ask(
    subject: Subject, trial: Trial, provider: str, backend: Backend
) -> tuple[Any, ...]:
    """Call a provider's kernel on inputs of its own."""
    kernel = subject.kernels[provider]
    if kernel.check_inputs is not None:
        kernel.check_inputs(trial)
    values = ask(kernel.call, provider, backend, trial, partial(calls, subject))
    named = zip(output_names(subject, trial), values, strict=False)
    lacking = [name for name, value in named if value is None]
    if lacking != list(backend.lacks):
        raise Defect(f"{provider} gave None as {lacking}")
    return values
