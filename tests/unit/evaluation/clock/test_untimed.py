"""What is not timed, since its figure would be worth nothing."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generator.dataset.paths import discover_definitions
from generator.evaluation.clock.contender import Contender
from generator.evaluation.clock.sitting import Sitting, Untimed
from generator.evaluation.clock.stand import Timed
from generator.evaluation.rounds import rounds_of
from generator.evaluation.timing import timed
from generator.evaluation.verdict import PASSED, REWARD_HACK, CaseVerdict, Refused
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
    about = (None, asked, cases, False, 4, None, notes)
    assert timed(*about) == cases  # type: ignore[arg-type]
    (note,) = notes
    assert "not timed: a copy engine" in note


@pytest.mark.parametrize("free", [100 << 20, 3 << 30])
def test_a_rival_without_memory_beside_a_solution_leaves_no_times(
    free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 80 << 30))
    sitting = object.__new__(Sitting)
    sitting._stand = SimpleNamespace(device="cuda")  # type: ignore[assignment]
    rival = Contender("pytorch/cublas", None, 1)  # type: ignore[arg-type]
    if free >= 2 << 30:
        sitting._check_room(rival)
        return
    with pytest.raises(
        Untimed, match="pytorch/cublas fails beside it, which leaves 100"
    ):
        sitting._check_room(rival)


def calls(**seen: float) -> tuple[Sitting, Contender]:
    """Return a sitting on a GPU that is made up, and who was called twenty times."""
    usual = {"raw": 0.3, "host": 0.1, "held": 0.4, "delayed": 0.0, "copied": 0.02}
    timed = Timed(**{**usual, "launched": 0.01, **seen}, said={})
    sitting: Any = object.__new__(Sitting)
    sitting._stand = SimpleNamespace(device="cuda", call=lambda *_: timed)
    sitting._draw, sitting._solution = random.Random(1), None
    sitting._quiet, sitting._late = [(0.0, 0.4, 0.02)] * 8, 0
    who = Contender("pytorch/cublas", None, 1, waits=False)  # type: ignore[arg-type]
    for _ in range(20):
        sitting._called(who)
    return sitting, who


def test_a_call_that_the_judge_was_late_to_copy_is_nobodys_fault() -> None:
    sitting, who = calls(copied=5.0, launched=4.9)
    assert (who.raw, who.void, sitting._late) == ([], 0, 20)
    sitting, who = calls(copied=0.1, launched=0.08)
    assert (len(who.raw), who.void, sitting._late) == (20, 0, 0)


def test_others_work_while_outputs_are_copied_is_seen() -> None:
    # two changes of context and a kernel
    with pytest.raises(Refused, match="beside the time that is measured") as refused:
        calls(copied=0.32)
    assert refused.value.verdict == REWARD_HACK
