"""One definition's audit: its runner, its mutants, and the result of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from pathlib import Path

from generator.dataset.definition import LoadedDefinition
from generator.execution.process_limits import TimeIsUp, time_limit
from generator.mutation.equivalence import Equivalence, EquivalenceProof
from generator.mutation.generic import generic_mutants
from generator.mutation.generic.code import Edit, SourceCode
from generator.mutation.generic.precision import is_of_dtype_alone
from generator.mutation.mutant_runner import Load, MutantRunner
from generator.mutation.mutants_result import MutantResult
from generator.mutation.raised import Raised, Run
from generator.mutation.unread import unread_inputs
from generator.mutation.watch import Watch
from generator.ops.domain_mutants import domain_mutants
from generator.ops.factor_mutants import factor_mutants, usual_factors
from generator.ops.geometry import fitting, for_limits, reduced, tiny
from generator.ops.limit_mutants import Maxima, limit_mutants
from generator.ops.mutants import DomainMutant
from generator.results.audits import (
    CAUGHT,
    EQUIVALENT,
    SURVIVED,
    TIMED_OUT,
)
from generator.rules.subjects import subject_of
from kernel_judge.reference import load_run

DOMAIN, LIMIT = "domain", "limit"
# the status of a mutant that is still to run in slow cases
PENDING = "pending"
NO_OTHER_VALUE = "no other value in any case, nor in 200 random cases"
EQUIVALENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Planned:
    """A mutant that has not run yet; `result` names it.

    `edit` is its change of the text, if it is one; it `is_cast` if that changes a dtype or
    a precision alone.
    """

    result: MutantResult
    load: Load
    edit: Edit | None = None
    is_cast: bool = False


@dataclass
class AuditJob:
    """One definition's runner, its mutants, and the random cases for survivors."""

    definition: LoadedDefinition
    runner: MutantRunner
    axes: Mapping[str, int]
    planned: list[Planned]
    equivalences: tuple[Equivalence, ...]

    def audit(self, place: int, on_survival: Callable[[], None]) -> MutantResult:
        """Run one mutant; call `on_survival` if it passes all tests of quick cases.

        One that returns the reference's bits is called again only if it does not return
        them in the random cases as well: those are many calls in a row. One that does is
        PENDING where there are slow cases.
        """
        mutant = self.planned[place]
        random = bool(self.equivalences)
        slow = False if self.shares_slow_cases else None
        try:
            catch = self.runner.judge(mutant.load, repeats=not random, slow=slow)
            if catch is None:
                on_survival()
                proof = self._prove_equivalence(mutant.load)
                if slow is False:
                    if proof.same_bits:
                        return replace(mutant.result, status=PENDING, why=proof.how)
                    catch = self.runner.judge(mutant.load, repeats=False, slow=True)
                if catch is None and proof.equivalent:
                    return replace(mutant.result, status=EQUIVALENT, why=proof.how)
                if catch is None and random:
                    catch = self.runner.judge(mutant.load)
        except TimeIsUp as error:
            return replace(mutant.result, status=TIMED_OUT, why=str(error))
        if catch is not None:
            return replace(mutant.result, status=CAUGHT, **vars(catch))
        return replace(mutant.result, status=SURVIVED, why=proof.how)

    def unchanged(
        self, places: Collection[int], on_proof: Callable[[], None], *, slow: bool
    ) -> list[int] | None:
        """Return which mutants change no value while the reference runs in their place.

        That is in slow cases, or in all others and in random ones; `on_proof` is called
        before these. None where it can't be told: the reference returned other bits, or
        failed where its proof was postponed.
        """
        edits = {n: e for n in places if (e := self.planned[n].edit) is not None}
        try:
            watch = Watch.of(self.definition.reference, edits)
            load = self._load if watch is None else watch.load
            # the shortest cases first: most mutants change a value there
            if not slow:
                on_proof()
                if not self._prove_equivalence(load).same_bits:
                    return None
            postponed = self.runner.postponed if slow else ()
            catch = self.runner.judge(
                load, repeats=False, slow=slow, exactly=True, besides=postponed
            )
            if catch is not None or (slow and not self.runner.prove_postponed(load())):
                return None
        except (TimeIsUp, SyntaxError, ValueError):
            return None
        return [] if watch is None else sorted(watch.unchanged)

    def _load(self) -> Run:
        return load_run(self.definition.reference)

    @property
    def shares_slow_cases(self) -> bool:
        """Return whether there are cases that mutants run in after all others."""
        slow = any(prepared.is_slow for prepared in self.runner.prepared_cases)
        return slow and bool(self.equivalences)

    def settle(self, pending: MutantResult, place: int) -> MutantResult:
        """Return the result of a PENDING mutant: it runs alone in the slow cases."""
        load = self.planned[place].load
        try:
            catch = self.runner.judge(load, repeats=False, slow=True)
        except TimeIsUp as error:
            return replace(pending, status=TIMED_OUT, why=str(error))
        if catch is not None:
            return replace(pending, status=CAUGHT, **vars(catch))
        return replace(pending, status=EQUIVALENT)

    def groups(self, places: Sequence[int]) -> list[list[int]]:
        """Return the places in groups that can be planted together.

        All changes of a group at once return the reference's bits in the quick cases.
        """
        groups: list[list[int]] = []
        for place in places:
            fitting = (g for g in groups if self.are_same([*g, place], slow=False))
            group = next(fitting, None)
            if group is None:
                groups.append([place])
            else:
                group.append(place)
        return groups

    def are_same(self, places: Sequence[int], *, slow: bool) -> bool:
        """Return whether changes planted together return the reference's bits."""
        edits = [e for place in places if (e := self.planned[place].edit) is not None]
        reference = self.definition.reference
        try:
            source = SourceCode.parse(reference).with_edits(edits)
        except ValueError:
            return False
        load = partial(load_run, source)
        try:
            catch = self.runner.judge(load, repeats=False, slow=slow, exactly=True)
        except TimeIsUp:
            return False
        return catch is None

    def _prove_equivalence(self, load: Load) -> EquivalenceProof:
        """Compare on the tiny axes, or on the runner's if the mutant raises on those.

        A mutant may raise only because the tiny axes are too short for it.
        """
        why = "there is nothing to compare with"
        try:
            with time_limit(EQUIVALENCE_SECONDS):
                for equivalence in self.equivalences:
                    try:
                        return equivalence.check(load())
                    except TimeIsUp:
                        raise
                    except BaseException as error:  # noqa: BLE001
                        why = f"{Raised(error)} in a random case"
        except TimeIsUp as error:
            why = f"takes {error} in random cases"
        return EquivalenceProof(False, why)


