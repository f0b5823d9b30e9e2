"""Conditions that are a way to make single calls: slices, a compiler, another stream."""

from __future__ import annotations

from generator.evaluation.arena import Slices
from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.condition import (
    BROKEN,
    COMPILE,
    HOLDS,
    STREAM,
    UNSUPPORTED,
    Condition,
)
from generator.evaluation.verdict import Refused

OPERATORS = "operators"
_OFFSETS = (16, 4, 1)
_MOST_BEHIND = 48
_CASES, _CALLS, _VALUES = 2, 3, 2


def strided(asking: Asking) -> Condition:
    """Call on slices of wider buffers, which begin 16, 4 and 1 elements behind a row's start.

    Between the rows is NaN, which must not be read, and must be there afterwards. An
    output that is passed is a slice as well in some calls.
    """
    refused: list[Condition] = []
    details = {}
    cases = asking.cases(_CASES)
    for offset in _OFFSETS:
        # rows that are as far apart as a fused projection's: 16 bytes stay aligned at 16
        behind = asking.draw.randrange(16, _MOST_BEHIND, 16) if offset > 1 else 7
        for outputs in (False, True) if asking.passes_outputs else (False,):
            name = f"{'outputs' if outputs else 'inputs'} at {offset}"
            where = f"{name} of rows with {offset + behind} elements more"
            details[name] = "yes"
            slices = Slices(offset, behind, outputs)
            # where rows begin is asked of each case; how they are aligned matters to all alike
            some = cases if offset == max(_OFFSETS) else [asking.draw.choice(cases)]
            try:
                for case in some:
                    # other values at the same addresses
                    for one in asking.others(case, _VALUES):
                        asking.called(one, slices=slices)
            except Refused as error:
                refused.append(asking.verdict(error, where))
                details[name] = "no"
                if not asking.works():
                    # what fells it here fells it where less is aligned
                    return _worst(refused, details)
    return _worst(refused, details)


def compiled(asking: Asking) -> Condition:
    """Call it through torch.compile, traced as one graph with dynamic lengths.

    Operators that it registers are given to torch.library.opcheck afterwards.
    """
    answers = _calls(asking, COMPILE)
    asking.called(asking.cases(1)[0], under=OPERATORS)
    return answers


def stream(asking: Asking) -> Condition:
    """Call it on a side stream while the legacy stream is busy.

    Its inputs are written on the side stream just before, and its outputs are read by a
    third stream that waits for an event.
    """
    return _calls(asking, STREAM)


def _calls(asking: Asking, under: str) -> Condition:
    for case in asking.cases(_CASES):
        for one in asking.others(case, _CALLS):
            asking.called(one, under=under)
    return Condition(HOLDS)


def _worst(refused: list[Condition], details: dict[str, str]) -> Condition:
    for verdict in (BROKEN, UNSUPPORTED):
        for condition in refused:
            if condition.verdict == verdict:
                return Condition(verdict, condition.reason, details)
    return Condition(HOLDS, "", details)
