"""Run the mutants of one definition in forks, each with the prepared cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any

from generator.execution.child import Link
from generator.execution.forks import Forks, Work
from generator.execution.outcome import DONE, TIMED_OUT, CannotRun, Outcome
from generator.execution.process_limits import (
    MORE_BYTES,
    TimeIsUp,
    limit_memory,
    passing_bytes,
)
from generator.mutation.audit_job import (
    EQUIVALENCE_SECONDS,
    NO_OTHER_VALUE,
    PENDING,
    AuditJob,
)
from generator.mutation.mutants_result import MutantResult
from generator.results import audits
from generator.results.audits import CAUGHT, EQUIVALENT, SURVIVED
from kernel_judge.reference import load_run

# wall-clock seconds for a second of CPU: on a busy machine a process gets a part of it
PATIENCE = 5.0
GRACE_SECONDS = 10.0
_CHECKING = PATIENCE * EQUIVALENCE_SECONDS + GRACE_SECONDS
# what a fork is asked for, of some mutants by their places
_UNCHANGED, _UNCHANGED_SLOW = "unchanged", "unchanged in slow cases"
_GROUPED, _TOGETHER, _ALONE = "grouped", "together", "alone"
PlacesWork = Callable[[Sequence[int], Link], Any]
Ask = Callable[[str, Sequence[Sequence[int]]], Iterator[tuple[Sequence[int], Outcome]]]


def waiting_seconds(job: AuditJob) -> float:
    """Return the wall-clock seconds after which a silent mutant is timed out."""
    return PATIENCE * job.runner.longest + GRACE_SECONDS


def run_all(
    job: AuditJob, lanes: int, waiting: float | None = None
) -> Iterator[tuple[int, MutantResult]]:
    """Yield the place and the result of each mutant, in the order in which they end.

    `lanes` forks run side by side. `waiting` is the timeout of a mutant in wall-clock
    seconds. Raises CannotRun where the reference itself fails in a fork.
    """
    seconds = waiting_seconds(job) if waiting is None else waiting

    def audited(places: Sequence[int], link: Link) -> dict[str, Any]:
        on_survival = partial(link.at, within=_CHECKING + seconds)
        return asdict(job.audit(places[0], on_survival))

    pending: dict[int, MutantResult] = {}
    with _asking(job, lanes, seconds, {_ALONE: audited}) as ask:
        same = unchanged(job, [*range(len(job.planned))], seconds, ask, slow=False)
        for place in same:
            result = replace(job.planned[place].result, why=NO_OTHER_VALUE)
            if job.shares_slow_cases:
                pending[place] = replace(result, status=PENDING)
            else:
                yield place, replace(result, status=EQUIVALENT)
        places = [[place] for place in range(len(job.planned)) if place not in same]
        for (place,), outcome in ask(_ALONE, places):
            result = _result(job.planned[place].result, outcome)
            if result.status == PENDING:
                pending[place] = result
            else:
                yield place, result
    if job.shares_slow_cases:
        yield from _settled(job, lanes, seconds, dict(sorted(pending.items())))


def _settled(
    job: AuditJob, lanes: int, seconds: float, pending: Mapping[int, MutantResult]
) -> Iterator[tuple[int, MutantResult]]:
    """Yield the results of mutants that returned the reference's bits in quick cases.

    In slow ones those that change no value there don't run. Casts are run together; where
    that gives other bits, each runs alone. Raises CannotRun if the reference itself fails.
    """

    def grouped(places: Sequence[int], link: Link) -> list[list[int]]:
        link.at(within=_CHECKING + seconds)
        return job.groups(places)

    def are_same(places: Sequence[int], link: Link) -> bool:
        return job.are_same(places, slow=True)

    def alone(places: Sequence[int], link: Link) -> dict[str, Any]:
        return asdict(job.settle(pending[places[0]], places[0]))

    left = set(pending)
    works = {_GROUPED: grouped, _TOGETHER: are_same, _ALONE: alone}
    with _asking(job, lanes, seconds, works) as ask:
        same = unchanged(job, [*pending], seconds, ask, slow=True)
        for one in left.intersection(same):
            left.remove(one)
            yield one, replace(pending[one], status=EQUIVALENT)
        casts = [place for place in sorted(left) if job.planned[place].is_cast]
        groups: list[list[int]] = []
        if len(casts) > 1:
            ((_, outcome),) = ask(_GROUPED, [casts])
            groups = outcome.value if outcome.status == DONE else []
        groups = [[p for p in group if p in casts] for group in groups]
        groups = [group for group in groups if len(group) > 1]
        for group, outcome in ask(_TOGETHER, groups):
            if outcome.status == DONE and outcome.value is True:
                for one in left.intersection(group):
                    left.remove(one)
                    yield one, replace(pending[one], status=EQUIVALENT)
        for (place,), outcome in ask(_ALONE, [[place] for place in sorted(left)]):
            yield place, _result(job.planned[place].result, outcome)


@contextmanager
def _asking(
    job: AuditJob, lanes: int, waiting: float, works: Mapping[str, PlacesWork]
) -> Iterator[Ask]:
    """Give what asks the same forks for each of some works on lists of places.

    A new fork for each work would need new memory, and copy what it writes to.
    """

    def same(places: Sequence[int], link: Link, *, slow: bool) -> list[int] | None:
        on_proof = partial(link.at, within=_CHECKING + waiting)
        return job.unchanged(places, on_proof, slow=slow)

    every: dict[str, PlacesWork] = {
        _UNCHANGED: partial(same, slow=False),
        _UNCHANGED_SLOW: partial(same, slow=True),
        **works,
    }
    work = _limited(job, lambda task, link: every[task[0]](task[1], link))

    def ask(
        what: str, asked: Sequence[Sequence[int]]
    ) -> Iterator[tuple[Sequence[int], Outcome]]:
        for at, outcome in forks.run(work, [(what, places) for places in asked]):
            yield asked[at], outcome

    with closing(Forks(lanes, waiting, stay=True)) as forks:
        yield ask


def _limited(job: AuditJob, work: Callable[[Any, Link], Any]) -> Work:
    """Return work that limits the memory of the fork that it runs in."""
    # copies of tensors are no bound of what attention's scores need in passing: the
    # reference has run here
    most = max(job.runner.most_bytes, passing_bytes())
    # in postponed cases it has not
    most = max(most, job.runner.room) if job.runner.postponed else most
    # once in each fork
    limit = cache(partial(limit_memory, most + MORE_BYTES))

    def limited(task: Any, link: Link) -> Any:
        limit()
        return work(task, link)

    return limited


def objection(
    job: AuditJob, waiting: float | None = None, *, slow: bool | None = None
) -> str | None:
    """Return why the reference fails in a fork that runs mutants, None if it passes.

    It passed while it was prepared: in the fork its memory limit may be too small, or
    it changes its process. Mutants would be caught for the same reason. Where it returns
    the same bits again it is not called a second time. `slow` asks for those of the cases
    that are, or are not.
    """
    name = "the reference"
    planned = MutantResult(name, "", SURVIVED)
    load = partial(load_run, job.definition.reference)

    def work(place: int, link: Link) -> dict[str, Any]:
        try:
            catch = job.runner.judge(load, repeats=False, slow=slow)
        except TimeIsUp as error:
            return asdict(replace(planned, status=audits.TIMED_OUT, why=str(error)))
        caught = {} if catch is None else {"status": CAUGHT, **vars(catch)}
        return asdict(replace(planned, **caught))

    seconds = waiting_seconds(job) if waiting is None else waiting
    ((_, outcome),) = Forks(1, seconds).run(_limited(job, work), range(1))
    result = _result(planned, outcome)
    if result.status in (CAUGHT, audits.TIMED_OUT):
        at = " in case ".join(filter(None, (result.test or "run", result.case)))
        return f"{name} itself does not pass {at} where mutants run: {result.why}"
    return None


def unchanged(
    job: AuditJob, places: Sequence[int], waiting: float, ask: Ask, *, slow: bool
) -> list[int]:
    """Return which mutants change no value while the reference runs in a fork.

    That is in slow cases, or in all others and random ones. Raises CannotRun where the
    reference does not pass there.
    """
    if job.equivalences:
        what = _UNCHANGED_SLOW if slow else _UNCHANGED
        ((_, outcome),) = ask(what, [places])
        # a mutant may have written it
        if outcome.status == DONE and isinstance(outcome.value, list):
            return [place for place in places if place in outcome.value]
    only = slow if job.shares_slow_cases else None
    if (why := objection(job, waiting, slow=only)) is not None:
        raise CannotRun(why)
    return []


def _result(planned: MutantResult, outcome: Outcome) -> MutantResult:
    """Return a mutant's result: one that ends its process is caught."""
    if outcome.status == TIMED_OUT:
        return replace(planned, status=audits.TIMED_OUT, why=outcome.why)
    try:
        if outcome.status == DONE:
            return MutantResult(**outcome.value)
    except TypeError:
        # the mutant wrote it
        pass
    return replace(planned, status=CAUGHT, test="run", why=outcome.why)
