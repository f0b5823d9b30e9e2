"""Tests that run out of memory become skips with the numbers.

The case's smaller siblings are tested all the same. `memory.shortage` foresees what it
can; kernels, references and comparisons also take what no interface tells.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Generator
from typing import Any

import pytest
import torch

from generator.running.free_memory import (
    available_bytes,
    is_exhaustion,
    needed_bytes,
    total_bytes,
)
from generator.running.skipped_test import Skipped
from kernel_judge.definition import Case
from kernel_judge.obstacle import Kind, Obstacle


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
        subject = item.cls.subject()
        needed = needed_bytes(subject.definition, case, subject.op.peak_bytes)
        parts.append(f"needs {_gib(needed)} GiB by estimate")
    free, total = available_bytes(device), total_bytes(device)
    if free is not None:
        of = f" of {_gib(total)}" if total is not None else ""
        parts.append(f"{device} has {_gib(free)} GiB free{of}")
    return ", ".join(parts)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f}"


class MemoryGuard:
    """A plug-in that turns a test which ran out of memory into a skip.

    Once a comparison has failed, the check returns that and raises nothing.
    """

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
            if not is_exhaustion(error):
                raise
            kind = type(error).__name__
            release(error)
        reason = f"out of memory ({kind}): {shortfall(item, self._device)}"
        raise Skipped(Obstacle(Kind.NEEDS_MEMORY, reason))
