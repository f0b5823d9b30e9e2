"""The functions of an installed FlashInfer that trace templates describe."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# `@flashinfer_api(trace=` and `@flashinfer_experimental_api(trace=`, also over lines
_DECORATED = re.compile(r"_api\(\s*trace\s*=")


def registered() -> tuple[list[tuple[Any, Any]], int]:
    """Return pairs of a function and its template, and how many modules are left out.

    Imports the modules that decorate functions; those that can't be imported here, for
    want of CuTe DSL or of another package, are left out.
    """
    root = Path(str(importlib.import_module("flashinfer").__file__)).parent
    failed = sum(not _imports(name) for name in _decorating(root))
    registry = importlib.import_module("flashinfer.api_logging")._TRACE_REGISTRY
    return [(function, template) for function, template, _ in registry], failed


def _decorating(root: Path) -> Iterator[str]:
    """Yield the names of the modules below a package that decorate functions."""
    for path in sorted(root.rglob("*.py")):
        if _DECORATED.search(path.read_text("utf-8", "replace")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__")


def _imports(name: str) -> bool:
    try:
        importlib.import_module(name)
    # a module may end the process, or need what is not installed here
    except (Exception, SystemExit):  # noqa: BLE001
        return False
    return True
