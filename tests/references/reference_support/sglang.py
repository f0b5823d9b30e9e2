"""SGLang as a provider: adapters run in a worker process, never in this one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

from .definition import Definition


class Unavailable(Exception):
    """Say why SGLang can't be asked; a reason to skip, not an error."""


def absence() -> str | None:
    """Return why SGLang can't be asked here, None where it may be."""
    return "not installed" if importlib.util.find_spec("sglang") is None else None


def ask(
    adapter: Callable[..., Any],
    definition: Definition,
    inputs: Mapping[str, Any],
    backend: str,
) -> Any:
    """Return what an adapter returns for inputs, called in the worker.

    Raises Unavailable where the worker can't be had, and what the adapter raises.
    """
    raise Unavailable("the worker is not there yet")
