"""Where the judge compares: on the GPU while that has room, else on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from generator.evaluation import judge
from generator.evaluation.judge import Judge

# a device that no machine lacks
META = torch.device("meta")
from generator.evaluation.rounds import rounds_of
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess


@pytest.mark.parametrize(
    ("device", "room", "places"),
    [
        ("cpu", 0, ["cpu", "cpu"]),
        ("meta", 10**6, ["meta", "meta"]),
        ("meta", 100, ["cpu", "cpu"]),
        ("meta", None, ["cpu", "cpu"]),
    ],
)
def test_tensors_are_compared_on_the_gpu_if_that_has_room(
    monkeypatch, device, room, places
):
    monkeypatch.setattr(judge, "available_bytes", lambda device: room)
    asking = Judge(None, None, torch.device(device), True, 1)
    found = asking._near(torch.ones(8), torch.ones(4, 2))
    assert [value.device.type for value in found] == places


def test_what_is_no_tensor_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(judge, "available_bytes", lambda device: 10**6)
    assert Judge(None, None, META, True, 1)._near(3.0, 4) == (3.0, 4)


@pytest.mark.parametrize("until_wrong", [False, True])
def test_nothing_is_asked_after_a_wrong_answer_that_ends_it(until_wrong: bool) -> None:
    asked = rounds_of(loaded("rmsnorm_h128"), [], Path(), CPU, 5)
    calls = []

    def wrong(x, weight):
        calls.append(len(x))
        return torch.zeros_like(x)

    judge = Judge(InProcess(wrong), asked, CPU, False, 5, until_wrong=until_wrong)
    found = [v.verdict for v in judge.judge()]
    if until_wrong:
        assert len(calls) == len(found) == 1
    else:
        assert len(found) > 20
    assert "INCORRECT_NUMERICAL" in found
