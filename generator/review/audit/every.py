"""All pull requests of the audit."""

from __future__ import annotations

from generator.review.audit import (
    bad_branches,
    bad_claims,
    bad_constants,
    bad_definitions,
    bad_failures,
    bad_files,
    bad_tests,
    bad_texts,
)
from generator.review.audit.good import good
from generator.review.audit.pull_request import PullRequest


def bad_pull_requests() -> list[PullRequest]:
    """Return those that a review must refuse."""
    return [
        *bad_tests.of_tests(),
        *bad_tests.of_files(),
        *bad_files.of_code(),
        *bad_files.of_paths(),
        *bad_files.of_removals(),
        *bad_claims.of_claims(),
        *bad_definitions.of_definitions(),
        *bad_constants.of_constants(),
        *bad_branches.of_branches(),
        *bad_failures.of_failures(),
        *bad_texts.of_texts(),
    ]


def good_pull_requests() -> list[PullRequest]:
    """Return those that a review must approve."""
    return [*good()]
