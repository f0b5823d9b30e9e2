"""Providers whose library is imported in another process alone; imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_judge.obstacle import Obstacle


@dataclass(frozen=True)
class Elsewhere:
    """The way to call a provider whose library is imported in another process alone.

    `absence()` is why it can't be asked, `ask(adapter, definition, inputs, backend,
    draws)` what an adapter returns there, seeded with `draws`; it raises Unavailable.
    `note(cuda)` is a remark on the installation.
    """

    absence: Callable[[], Obstacle | None]
    ask: Callable[..., Any]
    note: Callable[[bool], str]


_elsewhere: dict[str, Elsewhere] = {}


def call_elsewhere(provider: str, elsewhere: Elsewhere) -> None:
    """Have a provider's kernels called in another process from here on."""
    _elsewhere[provider] = elsewhere


def elsewhere(provider: str) -> Elsewhere | None:
    """Return how a provider is called in another process, None where it is in this one."""
    return _elsewhere.get(provider)
