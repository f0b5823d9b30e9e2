"""A habit of honest solutions."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec

from tests.functional.hacks import RIGHT


@dataclass(frozen=True)
class Habit:
    """An honest solution, and the module or program that it needs."""

    name: str
    source: str
    passes_outputs: bool = False
    needs: str = "torch"

    @property
    def lacks(self) -> str:
        """Return why it can't be judged here, empty where it can."""
        is_there = find_spec(self.needs) or shutil.which(self.needs)
        return "" if is_there else f"{self.needs} is not installed"


def module(text: str) -> str:
    """Return a solution's text after that of a right norm."""
    return f"{RIGHT}\n{text.strip()}\n"
