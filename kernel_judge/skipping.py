"""End a check that can't be made here, with a kind beside the reason."""

from __future__ import annotations

from typing import NoReturn

from kernel_judge.obstacle import Kind, Obstacle


class Skip(BaseException):
    """End a check: `obstacle` is what it comes to. A check returns it as a value.

    No `except Exception` of a library on the way catches it.
    """

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.reason)
        self.obstacle = obstacle


def skip(kind: Kind, reason: str) -> NoReturn:
    """End the check that runs, for a reason of this kind."""
    raise Skip(Obstacle(kind, reason))
