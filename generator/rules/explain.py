"""Format the catalogue of rules: for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from generator.problems import Rule
from generator.reports.json import plain
from generator.rules.catalogue import GROUPS, RULES, group_of


def as_dicts(rules: Collection[str]) -> list[dict[str, Any]]:
    """Return the rules as plain JSON values, in the table's order."""
    return [
        {"group": group, **plain(rule)}
        for group, members in GROUPS.items()
        for rule in members
        if rule.id in rules
    ]


def as_list(rules: Collection[str]) -> Iterator[str]:
    """Yield a line for each rule, under its group."""
    width = max(len(rule) for rule in RULES)
    for group, members in GROUPS.items():
        chosen = [rule for rule in members if rule.id in rules]
        if chosen:
            yield group
        for rule in chosen:
            yield f"  {rule.severity.value:<7} {rule.id:<{width}}  {rule.explanation}"


def as_text(rule: Rule) -> Iterator[str]:
    """Yield the lines that explain one rule."""
    yield f"{rule.id}: {rule.severity.value}, group {group_of(rule.id)}"
    yield f"  {rule.explanation}"
    yield f"  finds: {rule.example}"
    yield f"  fix: {rule.fix}"
