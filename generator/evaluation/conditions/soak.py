"""The condition of many calls: what they use levels off, and torch is left as it was."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import Any

import torch

from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.condition import BROKEN, HOLDS, Condition
from generator.evaluation.rounds import Round
from generator.evaluation.verdict import REWARD_HACK, RUNTIME_ERROR, TIMEOUT, Refused
from generator.problems.messages import one_line

_ROUNDS, _SAMPLES = 4, 40
_LEAST = {"descriptors": 8, "threads": 8}
_LEAST_BYTES = 8 << 20
"""Growth over the last three fifths that is none: caches fill, allocators round."""
_MOST_BYTES = 1 << 30
_JUDGED = 0.2
Sample = Mapping[str, int]


def soak(asking: Asking) -> Condition:
    """Call small cases with changing values for some seconds, and judge some answers.

    Growth is looked for in the bytes, threads and descriptors of its processes, which the
    keeper counts, and in the memory of the GPU that torch has and that the driver lacks.
    """
    rounds = asking.small_cases(2)
    rounds = [asking.other(one) for one in rounds for _ in range(_ROUNDS)]
    samples: list[Sample] = []
    calls = 0
    begun = time.monotonic()
    try:
        while (passed := time.monotonic() - begun) < asking.soak_seconds:
            _call(asking, asking.draw.choice(rounds))
            calls += 1
            if passed * _SAMPLES >= len(samples) * asking.soak_seconds:
                samples.append(_sample(asking, calls))
                grown = samples[-1]["bytes"] - samples[0]["bytes"]
                if grown > _MOST_BYTES:
                    break
        state = ProcessState.of(asking.session.state())
    except Refused as refused:
        if refused.verdict not in (RUNTIME_ERROR, TIMEOUT):
            raise
        growing = growth(samples)
        why = f"; {growing}" if growing else ""
        return Condition(BROKEN, f"after {calls} calls: {refused.reason}{why}")
    details = {"calls": calls, "seconds": round(time.monotonic() - begun, 1)}
    if why := growth(samples) or state.left(draws=rounds[0].calls() > 1):
        return Condition(BROKEN, why, details)
    return Condition(HOLDS, "", details)


def _call(asking: Asking, one: Round) -> None:
    judge = asking.judge
    actual = judge.called(
        one.inputs, one.filled, asking.draw.randrange(2), one.case.axes
    )
    if one.calls() == 1 and asking.draw.random() < _JUDGED:
        judge.compared("", one, actual)


def _sample(asking: Asking, calls: int) -> Sample:
    """Return what is used after so many calls, by what it is."""
    sample = {"calls": calls, **asking.session.keeper.used()}
    if asking.device.type == "cuda":
        state = ProcessState.of(asking.session.state())
        sample["bytes that torch has of the GPU"] = state.allocated
        if asking.has_gpu_alone:
            free, _ = torch.cuda.mem_get_info()
            sample["bytes that the driver lacks"] = -free
    return sample


def growth(samples: Sequence[Sample]) -> str:
    """Return in words what grows without end; empty where all levels off.

    It grows if each of the last three fifths of the samples has a higher mean than the one
    before and no lower value, and by more than noise altogether. Samples on either side of
    a border may be equal: what is kept of each fifth call grows in steps.
    """
    fifth = len(samples) // 5
    if fifth == 0:
        return ""
    parts = [samples[at * fifth : (at + 1) * fifth] for at in range(1, 5)]
    for name in samples[0]:
        if name == "calls":
            continue
        values = [[sample[name] for sample in part] for part in parts]
        rises = [
            min(after) >= max(before) and mean(after) > mean(before)
            for before, after in pairwise(values)
        ]
        grown = values[-1][-1] - values[0][-1]
        if all(rises) and grown > _LEAST.get(name, _LEAST_BYTES):
            calls = parts[-1][-1]["calls"] - parts[0][-1]["calls"]
            each = grown / max(calls, 1)
            return (
                f"it leaks: {name} grew by {grown} in {calls} calls, {each:.3g} a call"
            )
    return ""


@dataclass(frozen=True)
class ProcessState:
    """A process's report of itself: its changes of torch's state, and its memory.

    `changed` has in words what is no more as it was. `draws` is whether the last call
    drew from torch's generators.
    """

    changed: tuple[str, ...]
    draws: bool
    allocated: int

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> ProcessState:
        """Return the state that an answer has. Raises Refused for what is none."""
        changed, draws = answer.get("changed"), answer.get("draws")
        allocated = answer.get("allocated", 0)
        is_one = type(draws) is bool and type(allocated) is int
        if not isinstance(changed, list) or not is_one:
            why = "its answer on torch's state is none that the worker gives"
            raise Refused(REWARD_HACK, why)
        lines = tuple(one_line(str(one), 200) for one in changed)
        return cls(lines, bool(draws), allocated)

    def left(self, *, draws: bool) -> str:
        """Return what was left changed; empty where nothing is.

        `draws` says that the op is to draw.
        """
        if self.changed:
            return f"it leaves torch changed: {'; '.join(self.changed[:3])}"
        if self.draws and not draws:
            return "it draws from torch's generator, and computes nothing random"
        return ""
