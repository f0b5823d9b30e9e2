"""Ask an op's relations of a reference, right or planted, without rendering it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from kernel_judge.comparison.compare import Comparison
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.trial import Trial
from kernel_judge.relation import ReferenceCall, RelatedCalls, RelatedCase
from tests.builders import CPU, loaded, run_of

Run = Callable[..., Any]


def verdicts(
    op: ModuleType,
    definition: Definition,
    run: Run,
    *,
    peers: Mapping[str, tuple[Definition, Run]] | None = None,
) -> dict[str, list[Comparison]]:
    """Return the verdicts of each relation that is listed, over all of its cases.

    `peers` are the other definitions of the file, each with its `run()`.
    """
    found: dict[str, list[Comparison]] = {}
    filled = getattr(op, "filled_inputs", None)
    for relation in getattr(op, "OP", op).relations(definition):
        accepted = [
            other
            for other in (peers or {}).values()
            if relation.peer is not None and relation.peer(other[0])
        ]
        if relation.peer is not None and not accepted:
            continue
        for case in relation.cases:
            trial = _trial(op, definition, case, run)
            names = () if filled is None else filled(trial.inputs)
            asked = ReferenceCall(definition, run, filled, CPU)
            peer = ReferenceCall(*accepted[0], filled, CPU) if accepted else None
            subject = RelatedCalls(trial, asked, names, peer)
            found.setdefault(relation.name, []).extend(
                claim.verdict() for claim in relation.claims(subject)
            )
    return found


def _trial(op: ModuleType, definition: Definition, case: Case, run: Run) -> Trial:
    own = case.make_inputs if isinstance(case, RelatedCase) else None
    return Trial(definition, case, CPU, own or op.make_inputs, run)


def red(
    op: ModuleType, definition: Definition, run: Run, **peers: tuple[Definition, Run]
) -> set[str]:
    """Return the names of the relations that a reference breaks."""
    found = verdicts(op, definition, run, peers=peers)
    assert found
    assert all(found.values()), "a relation that claims nothing"
    return {name for name, of in found.items() if not all(v.passed for v in of)}


def run_named(name: str) -> Run:
    """Return the `run()` of one of the repository's definitions."""
    return run_of(loaded(name).reference)
