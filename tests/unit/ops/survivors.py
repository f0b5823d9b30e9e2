"""Which domain mutants the rendered comparison with the oracle lets pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from generator.ops.domain_mutants import domain_mutants
from generator.ops.registry import op_module
from kernel_judge.definition import LIMITS, Case, Definition
from tests.builders import cases_of, class_of, ignore_property, trial_of


def op_of(definition: Definition) -> ModuleType:
    """Return the module of an op's functions."""
    return op_module(definition.op_type)


def with_defect(
    definition: Definition, run: Callable[..., Any], name: str
) -> Callable[..., Any]:
    """Return a run() with the domain mutant of a name."""
    (mutant,) = [m for m in domain_mutants(definition) if m.name == name]
    return mutant.wrap(run)


class Caught:
    """Hold which case caught each mutant first, by the mutant's name."""

    def __init__(
        self,
        definition: Definition,
        run: Callable[..., Any],
        sizes: Sequence[str] = ("small", "medium"),
        cases: Sequence[str] = (),
        **changes: Any,
    ) -> None:
        self._changes = changes
        self._op = op_of(definition)
        self._definition = definition
        self.by: dict[str, str] = {}
        wraps = {mutant.name: mutant.wrap(run) for mutant in domain_mutants(definition)}
        assert len(wraps) == len(domain_mutants(definition)), "two have one name"
        self.names = list(wraps)
        every = cases_of(class_of(self._op, definition, run), (*sizes, LIMITS))
        # of limits those as small as others, with scales that are far from the usual
        tried = [
            case
            for case in every
            if (case.name in cases if cases else case.size in sizes or case.moved)
        ]
        self.accused = [
            case.name
            for case in tried
            if self._failed(case, {"right": run, **wraps}) == "right"
        ]

    def _failed(self, case: Case, runs: dict[str, Callable[..., Any]]) -> str | None:
        """Try one case on all that no case has caught, and note which it catches.

        Inputs and expectation are made once.
        """
        right = class_of(self._op, self._definition, runs["right"])
        trial = trial_of(right, case)
        inputs = trial.inputs
        if case.moved:
            # a trial moves them as its case says
            inputs = trial_of(right, replace(case, moved={})).inputs
        expected = self._op.oracle(self._definition, trial.lazy_inputs())
        for name, run in runs.items():
            if name in self.by:
                continue
            cls = class_of(
                self._op,
                self._definition,
                run,
                make_inputs=staticmethod(lambda *_: inputs),
                oracle=staticmethod(lambda *_: expected),
                **self._changes,
            )
            try:
                cls().test_matches_oracle(trial_of(cls, case), ignore_property)
            except AssertionError:
                if name == "right":
                    return name
                self.by[name] = case.name
        return None

    @property
    def survivors(self) -> list[str]:
        """Return the mutants that every case lets pass."""
        return [name for name in self.names if name not in self.by]
