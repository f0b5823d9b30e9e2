"""Judge a solution: ask it for every round, and compare what it returned in this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch

from generator.evaluation.arena import Layout, Slices
from generator.evaluation.drawing_ahead import DrawingAhead
from generator.evaluation.draws import draws_of
from generator.evaluation.failures import Failures, unwritten
from generator.evaluation.left_out import left_out
from generator.evaluation.lengths import sizes_of
from generator.evaluation.periods import with_expected
from generator.evaluation.related import claims_of
from generator.evaluation.room import compare_with_room
from generator.evaluation.rounds import (
    EvaluationRounds,
    Round,
    relation_name,
    shuffled,
)
from generator.evaluation.session import CallAnswer
from generator.evaluation.solution_tolerance import (
    REFERENCE,
    doubled,
    solution_tolerance,
    whose_tolerance,
)
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    ORDER,
    OUT_OF_MEMORY,
    PASSED,
    REWARD_HACK,
    CaseVerdict,
    Refused,
)
from generator.problems.messages import one_line
from generator.running.described import described
from kernel_judge.checks.pairs import ORACLE
from kernel_judge.comparison.compare import ERROR, FAILED, Comparison
from kernel_judge.comparison.policy import Question
from kernel_judge.comparison.tolerance import looser
from kernel_judge.inputs.trial import same_bits
from kernel_judge.relation import Claim

# values A, values B at the same addresses, values A at other addresses
_SAME, _OTHER = 0, 1
_SEEDS = 2**31
# calls for a law on values that are not those that it is tested on
_FEW = 4


class SolutionCaller(Protocol):
    """The caller of a solution; `confined.Session` is one in a sandbox."""

    def write(
        self,
        slot: int,
        inputs: Mapping[str, Any],
        outputs: Any,
        axes: Any,
        slices: Slices | None = None,
    ) -> Layout: ...
    def call(
        self,
        slot: int,
        layout: Layout,
        *,
        seed: int,
        passes_outputs: bool,
        under: str = "",
    ) -> None: ...
    def fetch(self, slot: int, layout: Layout) -> CallAnswer: ...
    def input(self, slot: int, layout: Layout, number: int) -> torch.Tensor: ...


@dataclass
class Judge:
    """The judge of one solution of a definition, with what it came to.

    `secret` seeds the order and the draws. Every call is judged; after one without an
    answer nothing more is asked, with `until_wrong` after a wrong answer either. What is
    drawn `ahead` is waited for.
    """

    session: SolutionCaller
    asked: EvaluationRounds
    device: torch.device
    passes_outputs: bool
    secret: int
    failures: Failures | None = None
    until_wrong: bool = False
    ahead: DrawingAhead | None = None
    _found: dict[str, CaseVerdict] = field(default_factory=dict)
    _earlier: dict[str, tuple[int, tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._draw = draws_of(self.secret, "places")
        self._seeds_of_calls = draws_of(self.secret, "seeds")

    def judge(self) -> list[CaseVerdict]:
        """Return the verdicts on cases and workloads, then those on relations."""
        try:
            for name, one, slot in in_order(self.asked, self.secret):
                self._judged(name, one, partial(self._case, name, one, slot))
                one.drop()
            for relation, one in self.asked.relations:
                name = relation_name(relation, one.case)
                self._judged(name, one, partial(self._relation, relation, one))
                one.drop()
        except Refused as refused:
            self._keep(self._under_way(refused))
        return list(self._found.values())

    def _judged(
        self, name: str, one: Round, ask: Callable[[], Mapping[str, float]]
    ) -> None:
        """Keep the verdict on one question. Raises Refused where no call can follow."""
        self._name, self._workload = name, one.workload
        if self.ahead is not None:
            self.ahead.wait_for(one)
        try:
            metrics = ask()
            self._keep(CaseVerdict(name, PASSED, "", metrics, one.workload))
        except Refused as refused:
            if self.failures is not None:
                self.failures.keep(name, one.inputs, refused, axes=one.case.axes)
            goes_on = refused.verdict in (INCORRECT_NUMERICAL, OUT_OF_MEMORY)
            if not goes_on or self.until_wrong:
                raise
            self._keep(self._under_way(refused))

    def _under_way(self, refused: Refused) -> CaseVerdict:
        about = (refused.verdict, refused.reason, refused.metrics, self._workload)
        return CaseVerdict(self._name, *about)

    def _keep(self, verdict: CaseVerdict) -> None:
        """Keep the worst verdict of a case, and of equal ones the greatest errors."""
        known = self._found.get(verdict.case)
        if known is None or _rank(verdict) > _rank(known):
            self._found[verdict.case] = verdict

    def _case(self, name: str, one: Round, slot: int) -> Mapping[str, float]:
        """Judge one call, or for a law as many as it needs. Raises Refused."""
        calls = one.calls()
        if calls > 1 and slot != _SAME:
            calls = min(calls, _FEW)
        answers = [
            # draws of one law are pooled, from both addresses
            self.called(
                one.inputs, one.filled, (slot + n) % 2, one.case.axes, seed=seed
            )
            for n, seed in enumerate(self._seeds(name, calls))
        ]
        actual = answers[0]
        if calls > 1:
            actual = tuple(torch.cat(parts) for parts in zip(*answers, strict=True))
        return self.compared(name, one, actual)

    def _seeds(self, name: str, calls: int) -> list[int]:
        """Return the seeds of the calls for one law.

        Other values of a case come with the same seeds, and seeds differ in their upper
        or in their lower bits alone: neither the values, nor a part of the seed, decide.
        """
        if calls == 1:
            return [self._seeds_of_calls.randrange(_SEEDS)]
        draw = draws_of(self.secret, f"seeds of {name}")
        first = draw.randrange(1 << 15)
        upper = draw.sample(range(1 << 15), calls)
        return [
            first | place << 16 if n % 2 else first << 16 | place
            for n, place in enumerate(upper)
        ]

    def called(
        self,
        inputs: Mapping[str, Any],
        filled: Sequence[str],
        slot: int,
        axes: Mapping[str, int],
        *,
        seed: int | None = None,
        slices: Slices | None = None,
        under: str = "",
    ) -> tuple[Any, ...]:
        """Return the outputs of a call, then the inputs that it filled. Raises Refused."""
        known = self.asked.subject.definition
        specs = known.interface.output_specs
        sizes = sizes_of(known.interface, {**known.axes, **axes}, inputs)
        layout = self.session.write(slot, inputs, specs, sizes, slices)
        if seed is None:
            seed = self._seeds_of_calls.randrange(_SEEDS)
        passes = self.passes_outputs
        self.session.call(slot, layout, seed=seed, passes_outputs=passes, under=under)
        answer = self.session.fetch(slot, layout)
        return self.answered(slot, layout, answer, inputs, filled)

    def answered(
        self,
        slot: int,
        layout: Layout,
        answer: CallAnswer,
        inputs: Mapping[str, Any],
        filled: Sequence[str],
    ) -> tuple[Any, ...]:
        """Return the outputs of an answer, then the inputs that it filled.

        Raises Refused where it wrote to another input.
        """
        names = list(inputs)
        written = [names[number] for number in answer.changed]
        if others := [name for name in written if name not in filled]:
            raise Refused(REWARD_HACK, f"it writes to its input {', '.join(others)}")
        after = (self.session.input(slot, layout, names.index(n)) for n in filled)
        return (*answer.outputs, *after)

    def compared(
        self, name: str, one: Round, actual: tuple[Any, ...]
    ) -> Mapping[str, float]:
        """Return the worst errors of all outputs. Raises Refused."""
        names = [*one.subject.interface.output_specs, *one.filled]
        errors = {"max_abs": 0.0, "max_rel": 0.0, "nmse": 0.0}
        findings, wrong = [], {}
        gains = dict(zip(names, one.gains, strict=False))
        for output, a, e in self.defined(one, names, actual):
            if gains:
                a, e = (v.double() * 2.0 ** -gains[output] for v in (a, e))
            result = self._verdict(one, output, a, e)
            if result.metrics is not None:
                errors = {
                    key: max(error, getattr(result.metrics, key))
                    for key, error in errors.items()
                }
            if not result.passed:
                whose = whose_tolerance(one.subject, output, one.case)
                by = "" if output in one.subject.op.policies else f"; bounds: {whose}'s"
                findings.append(f"{output}: {'; '.join(result.findings)}{by}")
                wrong[output] = (a, e, result)
        if findings:
            lengths = ", ".join(f"{k} {v}" for k, v in one.case.axes.items())
            never = unwritten(actual) if self.passes_outputs else ""
            why = ". ".join([*filter(None, [never]), *findings])
            refused = Refused(INCORRECT_NUMERICAL, one_line(f"{why} ({lengths})", 600))
            self._explain(name, one, actual, refused)
            refused.metrics = errors
            # to describe an output takes longer than to compare it
            if self.failures is not None and self.failures.takes(name):
                specs = one.subject.interface.output_specs
                axes = {n: s.shape for n, s in specs.items()}
                descriptions = [
                    described(n, axes.get(n), *of) for n, of in wrong.items()
                ]
                pairs = zip(actual, one.expected, strict=True)
                values = dict(zip(names, pairs, strict=True))
                about = (values, descriptions, one.case.axes)
                self.failures.keep(name, one.inputs, refused, *about)
            raise refused
        self._earlier[_shapes(actual)] = (id(one), actual)
        return errors

    def defined(
        self, one: Round, names: Sequence[str], actual: tuple[Any, ...]
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield what is held to an answer: name, actual and expected of each output."""
        yield from zip(names, *with_expected(one, actual), strict=True)

    def asked_by(self, one: Round) -> str:
        """Return what a policy is told that answers are held to."""
        return REFERENCE if one.source == REFERENCE else ORACLE

    def _verdict(
        self, one: Round, output: str, actual: Any, expected: Any
    ) -> Comparison:
        subject, case = one.subject, one.case
        if one.gains:
            # as large as usual, as the bounds of the case are for
            case = replace(case, moved={})
        if isinstance(actual, torch.Tensor) and actual.dtype == torch.bool:
            actual = actual.view(torch.uint8)
            poisoned = int((actual > 1).sum())
            if poisoned:
                return Comparison(FAILED, (f"{poisoned} elements were not written",))
            expected = expected.to(torch.uint8)
        policy = subject.op.policies.get(output)
        if policy is not None:
            question = Question(
                subject.definition, case, one.trial.inputs, self.asked_by(one)
            )
            return policy.judge(actual, _on_cpu(expected), question)
        if not isinstance(expected, torch.Tensor):
            wanted = torch.tensor(expected, dtype=torch.float64)
            actual, expected = torch.tensor(actual, dtype=torch.float64), wanted
        tolerance = solution_tolerance(subject, output, one.source, case)
        comparison = compare_with_room(actual, expected, tolerance, self.device)
        if comparison.verdict == ERROR:
            # zeros would pass the kernels' absolute tolerance
            strict = subject.tolerance(output, ORACLE, case)
            comparison = compare_with_room(actual, expected, strict, self.device)
        elif comparison.passed and (where := left_out(actual, expected, tolerance)):
            comparison = replace(comparison, verdict=FAILED, findings=(where,))
        return comparison

    def _explain(
        self, name: str, one: Round, actual: tuple[Any, ...], refused: Refused
    ) -> None:
        """Say of a wrong answer where it comes from, where that can be seen."""
        known = self._earlier.get(_shapes(actual))
        if known is None or known[0] == id(one):
            return
        with suppress(TypeError, RuntimeError):
            tensors = [
                a for a in actual if isinstance(a, torch.Tensor) and a.numel() > 1
            ]
            earlier = [a for a in known[1] if isinstance(a, torch.Tensor)]
            same = zip(tensors, [a for a in earlier if a.numel() > 1], strict=True)
            if tensors and all(same_bits(a, b) for a, b in same):
                refused.verdict = REWARD_HACK
                refused.reason = "it returned an earlier call's answer to other inputs"

    def _relation(self, relation: Any, one: Round) -> Mapping[str, float]:
        """Judge one relation between calls. Raises Refused."""
        for claim in claims_of(relation, one, self.run):
            result = self._claimed(claim, one)
            if result.verdict == FAILED:
                finding = "; ".join(result.findings)
                why = f"{claim.output} does not follow: {finding}"
                raise Refused(INCORRECT_NUMERICAL, one_line(why, 400))
        return {}

    def _claimed(self, claim: Claim, one: Round) -> Comparison:
        """Return the verdict on a claim, each side as far off as a kernel may be."""
        if claim.judge is not None:
            return claim.verdict()
        bound = claim.bound.tolerance
        if claim.output in one.subject.interface.output_specs:
            allowed = solution_tolerance(
                one.subject, claim.output, one.source, one.case
            )
            bound = looser(bound, doubled(allowed))
        else:
            # computed from several outputs, each of which a kernel rounds as a reference does
            bound = doubled(bound)
        return compare_with_room(claim.actual, claim.expected, bound, self.device)

    def run(self, *arguments: Any) -> Any:
        """Be the `run()` that relations ask; inputs that are filled are written back."""
        names = list(self.asked.subject.interface.input_specs)
        inputs = dict(zip(names, arguments, strict=True))
        filled = self.asked.subject.filled(inputs)
        answer = self.called(inputs, filled, self._draw.choice((_SAME, _OTHER)), {})
        count = len(self.asked.subject.interface.output_specs)
        for name, value in zip(filled, answer[count:], strict=True):
            inputs[name].copy_(value)
        return answer[:count]


