"""Time a solution on CUDA: one question a call, with values that the judge changes.

A call is an ordinary one with a clock around it: the solution can't tell which calls are
judged, since outputs are fetched only after its answer. The worker's events measure the
call, and the judge's own clock around question and answer bounds what they may say.
The launch of kernels counts, for the reference and the production kernel as well: these
are called in turn with the solution, so that all of them come after the same wait.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from generator.evaluation.events import Clock
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import Asked, Round
from generator.evaluation.session import Answer, Session
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    REWARD_HACK,
    CaseVerdict,
    Refused,
)
from generator.testing.lazy_weights import fresh
from generator.testing.memory import tensor_bytes
from generator.testing.providers import PROVIDERS, backend_obstacle

ITERATIONS, _WARM_UPS, _JUDGED = 100, 100, 4
# of large workloads, whose values take 0.1 s to be written before each call
_FEWEST, _SECONDS = 20, 10.0
_SLOTS = 4
_IDLE_CALLS = 20
_RIVALS_WARM_UPS = 3
_WARM_UP_SECONDS = 5.0
# warm-up ends where the medians of this many calls differ by less than this share
_WINDOW, _STABLE = 10, 0.02
# workloads larger than this are not copied a hundred times
_MOST_BYTES = 4 << 30
# what the worker's clock may say less than the judge's, in milliseconds and as a share
_SLACK_MS, _SLACK = 0.15, 0.5


def timed(
    session: Session,
    asked: Asked,
    cases: Sequence[CaseVerdict],
    passes_outputs: bool,
    secret: int,
    idle: Sequence[Answer],
) -> list[CaseVerdict]:
    """Return the verdicts with times of all workloads, or of all cases without any.

    What timed calls wrote is judged again; a wrong one replaces the case's verdict.
    `idle` are timed calls of nothing, made before the solution was loaded.
    """
    rounds = {name: of_case[0] for name, of_case in asked.rounds}
    has_workloads = any(one.workload is not None for one in rounds.values())
    found = []
    for case in cases:
        one = rounds.get(case.case)
        if one is None or (has_workloads and one.workload is None) or one.calls() > 1:
            found.append(case)
            continue
        if tensor_bytes(one.tests.definition(), one.case) > _MOST_BYTES:
            found.append(case)
            continue
        sitting = _Sitting(session, asked, one, passes_outputs, secret, idle)
        try:
            found.append(replace(case, timing=sitting.timing()))
        except Refused as refused:
            about = (refused.verdict, f"in a timed call: {refused.reason}")
            found.append(replace(case, verdict=about[0], reason=about[1]))
            if refused.verdict != INCORRECT_NUMERICAL:
                return found
        finally:
            one.drop()
    return found


class _Sitting:
    """Hold one workload while the solution, the reference and the kernel are timed."""

    def __init__(
        self,
        session: Session,
        asked: Asked,
        one: Round,
        passes_outputs: bool,
        secret: int,
        idle: Sequence[Answer],
    ) -> None:
        self._session, self._one, self._passes = session, one, passes_outputs
        self._draw = random.Random(f"{secret} {one.case.name}")
        device = torch.device("cuda")
        self._judge = Judge(session, asked, device, passes_outputs, secret)
        self._idle = idle
        tests = one.tests
        self._sizes = {**tests.definition().axes, **one.case.axes}
        self._bytes = tensor_bytes(tests.definition(), one.case)
        rows = torch.contiguous_format
        self._inputs = {
            name: v.clone(memory_format=rows) if isinstance(v, torch.Tensor) else v
            for name, v in one.inputs.items()
        }

    def timing(self) -> dict[str, Any]:
        """Return medians, spreads and clocks. Raises Refused."""
        clock = Clock(torch)
        # some compile, which is no time for a warm GPU to wait
        rivals = _rivals(self._one, clock)
        stable = self._until_stable()
        judged = set(self._draw.sample(range(_FEWEST), _JUDGED))
        answers: list[Answer] = []
        spent = 0.0
        while len(answers) < _FEWEST or (
            len(answers) < ITERATIONS and spent < _SECONDS
        ):
            begun, is_judged = time.monotonic(), len(answers) in judged
            answers.append(self._called(is_judged))
            for rival in rivals:
                rival.call(clock)
            # to judge takes longer than to call
            spent += 0.0 if is_judged else time.monotonic() - begun
        figures = [self._milliseconds(answer) for answer in answers]
        self._check_clock(answers)
        latency = statistics.median(figures)
        reference, *kernels = rivals
        timing: dict[str, Any] = {
            "latency_ms": latency,
            "spread_ms": _spread(figures),
            "iterations": len(figures),
            "warm_up_stable": stable,
            "reference_latency_ms": reference.milliseconds,
            "speedup_factor": reference.milliseconds / latency,
            "clocks_mhz": _clocks(),
        }
        if kernels:
            kernel = min(kernels, key=lambda kernel: kernel.milliseconds)
            timing["production"] = kernel.name
            timing["production_latency_ms"] = kernel.milliseconds
            timing["speedup_over_production"] = kernel.milliseconds / latency
        return timing

    def _until_stable(self) -> bool:
        """Warm up; return whether the times became stable within the calls allowed."""
        figures: list[float] = []
        end = time.monotonic() + _WARM_UP_SECONDS
        while len(figures) < _WARM_UPS and time.monotonic() < end:
            figures.append(self._milliseconds(self._called(False)))
            if len(figures) >= 2 * _WINDOW and len(figures) % _WINDOW == 0:
                before = statistics.median(figures[-2 * _WINDOW : -_WINDOW])
                after = statistics.median(figures[-_WINDOW:])
                if abs(after - before) <= _STABLE * before:
                    return True
        return False

    def _called(self, is_judged: bool) -> Answer:
        """Return the times of a call on values that no call had before."""
        one, session = self._one, self._session
        self._inputs = {n: self._changed(n, v) for n, v in self._inputs.items()}
        slot = self._draw.randrange(_SLOTS)
        specs = one.tests.interface.output_specs
        layout = session.write(slot, self._inputs, specs, self._sizes)
        answer = session.call(
            slot,
            layout,
            seed=self._draw.randrange(2**31),
            passes_outputs=self._passes,
            times=True,
        )
        if is_judged:
            taken = session.fetch(slot, layout)
            names = list(self._inputs)
            after = [session.input(slot, layout, names.index(n)) for n in one.filled]
            inputs = dict(self._inputs)
            same = replace(one, workload=None)
            same._inputs = lambda *given: inputs  # type: ignore[method-assign]
            self._judge._compared(one.case.name, same, (*taken.outputs, *after))
        return answer

    def _changed(self, name: str, value: Any) -> Any:
        """Return a tensor of floats with two of its rows exchanged, all else as it is.

        Whatever the op allows of a value it allows of it in another row; of a tensor of
        one row, in another column.
        """
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        if not is_float or value.numel() < 2 or "scale" in name:
            return value
        length = next(n for n in value.shape if n > 1)
        a, b = self._draw.sample(range(length), 2)
        # by bits: not every operation knows float8
        rows = value.view(-1).view(torch.uint8).view(length, -1)
        rows[[a, b]] = rows[[b, a]]
        return value

    def _milliseconds(self, answer: Answer) -> float:
        """Return a call's time, with what it left running beyond an idle call's rest."""
        usual = statistics.median(i.times["rest"] for i in self._idle)
        return answer.times["milliseconds"] + max(answer.times["rest"] - 2 * usual, 0.0)

    def _check_clock(self, answers: Sequence[Answer]) -> None:
        """Hold the worker's times against the judge's clock. Raises Refused."""
        seconds = [answer.seconds for answer in answers]
        # the least: other work on the machine lengthens calls, and shortens none
        own, usual = 1e3 * min(seconds), 1e3 * statistics.median(seconds)
        said = statistics.median(map(self._milliseconds, answers))
        if not 0.0 < said <= usual:
            why = f"its clock says {said:.4f} ms a call, the judge's {usual:.4f}"
            raise Refused(REWARD_HACK, why)
        idle = 1e3 * statistics.median(i.seconds for i in self._idle)
        copies = 2.0 * self._bytes / 2e9
        least = _SLACK * (own - idle - 1e3 * copies) - _SLACK_MS
        if said < least:
            why = f"its clock says {said:.4f} ms a call, the judge's {own - idle:.4f}"
            raise Refused(REWARD_HACK, why)


def idle_calls(session: Session) -> list[Answer]:
    """Return timed calls of nothing, for what the clocks themselves take."""
    return [session.idle_clock() for _ in range(_IDLE_CALLS)][_IDLE_CALLS // 2 :]


@dataclass
class _Rival:
    """Hold a function that the judge's own process calls in turn with the solution.

    `given` are the inputs of a call, which is restored from `kept` before each.
    """

    name: str
    run: Callable[..., Any]
    given: Mapping[str, Any]
    kept: Mapping[str, Any]
    figures: list[float] = field(default_factory=list)

    def call(self, clock: Clock) -> None:
        """Call it once, and keep how long that took."""
        for name, value in self.given.items():
            if isinstance(value, torch.Tensor):
                value.copy_(self.kept[name])
        times, _ = clock.around(lambda: self.run(*self.given.values()))
        self.figures.append(float(times["milliseconds"]))

    @property
    def milliseconds(self) -> float:
        """Return the median time of a call."""
        return statistics.median(self.figures)


def _rivals(one: Round, clock: Clock) -> list[_Rival]:
    """Return the reference, then the production kernels that run here, warmed up."""
    cuda = torch.device("cuda")
    kept, given = (
        {n: fresh(v, cuda) for n, v in one.trial.inputs.items()} for _ in range(2)
    )
    found = []
    for name, run in [("", one.run), *_production(one)]:
        rival = _Rival(name, run, given, kept)
        try:
            # compiles, where it does
            for _ in range(_RIVALS_WARM_UPS):
                rival.call(clock)
        except Exception:
            # a kernel that does not run here is no reason against the solution
            if not name:
                raise
            continue
        rival.figures.clear()
        found.append(rival)
    return found


def _production(one: Round) -> list[tuple[str, Callable[..., Any]]]:
    """Return the production kernels that can be called here, by name."""
    found = []
    tests, device = one.tests, torch.device("cuda")
    definition = tests.definition()
    names = list(tests.interface.input_specs)
    for provider in PROVIDERS:
        adapter = getattr(tests, f"{provider}_ground_truth", None)
        backends = getattr(tests, f"{provider}_backends", None)
        # SGLang is called in a process of its own, which no event here can time
        if provider == "sglang" or adapter is None or backends is None:
            continue
        for backend in backends(definition):
            if backend_obstacle(provider, backend, device) is not None:
                continue

            def kernel(*given: Any, a: Any = adapter, b: Any = backend) -> Any:
                return a(definition, dict(zip(names, given, strict=True)), b.name)

            name = f"{provider}/{backend.name}" if backend.name else provider
            found.append((name, kernel))
    return found


def _spread(figures: Sequence[float]) -> float:
    """Return the range between the quartiles."""
    low, _, high = statistics.quantiles(figures, n=4)
    return high - low


def _clocks() -> Mapping[str, int]:
    """Return the GPU's clock in MHz, nothing where the driver does not say."""
    try:
        return {"sm": torch.cuda.clock_rate()}
    except Exception:  # noqa: BLE001 - nvidia-ml-py is an extra, and of many versions
        return {}
