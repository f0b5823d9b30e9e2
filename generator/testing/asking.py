"""Call a provider's kernel on a trial's inputs, as often as its outputs ask for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from generator.testing import sglang
from generator.testing.definition import Backend, Case
from generator.testing.skipping import skip
from generator.testing.trial import PROVIDER_SEED, Trial, as_tuple, join, seed


def ask(
    adapter: Callable[..., Any],
    provider: str,
    backend: Backend,
    trial: Trial,
    calls: Callable[[tuple[Any, ...], Case], int],
) -> tuple[Any, ...]:
    """Return what an adapter gives for a trial, on inputs of its own.

    `calls` says of the first answer how often to call; the answers are joined. Skips
    where SGLang can't be asked.
    """
    # a process of its own takes of large weights what it needs
    given = trial.lazy_inputs() if provider == "sglang" else trial.fresh_inputs()
    seed(PROVIDER_SEED)
    seeds = count(PROVIDER_SEED)

    question = trial.definition, given, backend.name

    def call() -> tuple[Any, ...]:
        if provider != "sglang":
            return as_tuple(adapter(*question))
        # each call seeds its process: with one seed all were one draw
        return as_tuple(sglang.ask(adapter, *question, next(seeds)))

    try:
        first = call()
        # the draws go on where those of the first call ended: no seed between
        return join(first, call, calls(first, trial.case))
    except sglang.Unavailable as error:
        skip(error.kind, f"sglang: {error}")
