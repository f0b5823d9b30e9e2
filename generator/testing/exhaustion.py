"""What becomes of a test that runs out of memory: a skip with the numbers.

The case's smaller siblings are tested all the same. `memory.shortage` foresees what it
can; kernels, references and comparisons also take what no interface tells.
"""

from __future__ import annotations

import gc
import json
import traceback
from collections.abc import Generator
from typing import Any

import pytest
import torch

from generator.testing.definition import Case
from generator.testing.memory import available_bytes, needed_bytes, total_bytes
from generator.testing.obstacle import Kind
from generator.testing.skipping import skip

# what allocators say where they raise a plain RuntimeError
_SAYINGS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def is_exhaustion(error: BaseException | None) -> bool:
    """Return whether an error, or one that led to it, says that memory ran out."""
    while error is not None:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
            return True
        # an assertion, or a verdict, may quote such words
        if isinstance(error, RuntimeError) and any(s in str(error) for s in _SAYINGS):
            return True
        error = error.__cause__
    return False


def release(error: BaseException) -> None:
    """Free what a failed call holds: its frames keep their tensors alive."""
    traceback.clear_frames(error.__traceback__)
    gc.collect()
    torch.cuda.empty_cache()  # does nothing where CUDA is not in use


def shortfall(item: Any, device: torch.device) -> str:
    """Return `needs 8.0 GiB by estimate, cuda:0 has 3.1 GiB free of 79.2`."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    case = params.get("trial") or params.get("related")
    parts = []
    if isinstance(case, Case):
        cls = item.cls
        needed = needed_bytes(cls.definition(), case, cls.peak_bytes)
        parts.append(f"needs {_gib(needed)} GiB by estimate")
    free, total = available_bytes(device), total_bytes(device)
    if free is not None:
        of = f" of {_gib(total)}" if total is not None else ""
        parts.append(f"{device} has {_gib(free)} GiB free{of}")
    return ", ".join(parts)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f}"


class MemoryGuard:
    """Turn a test that ran out of memory into a skip, unless it had failed already."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Guard the making of inputs."""
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Guard the reference, the production kernel and the comparison."""
        return (yield from self._guarded(item))

    def _guarded(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            return (yield)
        except Exception as error:
            if not is_exhaustion(error) or _has_failed(item):
                raise
            kind = type(error).__name__
            release(error)
            _forget_comparisons(item)
        reason = f"out of memory ({kind}): {shortfall(item, self._device)}"
        skip(Kind.NEEDS_MEMORY, reason)


def _has_failed(item: pytest.Item) -> bool:
    """Return whether a comparison of this test was already made and is not PASSED."""
    return any(
        name == "comparison" and json.loads(str(value))["verdict"] != "PASSED"
        for name, value in item.user_properties
    )


def _forget_comparisons(item: pytest.Item) -> None:
    """Drop what was compared before memory ran out: a part is not a verdict."""
    item.user_properties[:] = [
        (name, value) for name, value in item.user_properties if name != "comparison"
    ]
