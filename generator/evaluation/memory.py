"""The greatest memory that one call takes beyond its arguments, its outputs included.

It is measured of a solution and, at the same case, of the reference and of production
kernels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.certification.process import kernel_session
from generator.evaluation.certification.task import callable_kernels
from generator.evaluation.clock.contender import REFERENCE
from generator.evaluation.confined_reference import ConfinedReference, ReferenceFailed
from generator.evaluation.draws import SECRETS, draws_of
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import EvaluationRounds, Round
from generator.evaluation.session import Allowed, Session
from generator.evaluation.timing import layout_of
from generator.evaluation.verdict import REWARD_HACK, Refused
from generator.execution.outcome import CannotRun
from generator.problems.messages import one_line
from kernel_judge.checks.available import source_name
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.provider import providers
from kernel_judge.subject import Subject

_SMALL, _LARGE = 0, 1
# a first call of a kernel may compile
_KERNEL_SECONDS = 600.0
_SAMPLE_SECONDS = 0.0005
# what the driver takes for the code of kernels, once it is loaded
_LEAST_BYTES = 32 << 20

Opens = Callable[[], AbstractContextManager[Session]]


@dataclass(frozen=True)
class CallPeak:
    """The bytes that a call takes at most, and of a GPU how many the driver gave for it."""

    bytes: int
    driver: int | None


@dataclass
class MemoryOfCalls:
    """The memory of each that answers, at the largest case of what a definition is asked.

    `secret` seeds the values. With workloads, the largest of these is taken. `known` has
    what rivals came to at other solutions of the definition, and gets more.
    """

    asked: EvaluationRounds
    device: torch.device
    secret: int
    known: dict[tuple[str, str], int | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._draw = draws_of(self.secret, "memory")
        rounds = {name: of_case[0] for name, of_case in self.asked.rounds}
        sizes = {
            name: tensor_bytes(one.subject.definition, one.case)
            for name, one in rounds.items()
            if all(one.case.axes.values())
        }
        timed = [name for name in sizes if rounds[name].workload is not None]
        self.case = max(timed or sizes, key=sizes.__getitem__, default="")
        if self.case:
            self._small = rounds[min(sizes, key=sizes.__getitem__)]
            self._large = rounds[self.case]

    def measured(
        self, opens: Opens, rivals: Mapping[str, Opens], *, passes_outputs: bool
    ) -> dict[str, Any]:
        """Return the figures as JSON values. Raises Refused of the solution alone.

        Why there is no figure of a rival is in `not_measured`.
        """
        mine = self.peak(opens, passes_outputs=passes_outputs, compares=True)
        outputs = self._output_bytes()
        figures: dict[str, Any] = {
            "case": self.case,
            "peak_memory_bytes": mine.bytes,
            "driver_bytes": mine.driver,
            "output_bytes": outputs,
            "argument_bytes": layout_of(self._large).size - outputs,
            "rivals": {},
            "not_measured": {},
        }
        for name, rival in rivals.items():
            key = (self.case, name)
            if key not in self.known:
                self.known[key] = self._of_rival(rival)
            peak = self.known[key]
            where = "not_measured" if isinstance(peak, str) else "rivals"
            figures[where][name] = peak
        self._large.drop()
        return figures

    def _of_rival(self, opens: Opens) -> int | str:
        """Return the bytes of a rival's call, or why there is no figure."""
        try:
            return self.peak(opens, passes_outputs=False, compares=False).bytes
        except (Refused, ReferenceFailed, CannotRun) as error:
            return one_line(str(error), 200)

    def peak(self, opens: Opens, *, passes_outputs: bool, compares: bool) -> CallPeak:
        """Return what a call takes in a session. Raises Refused.

        It is the second call at the case: what a first one compiles or tries is no memory
        of a call, and what it keeps is.
        """
        with opens() as session:
            about = (session, self.asked, self.device, passes_outputs)
            judge = Judge(*about, self._draw.randrange(SECRETS))

            def answer(one: Round, slot: int) -> tuple[Any, ...]:
                return judge.called(one.inputs, one.filled, slot, one.case.axes)

            answer(self._small, _SMALL)
            rounds = [self._other(), self._other()]
            used = layout_of(rounds[0]).size
            session.slot(_LARGE, used)
            watch = _Watch(session, self.device, used)
            answers = [answer(rounds[0], _LARGE)]
            watch.begin()
            with _lacking(self.device) as most:
                answers.append(answer(rounds[1], _LARGE))
            outputs = self._output_bytes() if passes_outputs else 0
            peak = watch.end(most[0], outputs)
            if compares and self._large.calls() == 1:
                # only now: what is expected may take memory of the GPU as well
                for one, actual in zip(rounds, answers, strict=True):
                    judge.compared("", one, actual)
            return peak

    def _other(self) -> Round:
        """Return a round of the largest case, whose values are there."""
        one = replace(self._large, shift=self._draw.randrange(SECRETS))
        layout_of(one)
        return one

    def _output_bytes(self) -> int:
        return sum(place.get("bytes", 0) for place in layout_of(self._large).outputs)


