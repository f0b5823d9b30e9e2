"""The ground truths of a test class, and which of them a device can be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from generator.testing.definition import Backend, Definition
from generator.testing.obstacle import Kind, Obstacle
from generator.testing.providers import PROVIDERS, backend_obstacle


class HasDefinition(Protocol):
    """Be the test class of a definition, with `<provider>_backends` where it has any."""

    def definition(self) -> Definition:
        """Return the definition that is tested."""


def source_name(provider: str, backend: Backend) -> str:
    """Return `flashinfer/fa2`, or the provider alone where it has but one way."""
    return f"{provider}/{backend.name}" if backend.name else provider


def usable_sources(
    cls: HasDefinition, device: torch.device
) -> list[tuple[str, Backend]]:
    """Return the providers and backends of a test class that a device can call."""
    definition = cls.definition()
    return [
        (provider, backend)
        for provider in PROVIDERS
        for backend in backends_of(cls, provider, definition)
        if backend_obstacle(provider, backend, device) is None
    ]


def backends_of(
    cls: HasDefinition, provider: str, definition: Definition
) -> Sequence[Backend]:
    """Return a provider's backends for a definition, none without an adapter."""
    backends = getattr(cls, f"{provider}_backends", None)
    return () if backends is None else backends(definition)


def rewritten_by(cls: HasDefinition, *sources: str | None) -> list[str]:
    """Return what the adapters of some sources, `flashinfer/fa2`, say that they rewrite."""
    definition = cls.definition()
    return [
        backend.rewrites
        for provider in PROVIDERS
        for backend in backends_of(cls, provider, definition)
        if backend.rewrites and source_name(provider, backend) in sources
    ]


def too_few(usable: Sequence[tuple[str, Backend]]) -> Obstacle:
    """Return why ground truths can't be held against each other."""
    names = ", ".join(source_name(*source) for source in usable) or "none"
    reason = f"fewer than two ground truths are usable here: {names}"
    return Obstacle(Kind.NO_ADAPTER, reason)
