"""What is not timed, since its figure would be worth nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generator.dataset.paths import discover_definitions
from generator.evaluation.arena import laid_out
from generator.evaluation.clock.contender import Contender, EmptyCalls, resolved
from generator.evaluation.clock.quiet_calls import QuietCalls
from generator.evaluation.clock.session_result import (
    CandidateCall,
    SessionResult,
    Untimed,
)
from generator.evaluation.clock.timed_calls import CallTimes, TimedCalls
from generator.evaluation.clock.timing_session import TimingSession
from generator.evaluation.rounds import rounds_of
from generator.evaluation.timing import _Table, second_draws, timed
from generator.evaluation.verdict import PASSED, CaseVerdict
from generator.rules.load import load_file
from tests.builders import ROOT


def test_an_op_that_only_moves_is_not_timed() -> None:
    name = "heads_first_h64_d128"
    file = next(f for f in discover_definitions(ROOT).files if f.name == name)
    definition, _ = load_file(ROOT, file)
    assert definition is not None
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 4)
    cases = [CaseVerdict(case, PASSED) for case, _ in asked.rounds]
    notes: list[str] = []
    about: Any = (None, asked, cases, {}, False, 4, None, notes)
    assert timed(*about) == cases
    (note,) = notes
    assert "not timed: a copy engine" in note


def _check_room(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 80 << 30))
    session = object.__new__(TimingSession)
    session._calls = SimpleNamespace(device="cuda")  # type: ignore[assignment]
    session._check_room(Contender("pytorch/cublas", None, 1))  # type: ignore[arg-type]


def test_a_rival_without_memory_beside_a_solution_leaves_no_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _check_room(3 << 30, monkeypatch)
    why = "pytorch/cublas fails beside it, which leaves 100"
    with pytest.raises(Untimed, match=why):
        _check_room(100 << 20, monkeypatch)


def test_hold_ends_before_a_time_slice() -> None:
    calls = TimedCalls("cpu", laid_out({"x": torch.zeros(4)}, {}, {}))
    assert calls.hold_for(0.1) == 0.4
    assert calls.hold_for(0.8) == 0.8
    assert calls.hold_for(40.0) + 0.5 < 2.4
    # long values leave less of it to launches
    calls._fit_writing(1.4)
    assert calls.hold_for(40.0) + 1.4 < 2.4
    calls.close()


@pytest.mark.parametrize("share", [1.0, 1.6])
def test_a_longer_hold_is_no_work_of_others(share: float) -> None:
    # a card whose clocks are low takes longer for the cycles of each hold
    quiet = QuietCalls()
    empty = CallTimes(0.28, 0.1, 0.4 * share, 0.5, 0.02, 0.1, 0.2, 0.1, {})
    for _ in range(3):
        quiet.add(empty)
    longer = replace(empty, held=1.5 * share, asked=1.5)
    assert not quiet.is_busy(empty)
    assert not quiet.is_busy(longer)
    for one in (empty, longer):
        assert quiet.is_busy(replace(one, held=one.held + 0.3))


def test_values_that_take_a_time_slice_to_write_are_not_timed() -> None:
    calls = TimedCalls("cpu", laid_out({"x": torch.zeros(4)}, {}, {}))
    with pytest.raises(Untimed, match=r"MiB take 2\.0 ms to write, more than"):
        calls._fit_writing(2.0)
    assert calls.memory.file == -1


def test_what_no_figure_resolves_is_not_measured_for_longer() -> None:
    zero = EmptyCalls()
    for _ in range(3):
        zero.add(False, 0.28)
        zero.add_twice(0.283)
    short = Contender("", None, 1, waits=False, raw=[(False, 0.2835)] * 4)  # type: ignore[arg-type]
    longer = replace(short, raw=[(False, 0.35)] * 4)
    assert not resolved(short, zero)
    assert resolved(longer, zero)


def test_two_draws_of_what_is_timed_stay_until_they_are_released() -> None:
    file = next(f for f in discover_definitions(ROOT).files if f.name == "rmsnorm_h128")
    definition, _ = load_file(ROOT, file)
    assert definition is not None
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 4)
    others = second_draws(asked)
    name, (one, *_) = asked.rounds[0]
    first, second = one.inputs["hidden_states"], others[name].inputs["hidden_states"]
    assert first.shape == second.shape
    assert not torch.equal(first, second)
    # as after a call of it was judged
    for shown in ("trial", "inputs"):
        one.__dict__.pop(shown)
    assert one.inputs["hidden_states"] is first
    one.release()
    one.__dict__.pop("trial", None)
    one.__dict__.pop("inputs", None)
    again = one.inputs["hidden_states"]
    assert again is not first
    assert torch.equal(again, first)


def test_a_reference_is_timed_in_every_turn_where_no_kernel_is() -> None:
    session: Any = object.__new__(TimingSession)
    session._zero = EmptyCalls()
    session._zero.add(False, 0.28)
    session._solution = Contender("", None, 1, waits=False)  # type: ignore[arg-type]
    figures = [(False, 0.4)] * 20
    reference = Contender("reference", None, 1, raw=figures, waits=False)  # type: ignore[arg-type]
    session._rivals = [reference]
    assert session._called_now() == [reference]
    kernel = replace(reference, name="flashinfer")
    session._rivals = [reference, kernel]
    assert session._called_now() == [kernel]
    late = replace(reference, raw=figures[:10])
    session._rivals = [late, kernel]
    assert session._called_now() == [late, kernel]
    # a second kernel is called until it is surely slower
    near = replace(kernel, name="near", raw=[(False, 0.4001)] * 19)
    session._rivals = [kernel, near]
    assert session._called_now() == [kernel, near]
    near.raw.append((False, 0.4001))
    assert session._called_now() == [kernel]


def test_nobody_waits_long_for_who_is_far_from_the_fastest() -> None:
    session: Any = object.__new__(TimingSession)
    session._zero = EmptyCalls()
    session._zero.add(False, 0.28)
    session._solution = Contender("", None, 1, waits=False)  # type: ignore[arg-type]
    kernel = replace(session._solution, name="a", raw=[(False, 0.4)] * 10, spent=0.2)
    far = replace(kernel, name="far", raw=[(False, 4.0)] * 2)
    session._rivals = [kernel, far]
    assert session._called_now() == [kernel, far]
    far.raw.append((False, 4.0))
    assert session._called_now() == [kernel]
    # one that takes little has all of its figures
    far.spent = 0.02
    assert session._called_now() == [kernel, far]


def test_a_session_does_not_end_while_a_kernel_lacks_figures() -> None:
    session: Any = object.__new__(TimingSession)
    session._zero = EmptyCalls()
    session._zero.add(False, 0.28)
    figures = [(False, 0.4)] * 20
    session._solution = Contender("", None, 1, waits=False, raw=figures)  # type: ignore[arg-type]
    reference = replace(session._solution, name="reference")
    session._rivals = [reference]
    assert session._is_known()
    # its way of waiting has just changed
    kernel = replace(reference, name="flashinfer", raw=[])
    session._rivals = [reference, kernel]
    assert not session._is_known()
    kernel.raw = figures
    assert session._is_known()


@pytest.mark.parametrize("figures", [19, 20])
def test_a_workload_with_few_figures_has_none(
    figures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a solution that takes long in every second call chooses the others
    file = next(f for f in discover_definitions(ROOT).files if f.name == "rmsnorm_h128")
    definition, _ = load_file(ROOT, file)
    assert definition is not None
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 4)
    name, (one, *_) = asked.rounds[0]
    judged: list[str] = []
    table: Any = object.__new__(_Table)
    table._field = SimpleNamespace(device="cpu", telemetry=None)
    table._secret = 4
    table._judge = SimpleNamespace(compared=lambda name, *_: judged.append(name))
    call = CandidateCall(one.inputs, (torch.zeros(1),), ())
    timing = {"iterations": figures, "latency_ms": 0.5}
    result = SessionResult(timing, [call], {}, {})
    monkeypatch.setattr(_Table, "_measure", lambda *_: result)
    about = name, one, second_draws(asked)[name]
    if figures < 20:
        with pytest.raises(Untimed, match="19 calls have a figure, of 20"):
            table.timing(*about)
    else:
        assert table.timing(*about)["latency_ms"] == 0.5
    assert judged == [name]
