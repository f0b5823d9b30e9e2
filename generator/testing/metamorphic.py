"""The test of relations between calls of `run()`, which needs no ground truth.

A comparison of it is recorded with the source `metamorphic:<relation>`. It holds a
reference against itself or its sibling, so that it never counts as compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import ClassVar

from generator.testing.definition import Case, Definition
from generator.testing.harness import RecordProperty, ReferenceTests
from generator.testing.relation import ReferenceCall, RelatedCalls, Relation
from generator.testing.source_names import METAMORPHIC
from generator.testing.trial import Trial


class Metamorphic(ReferenceTests):
    """Test the relations of an op_type between what several calls return."""

    # of the op_type, as the functions of the base class
    relations: ClassVar[Callable[[Definition], Sequence[Relation]]]

    def test_metamorphic(
        self, related: Trial, relation: Relation, record_property: RecordProperty
    ) -> None:
        """What further calls return follows from what the first one returned."""
        __tracebackhide__ = True  # the message says it all
        source = f"{METAMORPHIC}{relation.name}"
        asked = self._subject(related, relation)
        failures = []
        claimed = 0
        for claim in relation.claims(asked):
            claimed += 1
            verdict = claim.verdict(self.run_tolerance, error_maps=related.error_maps)
            record = {
                "definition": self.name,
                "case": related.case.name,
                "source": source,
                "output": claim.output,
                "reason": claim.bound.reason,
                "not_independent": list(self.dependent_constants),
                **verdict.as_dict(),
            }
            record_property("comparison", json.dumps(record))
            if not verdict.passed:
                subject = f"{self.name} {claim.output!r}, {source}, {related.case.name}"
                failures.append(verdict.message(subject))
                failures.append(f"  the bound: {claim.bound.reason}")
                if asked.peer is not None:
                    failures.append(f"  this or {asked.peer.definition.name} is wrong")
        assert claimed, f"{source} claims nothing of {related.case.name}"
        assert not failures, "\n" + "\n".join(failures)

    def _subject(self, trial: Trial, relation: Relation) -> RelatedCalls:
        """Return what a relation asks: this reference, and its peer if it has one."""
        other = peer_of(type(self), relation)
        return RelatedCalls(
            trial,
            _asked(type(self), trial),
            self._filled(trial),
            None if other is None else _asked(other, trial),
        )


def _asked(cls: type[ReferenceTests], trial: Trial) -> ReferenceCall:
    return ReferenceCall(
        cls.definition(),
        lambda *inputs: cls.load_run()(*inputs),
        cls.filled_inputs,
        trial.device,
        trial.run_seed,
    )


def peer_of(
    cls: type[ReferenceTests], relation: Relation
) -> type[ReferenceTests] | None:
    """Return the first class of the same file whose definition a relation accepts."""
    if relation.peer is None:
        return None
    for other in vars(sys.modules[cls.__module__]).values():
        if not isinstance(other, type) or not issubclass(other, ReferenceTests):
            continue
        # a base class of the file has no definition
        if hasattr(other, "name") and relation.peer(other.definition()):
            return other
    return None


def relations_of(
    cls: type[Metamorphic], sizes: Sequence[str]
) -> list[tuple[Relation, Case]]:
    """Return the relations of a class with each of their cases, case by case.

    Relations of one case stand together, so that its inputs are made once.
    """
    found = [
        (relation, case)
        for relation in cls.relations(cls.definition())
        if relation.peer is None or peer_of(cls, relation) is not None
        for case in relation.cases
        if case.size in sizes
    ]
    order = {id(case): place for place, (_, case) in reversed([*enumerate(found)])}
    return sorted(found, key=lambda pair: order[id(pair[1])])
