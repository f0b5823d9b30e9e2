"""Make docs/generated/rules.md, the page of all rules; `build_pages` writes it."""

from __future__ import annotations

import re

from generator.rules.catalogue import GROUPS, RULES

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


def page() -> str:
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