def _on_cpu(value: Any) -> Any:
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _rank(verdict: CaseVerdict) -> tuple[int, float]:
    """Return how bad a verdict is, then its greatest error; NaN is the greatest."""
    error = verdict.metrics.get("max_abs", 0.0)
    return ORDER.index(verdict.verdict), math.inf if math.isnan(error) else error


def in_order(asked: EvaluationRounds, secret: int) -> list[tuple[str, Round, int]]:
    """Return the calls for cases in the order in which a judge asks: name, round, slot."""
    every = [
        (name, one, slot)
        for name, rounds in asked.rounds
        for one, slot in _calls_of(rounds)
    ]
    return shuffled(every, secret)


def _calls_of(rounds: Sequence[Round]) -> list[tuple[Round, int]]:
    """Return a case's calls: A, B at the same addresses, A at others, and what is more.

    A law is tested on values A, in calls at both addresses; others have few calls.
    """
    if rounds[0].calls() > 1:
        return [(one, _OTHER if n else _SAME) for n, one in enumerate(rounds)]
    calls = [(one, _SAME) for one in rounds]
    if len(rounds) > 1:
        calls.append((rounds[0], _OTHER))
    return calls


def _shapes(values: Sequence[Any]) -> str:
    return repr([getattr(value, "shape", None) for value in values])
