"""Definitions beside each other, and what their tags claim about the world outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from generator.fi_api import has_symbol
from generator.outcome import Summary
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import quote

_COMPARED = 8
"""Definitions of one geometry that a further one is compared with."""

Evidence = Callable[[Summary], bool]


@dataclass
class Beside:
    """Compare each definition with those before it; a few bytes are kept of each.

    `flashinfer` is the folder of the installed package or None; `evidence` says
    whether a definition has passed against its production kernel.
    """

    flashinfer: Path | None
    evidence: Evidence
    _geometries: dict[str, list[Summary]] = field(default_factory=dict)
    _facts: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, summary: Summary) -> Iterator[Problem]:
        """Yield the Problems that a definition has with those before it."""
        yield from self._claims(summary)
        alike = self._geometries.setdefault(summary.geometry, [])
        for other in alike:
            rule, message = _compared(summary, other)
            yield finding(rule, summary.path, message)
            break
        if len(alike) < _COMPARED:
            alike.insert(0, summary)
        for key, value in summary.facts:
            known, path = self._facts.setdefault(key, (value, summary.path))
            if known != value:
                model, _, axis = key.split(" ")
                yield finding(
                    "cross-model",
                    summary.path,
                    f"The axis {quote(axis)} of {model} is {value} here and {known} in "
                    f"{quote(path, 200)}.",
                    pointer=pointer(("axes", axis, "value")),
                )

    def _claims(self, summary: Summary) -> Iterator[Problem]:
        for index, symbol in summary.fi_apis:
            if self.flashinfer is None or not symbol.startswith("flashinfer."):
                continue
            if not has_symbol(self.flashinfer, symbol):
                message = f"The installed FlashInfer has no {quote(symbol, 200)}."
                where = pointer(("tags", index))
                yield finding("tag-fi-api", summary.path, message, pointer=where)
        if summary.verified is not None and not self.evidence(summary):
            message = "No run in verification/ shows this text of it agree with a "
            message += "production kernel."
            where = pointer(("tags", summary.verified))
            yield finding("tag-evidence", summary.path, message, pointer=where)


def _compared(summary: Summary, other: Summary) -> tuple[str, str]:
    shown = quote(other.path, 200)
    if summary.reference == other.reference:
        return "cross-duplicate", f"Only name and texts differ from {shown}."
    constants, others = dict(summary.constants), dict(other.constants)
    for name, value in constants.items():
        if others.get(name, value) != value:
            message = f"The constant {name} is {value!r} here and {others[name]!r} in "
            message += f"{shown}, which has the same axes and tensors."
            return "cross-constant", message
    return "cross-near-duplicate", f"Only the reference differs from {shown}."
