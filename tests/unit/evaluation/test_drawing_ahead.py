"""Values of calls to come are drawn in another thread, as far as there is memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation import drawing_ahead
from generator.evaluation.drawing_ahead import DrawingAhead
from generator.evaluation.judge import in_order
from generator.evaluation.rounds import EvaluationRounds, Round, rounds_of
from generator.rules.load import load_file
from kernel_judge.inputs.memory import tensor_bytes

ROOT = Path(__file__).parents[3]
CPU = torch.device("cpu")


@pytest.fixture
def asked() -> EvaluationRounds:
    path = "definitions/rmsnorm/rmsnorm_h128.json"
    definition, _ = load_file(ROOT, DatasetFile("rmsnorm", "rmsnorm_h128", path))
    assert definition is not None
    return rounds_of(definition, [], ROOT, CPU, 7)


def _distinct(asked: EvaluationRounds) -> list[Round]:
    return [*{id(one): one for _, one, _ in in_order(asked, 3)}.values()]


def _until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20.0
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


def test_all_is_drawn_before_it_is_asked_for_in_another_thread(
    asked: EvaluationRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = _distinct(asked)
    threads, drawn = set(), []
    real = Round.make_inputs

    def noting(self: Round, *about: object) -> object:
        threads.add(threading.current_thread().name.split("_")[0])
        drawn.append(self)
        return real(self, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(Round, "make_inputs", noting)
    with closing(DrawingAhead(rounds)) as ahead:
        assert _until(lambda: "inputs" in vars(rounds[-1]))
        for one in rounds:
            ahead.wait_for(one)
            assert "inputs" in vars(one)
    assert threads == {"drawing"}
    # some were drawn when the rounds were made: those beside others
    order = [id(one) for one in drawn]
    assert len(order) > 20
    assert order == [id(one) for one in rounds if id(one) in order]


def test_the_values_are_those_of_who_draws_himself(asked: EvaluationRounds) -> None:
    rounds = _distinct(asked)
    with closing(DrawingAhead(rounds)) as ahead:
        for one in rounds:
            ahead.wait_for(one)
    for one in rounds:
        again = replace(one).inputs
        assert again.keys() == one.inputs.keys()
        for name, value in again.items():
            assert torch.equal(value, one.inputs[name])


def test_no_more_is_drawn_than_there_is_room_for(
    asked: EvaluationRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    # those beside others were drawn when they were made
    rounds = [one for one in _distinct(asked) if "inputs" not in vars(one)]
    sizes = [tensor_bytes(one.subject.definition, one.case) for one in rounds]
    monkeypatch.setattr(drawing_ahead, "_MOST_BYTES", max(sizes) - 1)
    largest = sizes.index(max(sizes))
    with closing(DrawingAhead(rounds)) as ahead:
        time.sleep(0.2)
        ahead_of_all = [one for one in rounds if "inputs" in vars(one)]
        assert 0 < len(ahead_of_all) < len(rounds)
        for number, one in enumerate(rounds):
            ahead.wait_for(one)
            # what is larger than all of the room is left to who asks
            assert ("inputs" in vars(one)) == (sizes[number] < max(sizes))
            begun = [n for n, r in enumerate(rounds) if "inputs" in vars(r)]
            waiting = [n for n in begun if n > number]
            assert sum(sizes[n] for n in waiting) < max(sizes)
        assert "inputs" not in vars(rounds[largest])


def test_what_fails_there_fails_where_it_is_asked_for(
    asked: EvaluationRounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, *_) = _distinct(asked)

    def failing(self: Round, *about: object) -> object:
        raise ValueError("no such file")

    monkeypatch.setattr(Round, "make_inputs", failing)
    with closing(DrawingAhead([one])) as ahead:
        ahead.wait_for(one)
        with pytest.raises(ValueError, match="no such file"):
            _ = one.inputs
