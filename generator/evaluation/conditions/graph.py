"""The condition of CUDA graphs: a captured call, replayed with other values.

The solution's processes queue the replays and are stopped. Then the judge writes the
values of one replay after the other, and opens its gate: what is right then was
computed by what was captured, on values that no code of the CPU has seen.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import torch

from generator.evaluation.arena import Layout
from generator.evaluation.conditions.asking import Asking, ConditionSkipped
from generator.evaluation.conditions.condition import HOLDS, UNSUPPORTED, Condition
from generator.evaluation.conditions.graphs import DONE, OPEN
from generator.evaluation.judge import Judge
from generator.evaluation.lengths import sizes_of
from generator.evaluation.rounds import Round
from generator.evaluation.session import Session
from generator.evaluation.verdict import TIMEOUT, Refused
from kernel_judge.inputs.trial import same_bits

_MODES = ("global", "thread_local")
_CASES = 2
_FEWEST, _MOST = 3, 6
_GATE, _GATE_BYTES = 9, 1 << 16
# one for each graph: memory that the GPU reads by itself stays where it is
_FIRST_SLOT = 10
_REPLAY_SECONDS = 20.0


def graph(asking: Asking) -> Condition:
    """Capture it in both modes of errors, and replay it with other values.

    Before some replays the outputs hold NaN, before others answers to other inputs. Its
    first error, while it is captured, is what it says no by.
    """
    slot = _FIRST_SLOT
    replays = differing = 0
    for one in asking.cases(_CASES):
        for mode in _MODES:
            count = asking.draw.randint(_FEWEST, _MOST)
            replays += count
            try:
                differing += not _captured(asking, one, mode, slot, count)
            except Refused as refused:
                if not refused.is_raised:
                    raise
                # whether a process is good for more after a capture that failed is torch's
                why = f"captured in mode {mode}: {refused.reason}"
                return Condition(UNSUPPORTED, why)
            slot += 1
    bits = "no" if differing else "yes"
    return Condition(HOLDS, "", {"replays": replays, "bits as eager": bits})


def _captured(asking: Asking, one: Round, mode: str, slot: int, count: int) -> bool:
    """Judge the replays of one graph; return whether the last has an eager call's bits.

    Raises Refused.
    """
    session, known = asking.session, one.subject.definition
    specs, judge = known.interface.output_specs, asking.judge
    rounds = asking.others(one, count)
    sizes = sizes_of(known.interface, {**known.axes, **one.case.axes}, one.inputs)
    layout = session.write(slot, one.inputs, specs, sizes)
    # lengths that a case draws make other shapes: those are another graph's
    rounds = [r for r in rounds if _has_layout(r, layout)]
    if not rounds:
        raise ConditionSkipped("each draw of its values has lengths of its own")
    gate = session.slot(_GATE, _GATE_BYTES)
    gate.memory.zero_()
    seed = asking.draw.randrange(2**31)
    how: dict[str, Any] = {
        "slot": slot,
        "used": layout.size,
        "inputs": layout.inputs,
        "outputs": layout.outputs,
        "passes_outputs": asking.passes_outputs,
        "seed": seed,
        "gate": _GATE,
        "mode": mode,
        "replays": len(rounds),
    }
    numbers = gate.memory.view(torch.int32)
    answers, before = [], []
    try:
        session.capture(how, layout)
        for number, this in enumerate(rounds, 1):
            # poison that a kernel could recognise, or what only looks like an answer
            others = [r for r in (*rounds, one) if r is not this]
            stale = None
            if number % 2:
                stale = asking.draw.choice(others).expected
                # of a sampler it is a law
                stale = stale if all(map(torch.is_tensor, stale)) else None
            shared = session.slot(slot, 0)
            shared.write(layout, this.inputs, stale)
            before.append([shared.taken(p) for p in layout.outputs if "at" in p])
            numbers[OPEN] = number
            _wait(numbers, number)
            answer = session.fetch(slot, layout)
            answers.append(
                judge.answered(slot, layout, answer, this.inputs, this.filled)
            )
    except Refused as refused:
        if refused.verdict == TIMEOUT:
            numbers[OPEN] = len(rounds)
            refused.reason = _failure(session) or refused.reason
        raise
    finally:
        # whatever is queued runs, so that the process can go on
        numbers[OPEN] = len(rounds)
    session.ask({"release": True})
    for number, (this, actual) in enumerate(zip(rounds, answers, strict=True), 1):
        if this.calls() > 1:
            continue
        try:
            judge.compared("", this, actual)
        except Refused as refused:
            where = f"replay {number} of a graph captured in mode {mode}"
            why = _why(judge, one, actual, before[number - 1])
            refused.reason = f"{where}: {why}{refused.reason}"
            raise
    eager = asking.called(rounds[-1], seed=seed)
    return all(map(same_bits, eager, answers[-1]))


def _why(
    judge: Judge, one: Round, actual: tuple[Any, ...], before: list[torch.Tensor]
) -> str:
    """Say of a wrong answer of a replay where it comes from, where that can be seen."""
    outputs = [v for v in actual if isinstance(v, torch.Tensor)][: len(before)]
    if all(map(same_bits, outputs, before)):
        return "it writes nothing, so that its work is not in the graph; "
    with suppress(Refused):
        judge.compared("", one, actual)
        return "it is the answer to the values of the capture; "
    return ""


def _has_layout(one: Round, layout: Layout) -> bool:
    shapes = [list(v.shape) for v in one.inputs.values() if isinstance(v, torch.Tensor)]
    return shapes == [place["shape"] for place in layout.inputs if "at" in place]


def _failure(session: Session) -> str:
    """Return the error of replays that did not end; empty where they end by and by."""
    try:
        session.ask({"release": True})
    except Refused as refused:
        # memory that the driver took back, for one
        return f"a replay fails: {refused.reason}"
    return ""


def _wait(numbers: torch.Tensor, number: int) -> None:
    """Wait until the GPU has finished a replay. Raises Refused."""
    until = time.monotonic() + _REPLAY_SECONDS
    while int(numbers[DONE]) < number:
        if time.monotonic() > until:
            why = "a replay does not end while its processes are stopped: it needs the CPU"
            raise Refused(TIMEOUT, why)
        time.sleep(1e-5)
