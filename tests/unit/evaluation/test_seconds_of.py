"""The seconds of a verdict by part."""

from __future__ import annotations

import pytest

from generator.evaluation import seconds_of
from generator.evaluation.seconds_of import SecondsOf


def test_parts_add_up_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(seconds_of.time, "perf_counter", lambda: now[0])
    seconds = SecondsOf()
    for spent, name in ((1.0, "draws"), (0.25, "build"), (2.0, "draws")):
        now[0] += spent
        seconds.lap(name)

    def judge() -> None:
        with seconds.part("judged"):
            now[0] += 0.5
            raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        judge()
    assert seconds.as_dict() == {"draws": 3.0, "build": 0.25, "judged": 0.5}
