"""Time what passed on CUDA, against the reference and the production kernels that run here.

docs/clock.md has the threat model; `clock/timed_calls.py` is one call,
`clock/timing_session.py` one workload. Here are the processes: the solution's in its
sandbox, the reference's in another one, the production kernels' in processes of this
software.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.arena import Layout, laid_out
from generator.evaluation.clock.calibration import measured_peak
from generator.evaluation.clock.contender import REFERENCE, Contender
from generator.evaluation.clock.fresh_inputs import FreshInputs
from generator.evaluation.clock.light import light_by, light_of, too_fast
from generator.evaluation.clock.links import Links
from generator.evaluation.clock.rivals import TRUSTED, NoRival, Rivals, arena_bytes
from generator.evaluation.clock.sampling import LEAST
from generator.evaluation.clock.session_result import SessionResult, Untimed
from generator.evaluation.clock.shared_memory import NoRoom, SharedMemory, create
from generator.evaluation.clock.telemetry import Telemetry
from generator.evaluation.clock.timed_calls import TimedCalls
from generator.evaluation.clock.timing_session import TimingSession
from generator.evaluation.conditions.batch import relations_of, rows_axis
from generator.evaluation.confined_reference import ConfinedReference
from generator.evaluation.draws import SECRETS
from generator.evaluation.judge import Judge
from generator.evaluation.lengths import sizes_of
from generator.evaluation.rounds import EvaluationRounds, Round
from generator.evaluation.seconds_of import SecondsOf
from generator.evaluation.session import Session
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    REWARD_HACK,
    CaseVerdict,
    Refused,
)
from generator.execution.outcome import CannotRun
from kernel_judge.checks.pairs import ORACLE
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.provider import providers

# of larger workloads several copies don't fit beside each other
_MOST_BYTES = 4 << 30
_HELD_BYTES = 2 << 30


class Field:
    """The processes of rivals of one definition; they start while nothing is timed yet.

    Where a process does not come up, its kernels are no rivals. The one of the trusted
    rivals is needed: its empty calls are the zero of the clock.
    """

    def __init__(
        self,
        root: Path,
        file: DatasetFile,
        device: str,
        reference: ConfinedReference | None,
    ) -> None:
        self.device, self.reference = device, reference
        self.room = 0
        self.telemetry = Telemetry(device)
        self.processes: list[Rivals] = []
        self._starting = [
            Rivals(root, file, device, names)
            for names in (TRUSTED, *((n,) for n in providers() if n not in TRUSTED))
        ]
        if reference is not None:
            reference.prepare()
        # now no solution's code is there, which could use the card beside it
        measured_peak(device)

    def begin(self, asked: Sequence[Layout]) -> None:
        """Wait until all processes are there, for calls of these layouts, unless they are.

        Raises CannotRun without the trusted one.
        """
        if self.processes:
            return
        self.room = arena_bytes(asked)
        starting, self._starting = self._starting, []
        for number, one in enumerate(starting):
            try:
                one.begin(self.room)
            except NoRival as error:
                one.close()
                if number == 0:
                    for other in starting[1:]:
                        other.close()
                    raise CannotRun(f"no clock: {error}") from error
                continue
            if one.names or number == 0:
                self.processes.append(one)
            else:
                # of other kernels than this definition's
                one.close()

    def close(self) -> None:
        """End all processes."""
        every = (*self._starting, *self.processes)
        self._starting, self.processes = [], []
        for one in every:
            one.kill()
        for one in every:
            one.close()


def layout_of(one: Round) -> Layout:
    """Return the layout of a workload's calls."""
    interface = one.subject.interface
    axes = {**one.subject.definition.axes, **one.case.axes}
    sizes = sizes_of(interface, axes, one.inputs)
    return laid_out(one.inputs, interface.output_specs, sizes)


def rows_of(one: Round) -> dict[str, int]:
    """Return the dimension that numbers the rows, by input; of none where they depend."""
    axis = rows_axis(one, relations_of(one))
    specs = one.subject.interface.input_specs.items()
    return {n: s.shape.index(axis) for n, s in specs if s.shape and axis in s.shape}


