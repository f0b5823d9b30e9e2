"""False alarms: tests that fail on an unchanged reference with inputs of some seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper

import torch

from generator.dataset.definition import LoadedDefinition
from generator.mutation.raised import Raised, Run, guarded, reason
from generator.mutation.seeds_result import Alarm
from generator.ops.geometry import reduced
from generator.problems.messages import one_line
from generator.rules.subjects import subject_of
from generator.running.free_memory import available_bytes, needed_bytes
from kernel_judge.checked import Checked
from kernel_judge.checks import CHECKS, metamorphic
from kernel_judge.definition import LIMITS, Case
from kernel_judge.inputs.trial import Trial
from kernel_judge.reference import load_run
from kernel_judge.relation import Relation
from kernel_judge.subject import Subject, SubjectFile

RELATED = "test_metamorphic"
_CPU = torch.device("cpu")
_SHORT = 160
Tests = Callable[[Trial], Iterator[tuple[str, Callable[[], Checked]]]]


@dataclass
class Seeded:
    """The checks of a definition without a GPU and without recordings, and their counts.

    `siblings` are the subjects of its rendered file: relations compare some references.

    `share` is the part of the free memory that a case may need. `compared` counts
    outputs that were compared with another implementation's, or a relation's.
    """

    subject: Subject
    siblings: SubjectFile
    share: float = 1.0
    tests: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    p_values: list[float] = field(default_factory=list)
    compared: int = 0

    @property
    def nothing_compared(self) -> str | None:
        """Return why no output was compared with anything, None if one was."""
        if self.compared:
            return None
        return next(iter(self.skipped), "there is no case")

    @property
    def most_bytes(self) -> int:
        """Return the bytes that the largest case needs."""
        definition, count = self.subject.definition, self.subject.op.peak_bytes
        needed = (needed_bytes(definition, case, count) for case, _ in self._cases())
        return max(needed, default=0)

    def alarms(
        self, seeds: Sequence[int], on_start: Callable[[str, int], None]
    ) -> Iterator[Alarm]:
        """Yield each failure; call `on_start` with each case and seed before its tests."""
        for case, tests in self._cases():
            peak_bytes = self.subject.op.peak_bytes
            needed = needed_bytes(self.subject.definition, case, peak_bytes)
            free = available_bytes(_CPU)
            if free is not None and needed > self.share * free:
                self.skipped[f"{case.name}: needs {needed / 2**30:.1f} GiB"] += 1
                continue
            for seed in seeds:
                on_start(case.name, seed)
                for name, test in tests(self.subject.trial(case, shift=seed)):
                    failure = self._run_test(name, test)
                    if failure is not None:
                        why, raised = failure
                        yield Alarm(name, case.name, seed, why, raised)

    def _cases(self) -> Iterator[tuple[Case, Tests]]:
        """Yield the cases of the tests and of the relations, each with its tests."""
        subject = self.subject
        for case in subject.cases():
            yield case, self._of_case
        for case in subject.cases((LIMITS,)):
            # no other test is made of these
            yield case, self._of_oracle
        by_case: dict[int, tuple[Case, list[Relation]]] = {}
        for relation, related in self.siblings.relations(subject, subject.sizes):
            by_case.setdefault(id(related), (related, []))[1].append(relation)
        for related, relations in by_case.values():
            yield related, partial(self._of_relations, relations)

    def _of_case(self, trial: Trial) -> Iterator[tuple[str, Callable[[], Checked]]]:
        for name, check in CHECKS.items():
            yield name, partial(check, self.subject, trial)

    def _of_oracle(self, trial: Trial) -> Iterator[tuple[str, Callable[[], Checked]]]:
        name = "test_matches_oracle"
        yield name, partial(CHECKS[name], self.subject, trial)

    def _of_relations(
        self, relations: Sequence[Relation], trial: Trial
    ) -> Iterator[tuple[str, Callable[[], Checked]]]:
        for relation in relations:
            peer = self.siblings.peer(relation)
            check = partial(metamorphic, self.subject, trial, relation, peer)
            yield f"{RELATED}:{relation.name}", check

    def _run_test(
        self, name: str, test: Callable[[], Checked]
    ) -> tuple[str, bool] | None:
        """Count a test; return why it fails and whether `run()` raised, None if it passes.

        A test that is skipped passes, too.
        """
        kind = name.split(":")[0]
        failure: tuple[str, bool] | None = None
        try:
            checked = test()
        except Raised as error:
            failure = str(error), True
        except AssertionError as error:
            failure = reason(str(error)), False
        except Exception as error:  # noqa: BLE001
            # an error inside the test is a failure as well
            failure = one_line(f"{type(error).__name__}: {error}", _SHORT), False
        else:
            values = (compared.p_value for compared in checked.comparisons)
            self.p_values += [value for value in values if value is not None]
            self.compared += len(checked.comparisons)
            if checked.skipped is not None:
                why = one_line(str(checked.skipped), _SHORT)
                self.skipped[f"{kind}: {why}"] += 1
                return None
            if checked.defect is not None:
                failure = reason(checked.defect), False
        self.tests[kind] += 1
        return failure


def seeded(
    definition: LoadedDefinition,
    siblings: Sequence[LoadedDefinition],
    *,
    whole: bool = False,
) -> tuple[Seeded, dict[str, int]]:
    """Return a definition's tests, and the axes that are shorter than declared.

    `siblings` are the definitions of the same rendered file, this one included: some
    relations compare a reference with another. `whole` shortens no axis. Raises what the
    reference raises while it is loaded.
    """
    axes = {
        one.name: {} if whole else reduced(one.op_type, one.const_axes)
        for one in siblings
    }
    subjects = {
        one.name: replace(
            subject_of(one, axes[one.name]),
            reference=partial(_guarded_run, one.reference),
        )
        for one in siblings
    }
    subject = subjects[definition.name]
    # loads the reference
    _ = subject.run
    return Seeded(subject, SubjectFile(tuple(subjects.values()))), axes[definition.name]


def _guarded_run(text: str) -> Run:
    run = load_run(text)
    # keep the signature, which the check of the contract reads
    return update_wrapper(guarded(run), run)
