"""The bench that a definition's mutants are put on: its tests, inputs made once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.audit.sorting import sorted_once
from generator.audit.widening import widened_by_table
from generator.inquiry.limits import TimeIsUp, time_limit
from generator.support.definition import Case
from generator.support.memory import shortage
from generator.support.recorded import MatchesRecorded, recorded_cases
from generator.support.recording import recording_path
from generator.support.tiled import fresh
from generator.support.trial import Inputs, Trial, same_bits
from generator.wording import one_line

Run = Callable[..., Any]
Load = Callable[[], Run]
# in the order in which they are asked: what needs one call of run(), then the rest
FIRST = (
    "test_contract",
    "test_output_shape",
    "test_output_dtype",
    "test_matches_oracle",
)
LATER = ("test_inputs_unmodified", "test_determinism", "test_matches_recorded")
# what these say follows from inputs and results: of the reference's own bits they say
# what they said before, and most mutants that pass them give those
_OF_RESULTS = frozenset(("test_matches_oracle", "test_matches_recorded"))
# a test of a mutant may take so many times as long as all of the reference's in that
# case, and so much more: seconds of CPU
_FACTOR, _FLOOR = 20.0, 0.5
_SHORT = 160
_CPU = torch.device("cpu")


class Raised(Exception):
    """Carry what `run()` itself raised through the tests, SystemExit included."""

    def __init__(self, cause: BaseException) -> None:
        kind, text = type(cause).__name__, _text(cause)
        super().__init__(f"raised {kind}: {text}" if text else f"raised {kind}")


@dataclass(frozen=True)
class Verdict:
    """Tell which test in which case caught a mutant first, and what it said."""

    test: str
    case: str
    why: str


@dataclass
class Stand:
    """Keep what is made once of a case: inputs, and the oracle's answer to them.

    `results` are the reference's, None where the oracle has no answer.
    """

    case: Case
    inputs: Inputs
    is_recorded: bool
    answer: Any = None
    results: tuple[Any, ...] | None = None
    seconds: float = 0.0
    catches: int = 1


@dataclass
class Bench:
    """Hold the tests of a definition with its cases, the cheap and sharp ones first.

    `left_out` are the tests that the unchanged reference does not pass.
    """

    cls: type[MatchesRecorded]
    recordings: Path | None
    stands: list[Stand] = field(default_factory=list)
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def of(cls, tests: type[MatchesRecorded], recordings: Path | None) -> Bench:
        """Make the inputs of all cases that a rendered file has by default and fit."""
        bench = cls(tests, recordings)
        definition = tests.definition()
        cases = [c for c in tests.cases(definition) if c.size in tests.sizes]
        known: Iterable[Case] = ()
        if recordings is not None:
            path = recording_path(recordings, tests.op_type, tests.name)
            known = recorded_cases(tests, recordings, cases) if path.exists() else ()
        recorded = {case.name for case in known}
        for case in cases:
            if shortage(definition, case, _CPU, tests.peak_bytes) is None:
                stand = Stand(case, {}, case.name in recorded)
                made = bench._trial(stand, _nothing, tests.make_inputs).inputs
                # stand-ins for large weights are for recordings, of the whole geometry:
                # small ones are copied and compared faster as tensors
                stand.inputs = (
                    made
                    if recordings is not None
                    else {name: fresh(value, _CPU) for name, value in made.items()}
                )
                bench.stands.append(stand)
        bench._keep_answers()
        return bench

    def prove(self, run: Run) -> None:
        """Put the unchanged reference on the bench: what is red leaves the audit."""
        start = time.process_time()
        for stand in self.stands:
            begun = time.process_time()
            trial = self._trial(stand, guarded(run))
            with sorted_once(), widened_by_table():
                for name in (*FIRST, *LATER):
                    found = self._ask(name, stand, trial, run)
                    if found is not None:
                        self.left_out[name, stand.case.name] = found.why
            stand.seconds = time.process_time() - begun
            if stand.answer is not None:
                with suppress(Exception):
                    stand.results = self.cls()._results(trial)
        self.seconds = time.process_time() - start

    @property
    def longest(self) -> float:
        """Return what a mutant may take in all, in seconds of CPU."""
        tests = len(FIRST) + len(LATER)
        return tests * (_FLOOR * (len(self.stands) + 1) + _FACTOR * self.seconds)

    def judge(self, load: Load) -> Verdict | None:
        """Return the first test that catches a mutant, None where all pass.

        Raises TimeIsUp where one takes far longer than it does of the reference.
        """
        try:
            with time_limit(_FLOOR):
                run = load()
        except TimeIsUp:
            raise
        except BaseException as error:  # noqa: BLE001
            return Verdict("load", "", str(Raised(error)))
        finally:
            # a setting of the process that the next one is to find as it was
            torch.set_default_dtype(torch.float32)
        with sorted_once(), widened_by_table():
            return self._first_red(run)

    def _first_red(self, run: Run) -> Verdict | None:
        self.stands.sort(key=lambda stand: -stand.catches / (stand.seconds + 1e-3))
        # kept: the later tests look at the calls of the first ones
        trials = [(stand, self._trial(stand, guarded(run))) for stand in self.stands]
        for names in (FIRST, LATER):
            for stand, trial in trials:
                for name in names:
                    if (name, stand.case.name) in self.left_out:
                        continue
                    with time_limit(_FLOOR + _FACTOR * stand.seconds):
                        found = self._ask(name, stand, trial, run)
                    if found is not None:
                        stand.catches += 1
                        return found
        return None

    def _ask(self, name: str, stand: Stand, trial: Trial, run: Run) -> Verdict | None:
        """Return why a test is red; a skip says nothing against a mutant."""
        if name == "test_matches_recorded" and not stand.is_recorded:
            return None
        # in place of one that remembers each class for good, and what its run() keeps
        given_run = {"load_run": staticmethod(lambda: run)}
        tests = type(self.cls.__name__, (self.cls,), given_run)
        self._current = stand
        given: list[Any] = [trial]
        if name == "test_matches_recorded":
            given.append(self.recordings)
        if name.startswith("test_matches"):
            given.append(_ignore)
        try:
            if (
                name in _OF_RESULTS
                and stand.results is not None
                and same_results(stand.results, tests()._results(trial))
            ):
                return None
            getattr(tests(), name)(*given)
        except pytest.skip.Exception:
            return None
        except TimeIsUp:
            raise
        except Raised as error:
            return Verdict(name, stand.case.name, str(error))
        except AssertionError as error:
            return Verdict(name, stand.case.name, reason(error))
        except Exception as error:  # noqa: BLE001
            # what a test can't handle turns it red as well
            kind = type(error).__name__
            return Verdict(name, stand.case.name, f"{kind}: {_text(error)}")
        return None

    def _trial(self, stand: Stand, run: Run, make_inputs: Any = None) -> Trial:
        return Trial(
            self.cls.definition(),
            stand.case,
            _CPU,
            make_inputs or (lambda *_: stand.inputs),
            run,
            guessed=self.cls.oracle is None,
        )

    def _keep_answers(self) -> None:
        """Ask the oracle once a case; its tests get the same answer again."""
        oracle = self.cls.oracle
        if oracle is None or self.cls.unresolved is not None:
            return
        for stand in self.stands:
            trial = self._trial(stand, _nothing)
            stand.answer = oracle(trial.definition, trial.lazy_inputs())
        bench = self
        self.cls = type(
            self.cls.__name__,
            (self.cls,),
            {"oracle": staticmethod(lambda *_: bench._current.answer)},
        )


def same_results(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether these are as many values of the same bits."""
    return len(first) == len(second) and all(map(same_bits, first, second))