def is_timed(one: Round, has_workloads: bool) -> bool:
    """Return whether a case is timed: workloads, or all cases of a definition without.

    Samplers are not: their verdict takes many calls on the same values. Nor are those of
    which several copies don't fit.
    """
    if (has_workloads and one.workload is None) or one.calls() > 1:
        return False
    return tensor_bytes(one.subject.definition, one.case) <= _MOST_BYTES


def timed_rounds(asked: EvaluationRounds) -> dict[str, Round]:
    """Return the rounds that are timed, by the name of their case."""
    rounds = {name: of_case[0] for name, of_case in asked.rounds}
    has_workloads = any(one.workload is not None for one in rounds.values())
    return {n: one for n, one in rounds.items() if is_timed(one, has_workloads)}


def layouts_of(asked: EvaluationRounds) -> list[Layout]:
    """Return the layouts of the calls of all that is timed."""
    return [layout_of(one) for one in timed_rounds(asked).values()]


def second_draws(asked: EvaluationRounds) -> dict[str, Round]:
    """Return rounds with other values of what is timed, by the name of their case.

    Both draws of as many as have room are made now, while processes start; of others when
    they are timed.
    """
    others, held, left = {}, [], _HELD_BYTES
    for name, one in timed_rounds(asked).items():
        others[name] = replace(one, shift=(one.shift + 1) % SECRETS)
        left -= 2 * tensor_bytes(one.subject.definition, one.case)
        if left >= 0:
            # the first ones are drawn ahead for the judge, meanwhile
            others[name].hold()
            held.append(one)
    for one in held:
        one.hold()
    return others


def timed(
    session: Session,
    asked: EvaluationRounds,
    cases: Sequence[CaseVerdict],
    others: Mapping[str, Round],
    passes_outputs: bool,
    secret: int,
    rivals: Field,
    notes: list[str],
    *,
    is_first: bool = True,
    is_last: bool = True,
) -> list[CaseVerdict]:
    """Return the verdicts with times of all workloads, or of all cases without any.

    `others` are the `second_draws`, released unless another start is to come. What timed
    calls wrote is judged again; a wrong one replaces the case's verdict. Why a case has no
    times is added to `notes`. Unless it is the first start, which was judged before, each
    workload has a judged call that is not timed: solutions compile and tune in it.
    """
    if asked.subject.op.only_moves:
        # while the judge holds the GPU, and while contexts change
        notes.append("not timed: a copy engine can do its work beside the clock")
        return list(cases)
    rounds = timed_rounds(asked)
    table = _Table(session, asked, passes_outputs, secret, rivals)
    times = []
    try:
        for case in cases:
            one = rounds.get(case.case)
            if one is None:
                times.append(case)
                continue
            which = "its first call"
            try:
                if not is_first:
                    table.call(case.case, one)
                which = "a timed call"
                timing = table.timing(case.case, one, others[case.case])
                times.append(replace(case, timing=timing))
            except (Untimed, NoRoom) as untimed:
                notes.append(f"{case.case}: not timed: {untimed}")
                times.append(case)
            except Refused as refused:
                why = f"in {which}: {refused.reason}"
                times.append(replace(case, verdict=refused.verdict, reason=why))
                if refused.verdict != INCORRECT_NUMERICAL:
                    return times
            finally:
                if is_last:
                    one.release()
                    others[case.case].release()
    finally:
        table.close()
    return times