def rival_sessions(
    root: Path,
    file: DatasetFile,
    subject: Subject,
    device: torch.device,
    reference: ConfinedReference | None,
) -> dict[str, Opens]:
    """Return by name what opens a session with the reference and each production kernel."""
    opens: dict[str, Opens] = {}
    if reference is not None:
        opens[REFERENCE] = lambda: nullcontext(reference.session())
    how = {"root": str(root.absolute()), "file": asdict(file)}
    allowed = Allowed(_KERNEL_SECONDS)
    for provider, backend in callable_kernels(subject, [*providers()], device):
        kernel = source_name(provider, backend)
        asked = {**how, "provider": provider, "kernel": kernel}

        def opened(asked: Mapping[str, Any] = asked) -> AbstractContextManager[Session]:
            return closing(kernel_session(asked, device.type, allowed))

        opens[kernel] = opened
    return opens


class _Watch:
    """See what a process has before a call and at most while it lasts.

    On a CPU the keeper counts, from outside; on a GPU torch does, in the process, and what
    the driver gave beside torch's memory is added.
    """

    def __init__(self, session: Session, device: torch.device, used: int) -> None:
        self._session, self._device, self._used = session, device, used
        self._torch = self.begin()
        self._resident = session.keeper.peak()
        self._lack = _lack() if device.type == "cuda" else 0

    def begin(self) -> dict[str, int]:
        """Have all peaks begin anew; return what torch had at most until now."""
        how = {"slot": _LARGE, "used": self._used}
        answer = self._session.ask({"memory": how})
        self._session.keeper.peak()
        names = ("ours", "peak", "reserved", "now")
        if any(type(answer.get(name)) is not int for name in names):
            why = "its answer on memory is none that the worker gives"
            raise Refused(REWARD_HACK, why)
        return {name: answer[name] for name in names}

    def end(self, most_lacking: int, outputs: int) -> CallPeak:
        """Return the peak since `begin`; `outputs` were arguments of the call."""
        resident = self._session.keeper.peak()
        if self._device.type == "cpu":
            grown = resident["peak"] - self._resident["resident"]
            grown += resident["files"] - self._resident["files"]
            return CallPeak(max(grown, 0) + outputs, None)
        after = self.begin()
        driver = max(most_lacking - self._lack, 0)
        beside = driver - max(after["reserved"] - self._torch["now"], 0)
        peak = max(after["peak"] - after["ours"], 0)
        if beside >= _LEAST_BYTES:
            # torch's peak may have come before or after: no less than the driver gave
            peak = max(peak + beside, driver)
        return CallPeak(peak + outputs, driver)


@contextmanager
def _lacking(device: torch.device) -> Iterator[list[int]]:
    """Sample how many bytes of the GPU are in use, by all; the list has the most then."""
    most, ends = [0], threading.Event()

    def sample() -> None:
        while not ends.wait(_SAMPLE_SECONDS):
            most[0] = max(most[0], _lack())

    if device.type != "cuda":
        yield most
        return
    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ends.set()
        thread.join()
        most[0] = max(most[0], _lack())


def _lack() -> int:
    """Return the bytes of the GPU that are in use, without what this process caches."""
    free, total = torch.cuda.mem_get_info()
    return int(total - free) - torch.cuda.memory_reserved()
