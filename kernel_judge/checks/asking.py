"""Call a provider's kernel on a trial's inputs, as often as its outputs ask for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from kernel_judge.definition import Backend, Case
from kernel_judge.elsewhere import elsewhere
from kernel_judge.inputs.trial import PROVIDER_SEED, Trial, as_tuple, join, seed
from kernel_judge.obstacle import Unavailable
from kernel_judge.skipping import skip


def ask(
    adapter: Callable[..., Any],
    provider: str,
    backend: Backend,
    trial: Trial,
    calls: Callable[[tuple[Any, ...], Case], int],
) -> tuple[Any, ...]:
    """Return what an adapter returns for a trial, on inputs of its own.

    `calls` says of the first answer how often to call; the answers are joined. Skips
    where the provider can't be asked.
    """
    process = elsewhere(provider)
    # a process of its own takes of large weights what it needs
    inputs = trial.fresh_inputs() if process is None else trial.lazy_inputs()
    seed(PROVIDER_SEED)
    seeds = count(PROVIDER_SEED)

    question = trial.definition, inputs, backend.name

    def call() -> tuple[Any, ...]:
        if process is None:
            return as_tuple(adapter(*question))
        # each call seeds its process: with one seed all were one draw
        return as_tuple(process.ask(adapter, *question, next(seeds)))

    try:
        first = call()
        # the draws go on where those of the first call ended: no seed between
        return join(first, call, calls(first, trial.case))
    except Unavailable as error:
        skip(error.kind, f"{provider}: {error}")