class _Table:
    """The workloads of a solution, timed one after the other, with the same processes."""

    def __init__(
        self,
        session: Session,
        asked: EvaluationRounds,
        passes_outputs: bool,
        secret: int,
        rivals: Field,
    ) -> None:
        self._session, self._passes, self._field = session, passes_outputs, rivals
        self._secret = secret
        device = torch.device(rivals.device)
        self._judge = Judge(session, asked, device, passes_outputs, secret)
        self._arenas: dict[int, SharedMemory] = {}

    def close(self) -> None:
        """Give the memory back that the solution and the reference returned in."""
        for arena in self._arenas.values():
            arena.close()

    def call(self, name: str, one: Round) -> None:
        """Have one ordinary call of a workload made and judged. Raises Refused."""
        about = one.inputs, one.filled, 0, one.case.axes
        self._judge.compared(name, one, self._judge.called(*about))

    def timing(self, name: str, one: Round, other: Round) -> dict[str, Any]:
        """Return the figures of a workload, of two draws. Raises Refused."""
        device = self._field.device
        seconds = SecondsOf()
        with seconds.part("draws"):
            draws = [_on(device, o.trial.inputs) for o in (one, other)]
            names = list(one.inputs)
            filled = [names.index(n) for n in one.filled]
        with seconds.part("memory"):
            calls = TimedCalls(device, layout_of(one), filled)
        links = Links(calls)
        try:
            secret = f"{self._secret} {name}"
            with seconds.part("values"):
                values = FreshInputs(draws, device, secret, rows_of(one))
            result = self._measure(one, calls, links, values, secret, seconds)
        finally:
            with seconds.part("ends"):
                links.end()
                calls.close()
        for part, spent in result.seconds_of.items():
            seconds.add(part, spent)
        # a policy of the op may want what it judges on the CPU, a reference does
        is_free = one.source == ORACLE and not one.subject.op.policies
        at = device if is_free else "cpu"
        with seconds.part("judged calls"):
            for call in result.judged:
                restated = replace(one, values=_on(at, call.inputs))
                outputs = [_moved(v, at) for v in (*call.outputs, *call.filled)]
                self._judge.compared(name, restated, tuple(outputs))
        figures = result.timing["iterations"]
        if figures < LEAST:
            # its calls are judged all the same: one that launches nothing has no figure either
            raise Untimed(
                f"{figures} calls have a figure, of {LEAST} that are needed: the GPU was busy, "
                "or the others took longer than a time slice"
            )
        fractions = fractions_of(one, result.timing["latency_ms"], device)
        return {**result.timing, **fractions, "seconds_of": seconds.as_dict()}

    def _measure(
        self,
        one: Round,
        calls: TimedCalls,
        links: Links,
        values: FreshInputs,
        secret: str,
        seconds: SecondsOf,
    ) -> SessionResult:
        with seconds.part("opening"):
            trusted, *others = self._field.processes
            about = self._session, calls.memory, self._passes, self._arena(0)
            solution = Contender("", links.of_session(*about), 1)
            rivals = []
            reference = self._field.reference
            if reference is not None:
                with suppress(Refused):
                    session = reference.session()
                    memory = calls.apart()
                    link = links.of_session(session, memory, False, self._arena(1))
                    rivals.append(Contender(REFERENCE, link, 1))
            # equal works are 0.3 µs apart on memory at other places
            memory = calls.memory
            empty = links.of_rivals(trusted, memory)
            for process in (trusted, *others):
                is_trusted = process is trusted
                link = empty if is_trusted else links.of_rivals(process, memory)
                rivals += [
                    Contender(n, link, number + 1)
                    for number, n in enumerate(process.names)
                ]
        timing = TimingSession(
            calls,
            values,
            solution,
            rivals,
            empty,
            self._passes,
            secret,
            self._field.telemetry,
            lambda silent: self._session.gone(str(silent)),
        )
        return timing.run()

    def _arena(self, of: int) -> SharedMemory | None:
        """Return memory to return outputs in: of the solution, or of the reference."""
        if self._field.device != "cuda" or (of == 0 and self._passes):
            return None
        if of not in self._arenas:
            self._arenas[of] = create("cuda", self._field.room)
        return self._arenas[of]


def fractions_of(one: Round, latency: float, device: str) -> dict[str, Any]:
    """Return the bounds by the datasheet's and the measured peaks, and the shares of them.

    Raises Refused where the time is impossible by the datasheet's.
    """
    about = one.subject.definition, one.case.axes, one.inputs
    figures: dict[str, Any] = {}
    light = light_of(*about, device)
    if light is not None:
        if why := too_fast(latency, light):
            raise Refused(REWARD_HACK, why)
        figures["light"] = light.as_dict()
        figures["fraction_of_light"] = light.milliseconds / latency
    peak = measured_peak(device)
    if peak is not None:
        measured = light_by(peak, *about)
        figures["measured_light"] = measured.as_dict()
        figures["fraction_of_measured"] = measured.milliseconds / latency
    return figures


def _on(device: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {n: fresh(v, torch.device(device)) for n, v in inputs.items()}


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value