def loaded(source: str) -> Load:
    """Return a function that executes a reference's text and returns its `run`."""

    def load() -> Run:
        namespace: dict[str, Any] = {"__name__": "reference"}
        exec(compile(source, "<reference>", "exec"), namespace)  # noqa: S102
        run: Run = namespace["run"]
        return run

    return load


def guarded(run: Run) -> Run:
    """Return a run() whose exceptions can't be taken for those of a test."""

    def call(*given: Any) -> Any:
        try:
            return run(*given)
        except TimeIsUp:
            raise
        except BaseException as error:  # noqa: BLE001
            raise Raised(error) from None

    return call


def _nothing(*given: Any) -> None:
    """Stand in for run() where only the inputs are asked for."""


def _ignore(name: str, value: object) -> None:
    """Stand in for record_property."""


def _text(error: BaseException) -> str:
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001
        return ""
    return one_line(lines[0].strip(), _SHORT) if lines else ""


def reason(error: AssertionError) -> str:
    """Return what a failed comparison found first, without its heading."""
    lines: Sequence[str] = [line.strip() for line in str(error).strip().splitlines()]
    if len(lines) > 1 and lines[0].endswith((": FAILED", ": ERROR")):
        return one_line(lines[1], _SHORT)
    return one_line(lines[0], _SHORT) if lines else "AssertionError"
