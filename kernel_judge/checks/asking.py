"""Call a provider's kernel on a trial's inputs, as often as its outputs ask for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from kernel_judge.definition import Backend, Case
from kernel_judge.elsewhere import elsewhere
from kernel_judge.inputs.trial import PROVIDER_SEED, Trial, as_tuple, join, seed
from kernel_judge.obstacle import Kind, Unavailable
from kernel_judge.skipping import skip

_BUILDING = ("ninja", "nvcc", "error building extension", "failed to build")
"""What torch, FlashInfer, tvm-ffi and SGLang say when a module does not compile."""
_not_built: dict[tuple[str, str, str], str] = {}


def ask(
    adapter: Callable[..., Any],
    provider: str,
    backend: Backend,
    trial: Trial,
    calls: Callable[[tuple[Any, ...], Case], int],
) -> tuple[Any, ...]:
    """Return what an adapter returns for a trial, on inputs of its own.

    `calls` says of the first answer how often to call; the answers are joined. Skips
    where the provider can't be asked. A build that fails raises what it raises, once a
    run: afterwards that kernel of the definition is skipped with the reason.
    """
    which = provider, backend.name, trial.definition.name
    if (why := _not_built.get(which)) is not None:
        skip(Kind.BROKEN, f"{provider}: its build failed in this run: {why}")
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
    except Exception as error:
        if (why := why_not_built(error)) is not None:
            _not_built[which] = why
        raise


def why_not_built(error: BaseException) -> str | None:
    """Return in a line why a module was not compiled, None of any other error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not any(word in line.lower() for line in lines for word in _BUILDING):
        return None
    # the compiler's first error says more than that ninja stopped
    first = next((line for line in lines if "error:" in line.lower()), lines[0])
    return first[:200]
