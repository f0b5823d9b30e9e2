"""The ground truths of a subject, and which of them a device can be asked for."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernel_judge.definition import Backend
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.provider import providers
from kernel_judge.providers import backend_obstacle
from kernel_judge.subject import Subject


def source_name(provider: str, backend: Backend) -> str:
    """Return `flashinfer/fa2`, or the provider alone where it has but one way."""
    return f"{provider}/{backend.name}" if backend.name else provider


def usable_sources(subject: Subject, device: torch.device) -> list[tuple[str, Backend]]:
    """Return the providers and backends of a subject that a device can call."""
    return [
        (provider, backend)
        for provider in providers()
        for backend in subject.backends(provider)
        if backend_obstacle(provider, backend, device) is None
    ]


def rewritten_by(subject: Subject, *sources: str | None) -> list[str]:
    """Return what the adapters of some sources, `flashinfer/fa2`, say that they rewrite."""
    return [
        backend.rewrites
        for provider in providers()
        for backend in subject.backends(provider)
        if backend.rewrites and source_name(provider, backend) in sources
    ]


def too_few(usable: Sequence[tuple[str, Backend]]) -> Obstacle:
    """Return why ground truths can't be held against each other."""
    names = ", ".join(source_name(*source) for source in usable) or "none"
    reason = f"fewer than two ground truths are usable here: {names}"
    return Obstacle(Kind.NO_ADAPTER, reason)