def prepare(
    definition: LoadedDefinition,
    recordings: Path | None,
    tolerance: float | None,
    dataset: Path | None = None,
    limits: Maxima | None = None,
    sharing: int = 1,
    postpones: bool = False,
) -> AuditJob:
    """Return a definition's audit, on shorter axes if its reference accepts those.

    `dataset` has its workloads, whose sizes the runner has beside the op's cases. With
    `limits`, the maxima of those, the mutants are those that are right up to a limit.
    `sharing` is the number of processes that share the memory. With `postpones`, the
    reference is not run in slow workloads before the fork that tells which mutants change
    no value there.
    Raises what the definition's code raises on the declared axes.
    """
    shorten = reduced if limits is None else for_limits
    short = shorten(definition.op_type, definition.const_axes)
    unchanged = load_run(definition.reference)
    proven = partial(
        _proven_bench,
        definition,
        recordings=recordings,
        tolerance=tolerance,
        run=unchanged,
        dataset=dataset,
        limits=limits is not None,
        sharing=sharing,
        postpones=postpones and limits is None,
    )
    runner = proven(short)
    if short:
        runner.drop_raising_workloads()
    short_fits = not any(catch.raised for catch in runner.left_out)
    if short and not short_fits:
        # the reference accepts only the declared lengths
        short = {}
        runner = proven(short)
    smallest = tiny(definition.op_type, definition.const_axes) if short_fits else {}
    equivalences = []
    # a case of few rows says nothing of a mutant that is right for those
    if (
        limits is None
        and runner.subject.op.oracle is not None
        and runner.subject.unresolved is None
    ):
        for axes in (smallest, short) if smallest != short else (short,):
            subject = subject_of(definition, axes, tolerance)
            equivalences.append(Equivalence(subject, unchanged, subject.op.oracle))
        # before the fork, so that each child has them
        with suppress(Exception, TimeIsUp), time_limit(EQUIVALENCE_SECONDS):
            equivalences[0].draw_all()
        if not equivalences[0].draws:
            # the reference accepts no tiny axes: compare on the runner's
            del equivalences[:-1]
    return AuditJob(
        definition,
        runner,
        short,
        list(_planned(definition, runner, limits)),
        tuple(equivalences),
    )


def _proven_bench(
    definition: LoadedDefinition,
    axes: Mapping[str, int],
    recordings: Path | None,
    tolerance: float | None,
    run: Run,
    dataset: Path | None,
    limits: bool,
    sharing: int,
    postpones: bool,
) -> MutantRunner:
    subject = subject_of(definition, axes, tolerance, dataset)
    # recordings have the declared axes
    replayed = None if axes else recordings
    # what crosses limits are the values as they are
    whole = {**definition.const_axes, **axes}
    fit = fitting(definition.op_type, whole) if axes and not limits else None
    runner = MutantRunner.of(
        subject, replayed, dataset, limits=limits, sharing=sharing, fit=fit
    )
    # where nothing else is random, all mutants run in all cases
    is_random = subject.op.oracle is not None and subject.unresolved is None
    runner.prove(run, postpones=postpones and is_random)
    return runner


def _planned(
    definition: LoadedDefinition, runner: MutantRunner, limits: Maxima | None
) -> Iterator[Planned]:
    subject = runner.subject
    if limits is not None:
        load = partial(load_run, definition.reference)
        unread = unread_inputs(definition.reference)
        known = subject.definition
        # of what the op's own cases have by default
        cases = (
            s.inputs for s in runner.prepared_cases if s.case.size in subject.sizes
        )
        usual = usual_factors(known, cases)
        usual = {name: size for name, size in usual.items() if name not in unread}
        for limit in (
            *limit_mutants(known, limits, unread),
            *factor_mutants(known, usual),
        ):
            result = MutantResult(f"{LIMIT}: {limit.name}", LIMIT, SURVIVED)
            yield Planned(result, _wrapping(limit, load))
        return
    for mutant in generic_mutants(definition.reference):
        result = MutantResult(
            mutant.name, mutant.kind, SURVIVED, mutant.line, mutant.before, mutant.after
        )
        is_cast = is_of_dtype_alone(mutant.edit)
        load = partial(load_run, mutant.source)
        yield Planned(result, load, mutant.edit, is_cast)
    for other in domain_mutants(subject.definition):
        result = MutantResult(f"{DOMAIN}: {other.name}", DOMAIN, SURVIVED)
        yield Planned(result, _wrapping(other, partial(load_run, definition.reference)))


def _wrapping(mutant: DomainMutant, load: Load) -> Load:
    def wrapped() -> Run:
        run = load()
        # keep the reference's signature, which test_contract checks
        return update_wrapper(mutant.wrap(run), run)

    return wrapped
