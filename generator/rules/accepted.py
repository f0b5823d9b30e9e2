"""Errors that a dataset lives with: `accepted.toml`, by rule and definition.

    [[accepted]]
    rule = "route-interface"
    reason = "docs/findings.md 1: published so; fused_add_rmsnorm_residual_h4096 has both"
    definitions = ["fused_add_rmsnorm_h4096"]

Only rules of the group `routes` can be accepted: these are about calls of other software,
which a published definition can't follow without becoming another one. An accepted error
is a warning that says why, never nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import is_file, read_bytes
from generator.problems import Problem, Severity, error, warning
from generator.problems.messages import one_line, quote

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

ACCEPTED = "accepted.toml"
GROUP = "route-"
_MAX_BYTES = 256 * 1024

ACCEPTED_FILE = error("""accepted-file: The dataset's accepted.toml can't be used: no error
    is accepted.
    Fix: Write tables [[accepted]] with a rule of the group routes, a reason, and the
    names of definitions.
    Finds: an entry without a reason""")
ACCEPTED_UNUSED = warning("""accepted-unused: accepted.toml accepts an error that is not
    there.
    Fix: Remove the definition from the entry.
    Finds: route-interface of a definition that was mended""")


@dataclass
class AcceptedErrors:
    """Errors that a dataset accepts, and why: (rule, definition) → reason."""

    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    _met: set[tuple[str, str]] = field(default_factory=set)

    def judged(self, problem: Problem) -> Problem:
        """Return a problem, an accepted error as a warning with the reason."""
        name = problem.file.rpartition("/")[2].removesuffix(".json")
        reason = self.reasons.get((problem.rule, name))
        if reason is None or problem.severity is not Severity.ERROR:
            return problem
        self._met.add((problem.rule, name))
        message = one_line(f"{problem.message} Accepted: {reason}", 1000)
        return replace(problem, severity=Severity.WARNING, message=message)

    def unused(self) -> Iterator[Problem]:
        """Yield a Problem for each entry that no problem has met."""
        for rule, name in self.reasons:
            if (rule, name) not in self._met:
                yield ACCEPTED_UNUSED.problem(
                    ACCEPTED, f"{quote(name)} has no error {rule}."
                )


def read_accepted(root: Path) -> AcceptedErrors:
    """Return what a dataset accepts: nothing without a file, or where it is unusable."""
    if not is_file(root, ACCEPTED):
        return AcceptedErrors()
    try:
        data = read_bytes(root, ACCEPTED, _MAX_BYTES)
        return AcceptedErrors(_reasons(tomllib.loads(data.decode("utf-8"))))
    except OSError as failed:
        return _unusable(failed.strerror or str(failed))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, _Unusable) as failed:
        return _unusable(str(failed))


class _Unusable(Exception):
    """Raised in words where the file is invalid."""


def _unusable(why: str) -> AcceptedErrors:
    return AcceptedErrors(problems=(ACCEPTED_FILE.problem(ACCEPTED, why),))


def _reasons(value: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    entries = value.get("accepted")
    if value.keys() != {"accepted"} or not isinstance(entries, list):
        raise _Unusable("The file has tables [[accepted]], and nothing else.")
    reasons: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(entries, 1):
        where = f"Entry {number}"
        if not isinstance(entry, dict) or entry.keys() != {
            "rule",
            "reason",
            "definitions",
        }:
            raise _Unusable(f"{where}: it has rule, reason and definitions.")
        rule, reason, names = entry["rule"], entry["reason"], entry["definitions"]
        if not isinstance(rule, str) or not rule.startswith(GROUP):
            shown = one_line(str(rule), 60)
            raise _Unusable(
                f"{where}: {shown} can't be accepted, only rules of routes."
            )
        if not isinstance(reason, str) or not reason.strip():
            raise _Unusable(f"{where}: the reason is empty.")
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise _Unusable(f"{where}: definitions is an array of names.")
        for name in names:
            if (rule, name) in reasons:
                raise _Unusable(f"{where}: {one_line(name, 100)} is accepted twice.")
            reasons[rule, name] = reason
    return reasons
