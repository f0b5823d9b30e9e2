"""Ask a solution that passed under a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from generator.evaluation.conditions.asking import Asking, ConditionSkipped
from generator.evaluation.conditions.batch import batch
from generator.evaluation.conditions.calls import compiled, stream, strided
from generator.evaluation.conditions.condition import (
    BATCH,
    BROKEN,
    COMPILE,
    GRAPH,
    OF_CUDA,
    SKIPPED,
    SOAK,
    STREAM,
    STRIDED,
    UNSUPPORTED,
    Condition,
)
from generator.evaluation.conditions.graph import graph
from generator.evaluation.conditions.soak import soak
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    RUNTIME_ERROR,
    CaseVerdict,
    Refused,
)

_CONDITIONS: Mapping[str, Callable[[Asking], Condition]] = {
    GRAPH: graph,
    STREAM: stream,
    STRIDED: strided,
    COMPILE: compiled,
    BATCH: batch,
    SOAK: soak,
}
# timeouts of a call that all calls of a condition may take together
_CALLS = 10.0


def ask(asking: Asking, name: str) -> Condition:
    """Return the verdict on a condition, asked in a process that works.

    Raises Refused where the solution can't be built again.
    """
    if name in OF_CUDA and asking.device.type != "cuda":
        return Condition(SKIPPED, "needs CUDA")
    seconds = _CALLS * asking.session.call_seconds + asking.soak_seconds
    asking.session.allow(seconds)
    try:
        asking.mend()
        return _CONDITIONS[name](asking)
    except ConditionSkipped as skipped:
        return Condition(SKIPPED, str(skipped))
    except Refused as refused:
        return asking.verdict(refused)


def required(
    conditions: Mapping[str, Condition], names: Sequence[str]
) -> list[CaseVerdict]:
    """Return the verdicts on conditions that must hold and don't."""
    verdicts = {BROKEN: INCORRECT_NUMERICAL, UNSUPPORTED: RUNTIME_ERROR}
    return [
        CaseVerdict(f"as {name}", verdicts[condition.verdict], condition.reason)
        for name, condition in conditions.items()
        if name in names and condition.verdict in verdicts
    ]
