"""False alarms: what the tests say of an unchanged reference on inputs of other seeds."""

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

from generator.audit.bench import Load, Raised, Run, guarded, loaded, reason
from generator.audit.classes import AllTests, rendered_class
from generator.audit.geometry import reduced
from generator.audit.seeds_result import Alarm
from generator.definition import Definition
from generator.support.definition import Case
from generator.support.memory import available_bytes, needed_bytes
from generator.support.metamorphic import relations_of
from generator.support.relation import RelatedCase, Relation
from generator.support.trial import Trial
from generator.wording import one_line

# all that needs no GPU and no recording: that is of the one seed it was made with
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
# a module's name that no import has
_FILE = "generator.audit rendered"
Ask = Callable[[Trial], Iterator[tuple[str, Callable[[Any], None]]]]


@dataclass
class Seeded:
    """Hold a definition's rendered class, and count what is asked of it."""

    cls: type[AllTests]
    # of this machine's memory
    share: float = 1.0
    tests: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    p_values: list[float] = field(default_factory=list)

    @property
    def most_bytes(self) -> int:
        """Return what the largest case needs."""
        definition, count = self.cls.definition(), self.cls.peak_bytes
        needed = (needed_bytes(definition, case, count) for case, _ in self._cases())
        return max(needed, default=0)

    def alarms(
        self, seeds: Sequence[int], tell: Callable[[str, int], None]
    ) -> Iterator[Alarm]:
        """Yield what is red; `tell` gets each case and seed before it is asked."""
        for case, tests in self._cases():
            needed = needed_bytes(self.cls.definition(), case, self.cls.peak_bytes)
            free = available_bytes(_CPU)
            if free is not None and needed > self.share * free:
                self.skipped[f"{case.name}: needs {needed / 2**30:.1f} GiB"] += 1
                continue
            for seed in seeds:
                tell(case.name, seed)
                for name, test in tests(self._trial(case, seed)):
                    why = self._why(name, test)
                    if why is not None:
                        yield Alarm(name, case.name, seed, why)

    def _cases(self) -> Iterator[tuple[Case, Ask]]:
        """Yield the cases of the tests and of relations, each with what to ask there."""
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

    def _why(self, name: str, test: Callable[[Any], None]) -> str | None:
        """Return why a test is red, None where it is not; count it as asked."""
        kind = name.split(":")[0]
        try:
            test(self._remember)
        except pytest.skip.Exception as skip:
            self.skipped[f"{kind}: {one_line(str(skip), _SHORT)}"] += 1
            return None
        except Raised as error:
            why = str(error)
        except AssertionError as error:
            why = reason(error)
        except Exception as error:  # noqa: BLE001
            # what a test can't handle turns it red as well
            why = one_line(f"{type(error).__name__}: {error}", _SHORT)
        else:
            self.tests[kind] += 1
            return None
        self.tests[kind] += 1
        return why

    def _remember(self, name: str, value: object) -> None:
        """Take what a comparison records: of a statistical one, its p-value."""
        figures = json.loads(str(value))
        if "p_value" in figures:
            self.p_values.append(float(figures["p_value"]))

    def _trial(self, case: Case, seed: int) -> Trial:
        """Return a trial whose inputs, and draws of torch, are those of a seed."""
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
    """Return what to ask a definition by, and the axes that are shorter than its own.

    `siblings` are the definitions of the same rendered file, this one among them: some
    relations hold a reference against another. `whole` shortens nothing. Ask one
    definition before this is called for the next: relations look into the file that
    was made last. Raises what the reference raises where it is loaded.
    """
    file = ModuleType(_FILE)
    sys.modules[_FILE] = file
    axes = {
        one.name: {} if whole else reduced(one.op_type, one.const_axes)
        for one in siblings
    }
    for one in siblings:
        cls = rendered_class(one, axes[one.name])
        own = {"reference": staticmethod(_loading(one)), "__module__": _FILE}
        setattr(file, one.name, type(cls.__name__, (cls,), own))
    asked = Seeded(getattr(file, definition.name))
    asked.cls.load_run()
    return asked, axes[definition.name]


def _loading(definition: Definition) -> Load:
    def load() -> Run:
        run = loaded(definition.reference)()
        # with its own parameters, at which a test looks
        return update_wrapper(guarded(run), run)

    return load


def _without_property(test: Callable[[], None], record_property: Any) -> None:
    test()
