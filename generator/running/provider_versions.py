"""Installed versions of providers, in words."""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache

import torch

from kernel_judge.elsewhere import elsewhere
from kernel_judge.provider import providers
from kernel_judge.providers import provider_obstacle


@cache
def version(provider: str) -> str:
    """Return the installed version of a provider, empty where none is recorded."""
    library = providers()[provider]
    if library.module == "torch":
        # with its build, which PyPI's metadata lacks
        return str(torch.__version__)
    try:
        return importlib.metadata.version(library.distribution)
    except importlib.metadata.PackageNotFoundError:
        # imported before it is described, but for what is called elsewhere
        return str(getattr(sys.modules.get(library.module), "__version__", ""))


def describe(provider: str, device: torch.device) -> str:
    """Return one line on a provider: its version, or why it is not used."""
    obstacle = provider_obstacle(provider, device)
    if obstacle is not None:
        return f"{provider}: {obstacle}"
    text = f"{provider} {version(provider)}".rstrip()
    process = elsewhere(provider)
    note = process.note(device.type == "cuda") if process is not None else ""
    return f"{text} ({note})" if note else text
