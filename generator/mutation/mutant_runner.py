"""The tests that a definition's mutants run, with inputs that are made once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from generator.execution.process_limits import TimeIsUp, time_limit
from generator.mutation.prepared_case import SLOW_SECONDS, Catch, PreparedCase
from generator.mutation.raised import Raised, Run, first_line, guarded, reason
from generator.mutation.sorting import sorted_once
from generator.mutation.widening import widened_by_table
from generator.running.free_memory import available_bytes, needed_bytes
from generator.running.recorded_cases import recorded_cases
from generator.running.workload_case import Fit
from generator.running.workloads import Workloads, why_not_asked
from kernel_judge import checks
from kernel_judge.checks.pairs import results
from kernel_judge.definition import LIMITS, WORKLOAD, Case
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.repeated import sampled
from kernel_judge.inputs.trial import Trial, same_bits
from kernel_judge.recording.recording_file import recording_path
from kernel_judge.skipping import Skip
from kernel_judge.subject import Subject

Load = Callable[[], Run]
# in the order in which they run: first those that need one call of run()
FIRST = (
    "test_contract",
    "test_output_shape",
    "test_output_dtype",
    "test_matches_oracle",
)
RECORDED = "test_matches_recorded"
LATER = ("test_inputs_unmodified", "test_determinism", RECORDED)
# these depend on inputs and results alone: if a mutant returns the reference's bits, as
# most that pass them do, they need not run again
_OF_RESULTS = frozenset(("test_matches_oracle", RECORDED))
_ORACLE = "test_matches_oracle"
# calls run() again, which takes half of the time of a mutant that passes
_REPEATING = "test_determinism"
# CPU time limit of one test: _FACTOR times what all tests of the reference took in that
# case, plus _FLOOR seconds
_FACTOR, _FLOOR = 20.0, 0.5
_CPU = torch.device("cpu")


@dataclass
class MutantRunner:
    """A definition's tests and cases, those that catch most per second first.

    `left_out` are the tests that the unchanged reference fails, with the reason;
    `not_asked` maps the cases without a comparison to the reason. `most_bytes` is what a
    process needs that runs all cases, `room` what is left of its share of the memory.
    """

    subject: Subject
    recordings: Path | None
    prepared_cases: list[PreparedCase] = field(default_factory=list)
    left_out: list[Catch] = field(default_factory=list)
    not_asked: dict[str, str] = field(default_factory=dict)
    most_bytes: int = 0
    room: int = 0
    seconds: float = 0.0

    @classmethod
    def of(
        cls,
        subject: Subject,
        recordings: Path | None,
        dataset: Path | None = None,
        *,
        limits: bool = False,
        sharing: int = 1,
        fit: Fit | None = None,
    ) -> MutantRunner:
        """Make the inputs of all cases of the default sizes that fit the memory.

        So are those of the dataset's workloads that a CPU is asked for by default, of
        the cases with factors far from the usual, and with `limits` of all that cross
        limits. `sharing` is the number of processes that share the memory; `fit` changes
        what workloads state, for shorter axes.
        """
        runner = cls(subject, recordings)
        definition, cases = subject.definition, subject.cases()
        cases += [c for c in subject.cases((LIMITS,)) if limits or c.moved]
        for workload in Workloads(dataset, "fit", fit).of(subject):
            if why_not_asked(definition, workload, _CPU) is None:
                cases = [*cases, workload]
        known: Iterable[Case] = ()
        if recordings is not None:
            path = recording_path(recordings, subject.op_type, subject.name)
            known = recorded_cases(subject, recordings, cases) if path.exists() else ()
        recorded = {case.name for case in known}
        room, held, passing = available_bytes(_CPU), 0, 0
        for case in cases:
            size = tensor_bytes(definition, case)
            more = needed_bytes(definition, case, subject.op.peak_bytes) - size
            most = held + size + max(more, passing)
            if room is not None and most > room / sharing:
                share = f"{most / 2**30:.1f} of {room / sharing / 2**30:.1f} GiB"
                runner.not_asked[case.name] = f"needs {share} of memory"
                continue
            trial = subject.trial(case, run=_nothing)
            try:
                inputs = trial.inputs
            except Exception:
                if case.size != WORKLOAD:
                    raise
                # on shorter axes the tensors of its file may have other shapes
                runner.not_asked[case.name] = "its file has no inputs of these axes"
                continue
            # without recordings the axes are short, and small weights are copied
            # and compared faster as tensors than as lazy weights
            if recordings is None:
                inputs = {n: fresh(value, _CPU) for n, value in inputs.items()}
            is_recorded = case.name in recorded
            runner.prepared_cases.append(
                PreparedCase(case, inputs, is_recorded, subject.op.oracle)
            )
            # one process keeps the inputs of all cases, of lazy weights the tensors
            held, passing = held + size, max(more, passing)
            runner.most_bytes = held + passing
        runner.room = 0 if room is None else int(room / sharing) - held
        runner._keep_answers()
        return runner

    def prove(self, run: Run, *, postpones: bool = False) -> None:
        """Run the unchanged reference; leave out the tests that it fails.

        With `postpones`, not in workloads that took the oracle long: the fork that runs
        mutants there proves the reference as well (`prove_postponed`).
        """
        for prepared in self.prepared_cases:
            is_workload = prepared.case.size == WORKLOAD
            prepared.is_postponed = postpones and is_workload and prepared.is_slow
        self._prove(run, [s for s in self.prepared_cases if not s.is_postponed])
        self.seconds = sum(prepared.seconds for prepared in self.prepared_cases)

    @property
    def postponed(self) -> list[str]:
        """Return the names of the cases in which the reference is still to be proven."""
        return [s.case.name for s in self.prepared_cases if s.is_postponed]

    def prove_postponed(self, run: Run) -> bool:
        """Run the reference where that was postponed; return whether it passes there."""
        cases = [prepared for prepared in self.prepared_cases if prepared.is_postponed]
        of_oracle = [prepared.seconds for prepared in cases]
        failing = len(self.left_out)
        self._prove(run, cases)
        for prepared, seconds in zip(cases, of_oracle, strict=True):
            # in every fork the same cases are slow
            prepared.seconds = max(prepared.seconds, seconds)
            prepared.is_postponed = False
        return len(self.left_out) == failing and all(s.is_compared for s in cases)

    def _prove(self, run: Run, cases: Iterable[PreparedCase]) -> None:
        for prepared in cases:
            begun = time.process_time()
            trial = self._trial(prepared, guarded(run))
            subject = self._subject(prepared, run)
            with sorted_once(), widened_by_table():
                for name in (*FIRST, *LATER):
                    seconds = time.process_time() - begun
                    if name == _REPEATING and seconds > SLOW_SECONDS:
                        # a workload asks for comparisons alone, and in others the
                        # fork that runs mutants calls it again
                        continue
                    catch = self._run_test(name, prepared, trial, subject)
                    if catch is not None:
                        self.left_out.append(catch)
            if prepared.is_compared:
                self.not_asked.pop(prepared.case.name, None)
            prepared.seconds = time.process_time() - begun
            if prepared.has_answer:
                with suppress(Exception):
                    prepared.results = results(self.subject, trial)

    def drop_raising_workloads(self) -> None:
        """Leave out the workloads in which the unchanged reference raises.

        On shorter axes the numbers of experts or tokens in its file may lie beyond them.
        """
        workloads = {
            s.case.name for s in self.prepared_cases if s.case.size == WORKLOAD
        }
        raised = {c.case: c.why for c in self.left_out if c.raised}
        dropped = {name: raised[name] for name in raised if name in workloads}
        self.not_asked |= dropped
        self.prepared_cases = [
            prepared
            for prepared in self.prepared_cases
            if prepared.case.name not in dropped
        ]
        self.left_out = [c for c in self.left_out if c.case not in dropped]

    @property
    def objection(self) -> str | None:
        """Return why no case can catch anything, None where the reference passes in one.

        One in which nothing is compared would let every mutant survive.
        """
        if any(s.is_compared or s.is_postponed for s in self.prepared_cases):
            return None
        for catch in self.left_out:
            return f"the reference itself does not pass {catch}"
        why = [f"{case}: {why}" for case, why in self.not_asked.items()]
        return f"nothing was compared: {why[0] if why else 'there is no case'}"

    @property
    def longest(self) -> float:
        """Return the CPU time limit of a mutant in seconds."""
        tests = len(FIRST) + len(LATER)
        return tests * (
            _FLOOR * (len(self.prepared_cases) + 1) + _FACTOR * self.seconds
        )

    def judge(
        self,
        load: Load,
        *,
        repeats: bool = True,
        slow: bool | None = None,
        exactly: bool = False,
        besides: Collection[str] = (),
    ) -> Catch | None:
        """Return the first test that catches a mutant, None if all pass.

        Without `repeats`, a mutant is not called again in a case in which it returned
        the reference's bits. `slow` asks only those of the cases that are, or are not.
        `exactly` catches what returns other bits; `besides` are cases to leave out. Raises
        TimeIsUp if a test takes far longer than for the reference.
        """
        try:
            with time_limit(_FLOOR):
                run = load()
        except TimeIsUp:
            raise
        except BaseException as error:  # noqa: BLE001
            return Catch("load", "", str(Raised(error)), raised=True)
        finally:
            # the next mutant must not inherit the dtype that this one set
            torch.set_default_dtype(torch.float32)
        with sorted_once(), widened_by_table():
            return self._first_catch(run, repeats, slow, exactly, besides)

    def _first_catch(
        self,
        run: Run,
        repeats: bool,
        slow: bool | None,
        exactly: bool,
        besides: Collection[str],
    ) -> Catch | None:
        self.prepared_cases.sort(
            key=lambda prepared: -prepared.catches / (prepared.seconds + 1e-3)
        )
        # the later tests reuse the calls of the first ones
        trials = [
            (
                prepared,
                self._trial(prepared, guarded(run)),
                self._subject(prepared, run),
            )
            for prepared in self.prepared_cases
            if slow in (None, prepared.is_slow) and prepared.case.name not in besides
        ]
        for _, trial, _ in trials:
            # figures of what is wrong take longer than to see that it is
            trial.brief = True
        left_out = {(catch.test, catch.case) for catch in self.left_out}
        of_results = _OF_RESULTS if repeats else {*_OF_RESULTS, _REPEATING}
        for names in (FIRST, LATER):
            for prepared, trial, subject in trials:
                for name in names:
                    if (name, prepared.case.name) in left_out:
                        continue
                    with time_limit(_FLOOR + _FACTOR * prepared.seconds):
                        catch = self._run_test(
                            name, prepared, trial, subject, of_results, exactly
                        )
                    if catch is not None:
                        prepared.catches += 1
                        return catch
        return None

    def _run_test(
        self,
        name: str,
        prepared: PreparedCase,
        trial: Trial,
        subject: Subject,
        of_results: Collection[str] = _OF_RESULTS,
        exactly: bool = False,
    ) -> Catch | None:
        """Return how a test fails, None if it passes or is skipped."""
        if name == RECORDED and not prepared.is_recorded:
            return None
        if prepared.case.size == LIMITS and name != _ORACLE:
            return None
        try:
            if name in of_results and (exactly or prepared.results is not None):
                known, now = prepared.results, results(subject, trial)
                if known is not None and same_results(known, now):
                    return None
                if exactly:
                    return Catch(name, prepared.case.name, "other bits")
            if name == RECORDED:
                assert self.recordings is not None
                checked = checks.recorded(subject, trial, self.recordings)
            else:
                checked = checks.CHECKS[name](subject, trial)
        except TimeIsUp:
            raise
        except Skip:
            return None
        except Raised as error:
            return Catch(name, prepared.case.name, str(error), raised=True)
        except AssertionError as error:
            return Catch(name, prepared.case.name, reason(str(error)))
        except Exception as error:  # noqa: BLE001
            # an error inside the test is a failure as well
            kind = type(error).__name__
            return Catch(name, prepared.case.name, f"{kind}: {first_line(error)}")
        if checked.defect is None:
            if checked.skipped is not None and name in _OF_RESULTS:
                self.not_asked.setdefault(prepared.case.name, str(checked.skipped))
            elif checked.comparisons:
                prepared.is_compared = True
            return None
        return Catch(name, prepared.case.name, reason(checked.defect))

    def _subject(self, prepared: PreparedCase, run: Run) -> Subject:
        """Return the subject with another run(), and the oracle's answer of a case."""
        op = replace(self.subject.op, oracle=prepared.oracle)
        return replace(self.subject.with_run(run), op=op)

    def _trial(self, prepared: PreparedCase, run: Run) -> Trial:
        inputs = prepared.inputs
        trial = self.subject.trial(
            prepared.case, run=run, make_inputs=lambda *ignored: inputs
        )
        trial.error_maps = None
        return trial

    @widened_by_table()
    def _keep_answers(self) -> None:
        """Call the oracle once a case, and let the tests reuse its answer."""
        oracle = self.subject.op.oracle
        is_alone = self.subject.op.answers_alone
        if oracle is None or (self.subject.unresolved is not None and not is_alone):
            return
        for prepared in tuple(self.prepared_cases):
            begun = time.process_time()
            trial = sampled(self._trial(prepared, _nothing))
            try:
                answer = oracle(trial.definition, trial.lazy_inputs())
            except Exception:
                if prepared.case.size != WORKLOAD:
                    raise
                # on shorter axes its file's numbers of tokens may lie beyond them
                self.prepared_cases.remove(prepared)
                self.not_asked[prepared.case.name] = (
                    "its file has no answer on these axes"
                )
                continue
            prepared.oracle, prepared.has_answer = partial(_answered, answer), True
            prepared.seconds = time.process_time() - begun


def same_results(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether both hold the same number of values with the same bits."""
    return len(first) == len(second) and all(map(same_bits, first, second))


def _nothing(*ignored: Any) -> None:
    """Replace run() in a trial that only makes inputs."""


def _answered(answer: Any, *ignored: Any) -> Any:
    """Replace an oracle by its answer."""
    return answer
