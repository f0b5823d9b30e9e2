"""A replay that does not end is named by the error that the GPU gave for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from generator.evaluation.conditions.graph import _failure
from generator.evaluation.verdict import RUNTIME_ERROR, Refused


def test_the_error_of_a_replay_is_its_reason() -> None:
    def fails(frame: Any) -> None:
        assert frame == {"release": True}
        raise Refused(RUNTIME_ERROR, "an illegal memory access", is_raised=True)

    why = _failure(SimpleNamespace(ask=fails))  # type: ignore[arg-type]
    assert why == "a replay fails: an illegal memory access"
    assert _failure(SimpleNamespace(ask=lambda _: {})) == ""  # type: ignore[arg-type]
