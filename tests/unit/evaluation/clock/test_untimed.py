"""What is not timed, since its figure would be worth nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from generator.dataset.paths import discover_definitions
from generator.evaluation.clock.contender import Contender
from generator.evaluation.clock.timing_session import TimingSession, Untimed
from generator.evaluation.rounds import rounds_of
from generator.evaluation.timing import timed
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
    about = (None, asked, cases, False, 4, None, notes)
    assert timed(*about) == cases  # type: ignore[arg-type]
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
