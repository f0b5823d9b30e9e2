"""Hostile and broken files of verification/: cases of the corpus, as hostile.py has."""

from __future__ import annotations

from typing import Any

from tests.audits import AUDIT, audited
from tests.functional.hostile import Break, both, changing, holding, link, pipe, sparse
from tests.functional.test_validate import FILE


def _audit(content: Any) -> Break:
    return holding(content, AUDIT)


def _survivor(name: str) -> Break:
    return lambda root: audited(root, FILE, name)


CASES: dict[str, tuple[str, Break]] = {
    "evidence is no JSON": (
        "tag-evidence",
        both(
            changing(tags=["status:verified"]),
            holding("[" * 10_000, "verification/x.json"),
        ),
    ),
    "evidence is of another kind": (
        "tag-evidence",
        both(
            changing(tags=["status:verified"]),
            holding({"runs": [{"definitions": [1]}, 2]}, "verification/x.json"),
        ),
    ),
    "audit is no JSON": ("audit-file", _audit("[" * 10_000)),
    "audit has a conflict": ("audit-file", _audit("<<<<<<< HEAD\n{}\n=======\n")),
    "audit is a list": ("audit-file", _audit([])),
    "audit is of the future": ("audit-file", _audit({"format": 2})),
    "audit has NaN": ("audit-file", _audit('{"format": NaN, "definitions": {}}')),
    "audit has a name twice": (
        "audit-file",
        _audit('{"format": 1, "definitions": {"\\u001b[2J": 1, "\\u001b[2J": 2}}'),
    ),
    "audit has a name with escapes": (
        "audit-file",
        _audit({"format": 1, "definitions": {"\x1b[2J\n::error::x": []}}),
    ),
    "audit is huge": ("audit-file", sparse(AUDIT, b"{", 1 << 33)),
    "audit is a pipe": ("audit-file", pipe(AUDIT)),
    "audit links out": ("audit-file", link(AUDIT, "/etc/hosts")),
    "audit links to itself": ("audit-file", link(AUDIT, "audit.json")),
    "audit has a megabyte of survivor": ("audit-survivors", _survivor("x" * 1_000_000)),
    "audit has escapes in a survivor": (
        "audit-survivors",
        _survivor("\x1b[2J\r\n::error::x"),
    ),
}
