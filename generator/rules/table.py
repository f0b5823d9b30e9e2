"""Every rule: its id, severity, what it means and the usual fix.

Rule ids are an interface: people filter by them. Add, never rename.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.problems import Problem
from generator.rules.of_audits import AUDITS
from generator.rules.of_constants import CONSTANTS, RENDERED
from generator.rules.of_definitions import INTERFACE, NAMES, REFERENCE
from generator.rules.of_execution import EXECUTION
from generator.rules.of_files import DATASET, FILES, SCHEMA
from generator.rules.of_solutions import SOLUTIONS, TRACES
from generator.rules.of_tags import CROSS, TAGS
from generator.rules.of_workloads import CONTENTS, MADE_UP, WORKLOADS
from generator.rules.rule import Rule
from generator.wording import one_line

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "layout": DATASET,
    "files": FILES,
    "schema": SCHEMA,
    "definitions": (*NAMES, *INTERFACE),
    "reference": REFERENCE,
    "execute": EXECUTION,
    "constants": CONSTANTS,
    "workloads": (*WORKLOADS, *CONTENTS, *MADE_UP),
    "tags": TAGS,
    "solutions": SOLUTIONS,
    "traces": TRACES,
    "cross": CROSS,
    "audit": AUDITS,
    "rendered": RENDERED,
}
"""Group of rules → its rules; `--checks` takes a group or an id."""

RULES: Mapping[str, Rule] = {r.id: r for group in GROUPS.values() for r in group}


def finding(
    rule: str,
    file: str,
    message: str,
    *,
    pointer: str = "",
    line: int | None = None,
    fix: str | None = None,
) -> Problem:
    """Return a Problem of a declared rule, with the rule's severity.

    `fix` replaces the rule's general one where the place allows a better one. Message
    and fix are put on one line, whatever the names in them. Raises KeyError for a rule
    that is not in RULES: that is a defect of the caller.
    """
    declared = RULES[rule]
    return Problem(
        rule=declared.id,
        severity=declared.severity,
        file=file,
        pointer=pointer,
        message=one_line(message, 1000),
        fix=one_line(declared.fix if fix is None else fix, 1000),
        line=line,
    )


def is_blocked(problems: list[Problem]) -> bool:
    """Return whether any of the problems makes a definition unfit to be rendered."""
    return any(RULES[p.rule].blocks for p in problems)
