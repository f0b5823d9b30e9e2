"""False alarms: tests that fail on an unchanged reference with inputs of some seed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from types import ModuleType
from typing import Any

import pytest
import torch

from generator.dataset.definition import Definition
from generator.mutation.bench import Load, Raised, Run, guarded, loaded, reason
from generator.mutation.classes import AllTests, rendered_class
from generator.mutation.seeds_result import Alarm
from generator.ops.geometry import reduced
from generator.problems.messages import one_line
from generator.testing.definition import Case
from generator.testing.memory import available_bytes, needed_bytes
from generator.testing.metamorphic import relations_of
from generator.testing.relation import RelatedCase, Relation
from generator.testing.trial import Trial

# those without GPU and without recording, which holds inputs of one seed
TESTS = (
    "test_contract",
    "test_output_shape",
    "test_output_dtype",
    "test_matches_oracle",
    "test_inputs_unmodified",
    "test_determinism",
)
RELATED = "test_metamorphic"
_CPU = torch.device("cpu")
_SHORT = 160
# a module name that no import statement can have
_FILE = "generator.mutation rendered"
Tests = Callable[[Trial], Iterator[tuple[str, Callable[[Any], None]]]]


@dataclass
class Seeded:
    """Hold a definition's rendered class and count its tests.

    `share` is the part of the free memory that a case may need.
    """

    cls: type[AllTests]
    share: float = 1.0
    tests: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    p_values: list[float] = field(default_factory=list)

    @property
    def most_bytes(self) -> int:
        """Return the bytes that the largest case needs."""
        definition, count = self.cls.definition(), self.cls.peak_bytes
        needed = (needed_bytes(definition, case, count) for case, _ in self._cases())
        return max(needed, default=0)

    def alarms(
        self, seeds: Sequence[int], on_start: Callable[[str, int], None]
    ) -> Iterator[Alarm]:
        """Yield each failure; call `on_start` with each case and seed before its tests."""
        for case, tests in self._cases():
            needed = needed_bytes(self.cls.definition(), case, self.cls.peak_bytes)
            free = available_bytes(_CPU)
            if free is not None and needed > self.share * free:
                self.skipped[f"{case.name}: needs {needed / 2**30:.1f} GiB"] += 1
                continue
            for seed in seeds:
                on_start(case.name, seed)
                for name, test in tests(self._trial(case, seed)):
                    failure = self._run_test(name, test)
                    if failure is not None:
                        why, raised = failure
                        yield Alarm(name, case.name, seed, why, raised)

    def _cases(self) -> Iterator[tuple[Case, Tests]]:
        """Yield the cases of the tests and of the relations, each with its tests."""
        cls = self.cls
        for case in cls.cases(cls.definition()):
            if case.size in cls.sizes:
                yield case, self._of_case
        if not hasattr(cls, "relations"):
            return
        by_case: dict[int, tuple[Case, list[Relation]]] = {}
        for relation, related in relations_of(cls, cls.sizes):
            by_case.setdefault(id(related), (related, []))[1].append(relation)
        for related, relations in by_case.values():
            yield related, partial(self._of_relations, relations)

    def _of_case(self, trial: Trial) -> Iterator[tuple[str, Callable[[Any], None]]]:
        tests = self.cls()
        for name in TESTS:
            test = getattr(tests, name)
            if name == "test_matches_oracle":
                yield name, partial(test, trial)
            else:
                yield name, partial(_without_property, partial(test, trial))

    def _of_relations(
        self, relations: Sequence[Relation], trial: Trial
    ) -> Iterator[tuple[str, Callable[[Any], None]]]:
        test = self.cls().test_metamorphic
        for relation in relations:
            yield f"{RELATED}:{relation.name}", partial(test, trial, relation)

    def _run_test(
        self, name: str, test: Callable[[Any], None]
    ) -> tuple[str, bool] | None:
        """Count a test; return why it fails and whether `run()` raised, None if it passes.

        A test that is skipped passes, too.
        """
        kind = name.split(":")[0]
        failure: tuple[str, bool] | None
        try:
            test(self._record_property)
        except pytest.skip.Exception as skip:
            self.skipped[f"{kind}: {one_line(str(skip), _SHORT)}"] += 1
            return None
        except Raised as error:
            failure = str(error), True
        except AssertionError as error:
            failure = reason(error), False
        except Exception as error:  # noqa: BLE001
            # an error inside the test is a failure as well
            failure = one_line(f"{type(error).__name__}: {error}", _SHORT), False
        else:
            failure = None
        self.tests[kind] += 1
        return failure

    def _record_property(self, name: str, value: object) -> None:
        """Keep the p-value of a statistical comparison."""
        figures = json.loads(str(value))
        if "p_value" in figures:
            self.p_values.append(float(figures["p_value"]))

    def _trial(self, case: Case, seed: int) -> Trial:
        """Return a trial whose inputs and random draws are those of a seed."""
        own = case.make_inputs if isinstance(case, RelatedCase) else None
        return Trial(
            self.cls.definition(),
            case,
            _CPU,
            own or self.cls.make_inputs,
            lambda *given: self.cls.load_run()(*given),
            guessed=self.cls.oracle is None,
            shift=seed,
        )


def seeded(
    definition: Definition, siblings: Sequence[Definition], *, whole: bool = False
) -> tuple[Seeded, dict[str, int]]:
    """Return a definition's tests, and the axes that are shorter than declared.

    `siblings` are the definitions of the same rendered file, this one included: some
    relations compare a reference with another. `whole` shortens no axis. Run the tests
    before the next call: relations read the file that was made last. Raises what the
    reference raises while it is loaded.
    """
    file = ModuleType(_FILE)
    sys.modules[_FILE] = file
    axes = {
        one.name: {} if whole else reduced(one.op_type, one.const_axes)
        for one in siblings
    }
    for one in siblings:
        cls = rendered_class(one, axes[one.name])
        own = {"reference": staticmethod(_guarded_load(one)), "__module__": _FILE}
        setattr(file, one.name, type(cls.__name__, (cls,), own))
    tests = Seeded(getattr(file, definition.name))
    tests.cls.load_run()
    return tests, axes[definition.name]


def _guarded_load(definition: Definition) -> Load:
    def load() -> Run:
        run = loaded(definition.reference)()
        # keep the signature, which test_contract checks
        return update_wrapper(guarded(run), run)

    return load


def _without_property(test: Callable[[], None], record_property: Any) -> None:
    test()
