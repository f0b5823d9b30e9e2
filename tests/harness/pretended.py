"""Pytest plugins that pretend a library, a device, or an end of memory."""

from __future__ import annotations

from pathlib import Path

# the CPU passes for a device on which FlashInfer can be called
EVERY_BACKEND = """
import reference_support.kernel_judge.checks.sources as sources
import reference_support.kernel_judge.providers as providers
import reference_support.running.parametrize as parametrize
from reference_support.kernel_judge.obstacle import Kind, Obstacle

def backend_obstacle(provider, backend, device):
    if provider != "flashinfer":
        return Obstacle(Kind.BROKEN, "not pretended")
    return providers.import_failure(provider)

for module in (sources, providers, parametrize):
    module.backend_obstacle = backend_obstacle
"""

# the CPU passes for a CUDA device, whose context goes with an illegal access: the
# process remembers it, a fresh process does not
CONTEXT = """
import reference_support.running.context as context
import torch

lost = []
real = context.ContextGuard

class Guard(real):
    def __init__(self, config, device):
        super().__init__(config, torch.device("cuda"))

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None and "illegal memory access" in str(call.excinfo):
            lost.append(item)
        return (yield from real.pytest_runtest_makereport(self, item, call))

Guard.pytest_runtest_makereport = pytest.hookimpl(wrapper=True)(
    Guard.pytest_runtest_makereport
)
context.ContextGuard = Guard
context.is_alive = lambda device: not lost
"""

# memory ends where a comparison is one of so many rows
MEMORY = """
import reference_support.kernel_judge.comparison.compare as compare
import reference_support.kernel_judge.checks.pairs as pairs
import torch

def compared(actual, expected, tolerance, *, same_dtype):
    if actual.shape[0] == 8:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8 GiB")
    if actual.shape[0] == 3:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
    return compare.compare(actual, expected, tolerance, same_dtype=same_dtype)

pairs.compare = compared
"""


def pretend(root: Path, plugin: str, flashinfer: str | None = None) -> tuple[str, str]:
    """Write a plugin that runs a text before tests are collected; return its options.

    `flashinfer` is the text of a package of that name, beside it.
    """
    indented = "".join(f"    {line}\n" for line in plugin.splitlines())
    # last of all plugins to be loaded is conftest.py: it may be imported from here on
    text = (
        "import pytest\n\n\n@pytest.hookimpl(tryfirst=True)\n"
        f"def pytest_configure(config):\n{indented}"
    )
    (root / "pretended_plugin.py").write_text(text)
    if flashinfer is not None:
        (root / "flashinfer.py").write_text(flashinfer)
    return "-p", "pretended_plugin"
