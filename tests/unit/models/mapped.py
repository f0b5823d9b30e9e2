"""The models whose figures are here and whose architecture is mapped."""

from __future__ import annotations

from generator.models.config import load, names
from generator.problems import Failure


def mapped() -> tuple[str, ...]:
    """Return their names; others are refused by what the map does not place."""
    return tuple(name for name in names() if _is_mapped(name))


def _is_mapped(name: str) -> bool:
    try:
        load(name)
    except Failure:
        return False
    return True
