"""References whose text must be a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def load_reference(lines: Sequence[str]) -> Callable[[], Callable[..., Any]]:
    """Return a function that executes a reference as a module and returns its `run`."""

    def reference() -> Callable[..., Any]:
        module = ModuleType("reference")
        code = compile("\n".join(lines) + "\n", "<reference>", "exec")
        exec(code, module.__dict__)  # noqa: S102
        run: Callable[..., Any] = module.run
        return run

    return reference
