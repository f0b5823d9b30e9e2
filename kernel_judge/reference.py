"""Execute the text of a reference as a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def load_run(text: str, name: str = "<reference>") -> Callable[..., Any]:
    """Execute a reference's text and return its `run()`.

    `name` stands for a file's in tracebacks. Raises what the text raises, KeyError
    where it defines no `run`.
    """
    module = ModuleType("reference")
    # not with this module's `from __future__ import annotations`
    code = compile(text, name, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102
    run: Callable[..., Any] = module.__dict__["run"]
    return run


def load_reference(lines: Sequence[str]) -> Callable[[], Callable[..., Any]]:
    """Return a function that executes the lines of a reference and returns its `run`."""
    return lambda: load_run("\n".join(lines) + "\n")
