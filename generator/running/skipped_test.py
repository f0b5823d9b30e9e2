"""Skip a test of pytest with a kind beside the reason, for whoever reads the results."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kernel_judge.obstacle import Kind, Obstacle


class Skipped(pytest.skip.Exception):  # type: ignore[misc,name-defined]
    """End a test as `pytest.skip` does; `kind` says why in a word."""

    # as pytest's own has it, so that reports say `Skipped: reason`
    __module__ = "builtins"

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.reason)
        self.kind = obstacle.kind


@dataclass(frozen=True)
class Broken:
    """Raised where a test can't be posed although nothing stands in its way: it fails."""

    reason: str


def kind_of(error: BaseException | None) -> Kind | None:
    """Return the kind of what ended a test, None where that was no skip of ours."""
    return error.kind if isinstance(error, Skipped) else None
