"""All mutants of one definition, each in turn: the work of an audit's child process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import update_wrapper
from pathlib import Path

from generator.audit.bench import Bench, Load, Raised, Run, loaded
from generator.audit.classes import rendered_class
from generator.audit.domain import domain_mutants
from generator.audit.domain.mutant import DomainMutant
from generator.audit.equivalence import Equivalence, Shown
from generator.audit.generic import generic_mutants
from generator.audit.geometry import reduced, tiny
from generator.audit.result import (
    CAUGHT,
    EQUIVALENT,
    SURVIVED,
    TIMED_OUT,
    MutantResult,
)
from generator.definition import Definition
from generator.inquiry.limits import TimeIsUp, time_limit
from generator.support.recorded import MatchesRecorded

DOMAIN = "domain"
EQUIVALENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Planned:
    """Hold a mutant that is not run yet."""

    result: MutantResult
    load: Load


@dataclass
class Job:
    """Hold one definition's bench, its mutants, and what they may take."""

    definition: Definition
    bench: Bench
    axes: Mapping[str, int]
    planned: list[Planned]
    equivalences: tuple[Equivalence, ...]

    def audit(self, place: int, tell: Callable[[], None]) -> MutantResult:
        """Return what becomes of one mutant; `tell` is called if the tests pass it."""
        mutant = self.planned[place]
        try:
            verdict = self.bench.judge(mutant.load)
        except TimeIsUp as error:
            return timed_out(mutant.result, str(error))
        if verdict is not None:
            return replace(
                mutant.result,
                status=CAUGHT,
                test=verdict.test,
                case=verdict.case,
                why=verdict.why,
            )
        tell()
        shown = self._shown(mutant.load)
        status = EQUIVALENT if shown.equivalent else SURVIVED
        return replace(mutant.result, status=status, why=shown.how)

    def _shown(self, load: Load) -> Shown:
        """Compare on the tiny axes; on the bench's where those are refused.

        What asks for more than the tiny axes have raises there alone.
        """
        shown = Shown(False, "there is nothing to compare with")
        try:
            with time_limit(EQUIVALENCE_SECONDS):
                for equivalence in self.equivalences:
                    try:
                        return equivalence.shown(load())
                    except TimeIsUp:
                        raise
                    except BaseException as error:  # noqa: BLE001
                        shown = Shown(False, f"{Raised(error)} in a random case")
        except TimeIsUp as error:
            return Shown(False, f"takes {error} in random cases")
        return shown


def prepare(
    definition: Definition, recordings: Path | None, tolerance: float | None
) -> Job:
    """Put a definition's reference on the bench, on shorter axes where it takes them.

    Raises whatever the dataset's own code raises on the axes as they are.
    """
    short = reduced(definition.op_type, definition.const_axes)
    own = loaded(definition.reference)()
    bench = _proven(definition, short, recordings, tolerance, own)
    short_fits = not any(why.startswith("raised ") for why in bench.left_out.values())
    if short and not short_fits:
        # it does not take other lengths: on those that it declares
        short = {}
        bench = _proven(definition, short, recordings, tolerance, own)
    smallest = tiny(definition.op_type, definition.const_axes) if short_fits else {}
    equivalences = []
    if bench.cls.oracle is not None and bench.cls.unresolved is None:
        for axes in (smallest, short) if smallest != short else (short,):
            tests = rendered_class(definition, axes, tolerance)
            equivalences.append(Equivalence(tests, own, tests.oracle))
        # before children are forked: one that replaces another has them as well
        with suppress(Exception, TimeIsUp), time_limit(EQUIVALENCE_SECONDS):
            equivalences[0].draw_all()
        if not equivalences[0].draws:
            # it refuses these axes: on those of the bench
            del equivalences[:-1]
    return Job(
        definition,
        bench,
        short,
        list(_planned(definition, bench.cls, own)),
        tuple(equivalences),
    )


def _proven(
    definition: Definition,
    axes: Mapping[str, int],
    recordings: Path | None,
    tolerance: float | None,
    run: Run,
) -> Bench:
    tests = rendered_class(definition, axes, tolerance)
    # a recording is of the whole geometry
    bench = Bench.of(tests, None if axes else recordings)
    bench.prove(run)
    return bench


def _planned(
    definition: Definition, cls: type[MatchesRecorded], own: Run
) -> Iterator[Planned]:
    for mutant in generic_mutants(definition.reference):
        result = MutantResult(
            mutant.name, mutant.kind, SURVIVED, mutant.line, mutant.before, mutant.after
        )
        yield Planned(result, loaded(mutant.source))
    for other in domain_mutants(cls.definition()):
        result = MutantResult(f"{DOMAIN}: {other.name}", DOMAIN, SURVIVED)
        yield Planned(result, _wrapping(other, loaded(definition.reference)))


def _wrapping(mutant: DomainMutant, load: Load) -> Load:
    def wrapped() -> Run:
        run = load()
        # with the parameters of the reference: those are not what it gets wrong
        return update_wrapper(mutant.wrap(run), run)

    return wrapped


def timed_out(result: MutantResult, why: str) -> MutantResult:
    """Return that a mutant took longer than it may."""
    return replace(result, status=TIMED_OUT, why=why)


def ended(result: MutantResult, how: str) -> MutantResult:
    """Return that a mutant took its process down, which no test passes."""
    return replace(result, status=CAUGHT, test="run", why=how)
