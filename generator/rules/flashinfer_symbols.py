"""Find FlashInfer's functions in its sources, without importing it."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

_MAX_BYTES = 4 * 1024 * 1024
_IMPORT = re.compile(r"^\s*from\s+\S+\s+import\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)


def installed_flashinfer() -> Path | None:
    """Return the folder of the installed package, or None."""
    spec = PathFinder.find_spec("flashinfer")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    # a folder of that name in the current directory is no package
    return folder if (folder / "__init__.py").is_file() else None


@lru_cache(maxsize=4096)
def has_symbol(package: Path, symbol: str) -> bool:
    """Return whether the sources under `package` seem to export a dotted name.

    Where they can't tell (`import *`, a base class elsewhere) the answer is yes.
    """
    _, *parts = symbol.split(".")
    folder = package
    for index, part in enumerate(parts):
        if (folder / part / "__init__.py").is_file():
            folder = folder / part
            continue
        if (folder / f"{part}.py").is_file():
            module, rest = folder / f"{part}.py", parts[index + 1 :]
        else:
            module, rest = folder / "__init__.py", parts[index:]
        return not rest or _defines(_text(module), rest)
    return True


@lru_cache(maxsize=64)
def _text(module: Path) -> str:
    try:
        with module.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _defines(text: str, names: list[str]) -> bool:
    """Return whether a module's text binds a name, and the method of it if given."""
    name = re.escape(names[0])
    bound = re.search(
        rf"^\s*(?:(async\s+)?def\s+{name}\b|{name}\s*[:=])", text, re.MULTILINE
    )
    kind = re.search(rf"^class\s+{name}\b(\([^)]*\))?[^\n]*", text, re.MULTILINE)
    if kind is not None and len(names) > 1:
        body = re.split(r"^\S", text[kind.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        method = re.search(rf"\bdef\s+{re.escape(names[1])}\b", body)
        return method is not None or kind[1] not in (None, "()")
    if bound or kind:
        return True
    imports = [match[1] for match in _IMPORT.finditer(text)]
    word = re.compile(rf"\b{name}\b")
    return any(word.search(i) or i.strip().startswith("*") for i in imports)
