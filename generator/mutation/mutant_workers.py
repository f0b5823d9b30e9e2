"""Run the mutants of one definition in forks, each with the prepared cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any

from generator.execution.child import Link
from generator.execution.forks import Forks
from generator.execution.outcome import DONE, TIMED_OUT, Outcome
from generator.execution.process_limits import (
    MORE_BYTES,
    limit_memory,
    passing_bytes,
)
from generator.mutation.audit_job import EQUIVALENCE_SECONDS, AuditJob, Planned
from generator.mutation.mutants_result import MutantResult
from generator.results import audits
from generator.results.audits import CAUGHT, SURVIVED
from kernel_judge.reference import load_run

# wall-clock seconds for a second of CPU: on a busy machine a process gets a part of it
PATIENCE = 5.0
GRACE_SECONDS = 10.0
_CHECKING = PATIENCE * EQUIVALENCE_SECONDS + GRACE_SECONDS


def waiting_seconds(job: AuditJob) -> float:
    """Return the wall-clock seconds after which a silent mutant is timed out."""
    return PATIENCE * job.runner.longest + GRACE_SECONDS


def run_all(
    job: AuditJob, lanes: int, waiting: float | None = None
) -> Iterator[tuple[int, MutantResult]]:
    """Yield the place and the result of each mutant, in the order in which they end.

    `lanes` forks run side by side. `waiting` is the timeout of a mutant in wall-clock
    seconds.
    """
    # copies of tensors are no bound of what attention's scores need in passing: the
    # reference has run here
    most = max(job.runner.most_bytes, passing_bytes())
    # once in each fork
    limit = cache(partial(limit_memory, most + MORE_BYTES))

    def work(place: int, link: Link) -> dict[str, Any]:
        limit()
        return asdict(job.audit(place, partial(link.at, within=_CHECKING)))

    seconds = waiting_seconds(job) if waiting is None else waiting
    for place, outcome in Forks(lanes, seconds).run(work, range(len(job.planned))):
        yield place, _result(job.planned[place].result, outcome)


def objection(job: AuditJob, waiting: float | None = None) -> str | None:
    """Return why the reference fails in a fork that runs mutants, None if it passes.

    It passed while it was prepared: in the fork its memory limit may be too small, or
    it changes its process. Mutants would be caught for the same reason.
    """
    name = "the reference"
    single = Planned(
        MutantResult(name, "", SURVIVED), partial(load_run, job.definition.reference)
    )
    alone = replace(job, planned=[single], equivalences=())
    for _, result in run_all(alone, 1, waiting):
        if result.status in (CAUGHT, audits.TIMED_OUT):
            at = " in case ".join(filter(None, (result.test or "run", result.case)))
            return f"{name} itself does not pass {at} where mutants run: {result.why}"
    return None


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
