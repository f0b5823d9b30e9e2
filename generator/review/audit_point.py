"""What the recorded audit says of a changed definition: known, stale or absent."""

from __future__ import annotations

from generator.problems.messages import one_line, plural
from generator.results.audits import ABSENT, KNOWN, STALE
from generator.review.change import Change
from generator.review.known import ReviewContext

_NAMED = 3


def audit_of(change: Change, known: ReviewContext) -> tuple[bool, str]:
    """Return whether the tests catch all defects, and what is known of that.

    What only the change itself says is its author's word.
    """
    assert change.new is not None
    name = change.new.name
    if known.audits_after is None:
        return False, f"{ABSENT}: no audit is on record"
    found = known.audits_after.get(name)
    if found is None:
        return False, f"{ABSENT}: trace-dataset audit was never run on it"
    if found.sha256 != change.new.sha256:
        return False, f"{STALE}: the audit of {found.date} is of another text"
    seen = f"{KNOWN}: {found.share} caught, {found.date}"
    if found.survived:
        survivors = plural(found.survived, "survivor")
        seen += f"; {survivors}: {one_line(found.named(_NAMED))}"
    before = (known.audits_before or {}).get(name)
    if before != found and not known.trust_evidence:
        return False, f"only the change itself says so: {seen}"
    return not found.survived, seen
