"""Whose fault it is that memory ends in a confined call."""

from __future__ import annotations

import pytest
import torch

from generator.validation.execute.called import lacks_memory

LIMIT = 6 << 30
ERROR = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 3758096384")


@pytest.mark.parametrize(
    ("error", "inputs", "is_limit"),
    [
        (ERROR, {"x": torch.empty(1 << 28, dtype=torch.int8)}, True),
        (MemoryError(), {"x": torch.empty(1 << 28, dtype=torch.int8), "n": 3}, True),
        (ERROR, {"x": torch.empty(8)}, False),
        (ValueError("shapes"), {"x": torch.empty(1 << 28, dtype=torch.int8)}, False),
    ],
)
def test_memory_that_ends_is_the_fault_of(error, inputs, is_limit) -> None:
    assert lacks_memory(error, inputs, LIMIT) is is_limit
