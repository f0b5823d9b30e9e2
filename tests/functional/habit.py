"""A habit of honest solutions."""

from __future__ import annotations

from dataclasses import dataclass

from tests.functional.hacks import RIGHT


@dataclass(frozen=True)
class Habit:
    """An honest solution, and the module that it needs."""

    name: str
    source: str
    passes_outputs: bool = False
    needs: str = "torch"


def module(text: str) -> str:
    """Return a solution's text after that of a right norm."""
    return f"{RIGHT}\n{text.strip()}\n"
