"""Format the catalogue of rules: for a terminal, as JSON, and as a page."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from generator.problems import Rule
from generator.reports.json import plain
from generator.rules.catalogue import GROUPS, RULES, group_of

PAGE = "docs/generated/rules.md"
_HEAD = """\
# The rules

`trace-dataset validate` judges a dataset by {count} rules. An error makes the exit
status 1, a warning does so under `--strict`, a note never does. `--checks` takes rules
and groups of them. Nothing of a dataset is executed: sources are read as text and
syntax trees, constraints are evaluated by an evaluator that knows arithmetic only. The
rules of the group execute alone need `--execute`: they call each reference once on small
inputs, in the sandbox that `docs/sandbox.md` describes.

This page is written by `python tools/build_pages.py`; `trace-dataset rules` prints
the same in a terminal.
"""


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


def as_page() -> str:
    """Return the page of the documentation."""
    lines = [_HEAD.format(count=len(RULES))]
    for group, members in GROUPS.items():
        lines.append(f"## {group}\n")
        lines.append("| rule | severity | what it says | finds, for example | fix |")
        lines.append("|---|---|---|---|---|")
        for rule in members:
            cells = (rule.explanation, rule.example, rule.fix)
            text = " | ".join(_inert(cell) for cell in cells)
            lines.append(f"| `{rule.id}` | {rule.severity.value} | {text} |")
        lines.append("")
    return "\n".join(lines)


def _inert(cell: str) -> str:
    """Return a cell's text; `<name>` is no tag, and a bar no end."""
    return re.sub(r"<(?=\w)", "&lt;", cell).replace("|", "\\|")
