"""The times of traces that a revision of a dataset has."""

from __future__ import annotations

from pathlib import Path

from generator.evaluation.against import Key, Time, times_in
from generator.problems import Failure
from generator.problems.messages import quote
from generator.review.git import one_line_errors, open_repository


def times_at(root: Path, revision: str) -> dict[Key, Time]:
    """Return the times of the traces of a revision, read out of git's objects.

    Raises Failure where there is no checkout, no such revision, or no traces in it.
    """
    repository = open_repository(root)
    with one_line_errors():
        tree = repository.tree(repository.resolve(revision))
    known = sorted(
        path
        for path, entry in tree.items()
        if path.startswith("traces/") and path.endswith(".jsonl") and entry.is_file
    )
    if not known:
        raise Failure(f"{quote(revision, 200)} has no traces.")
    return times_in(
        zip(known, repository.blobs([tree[path].oid for path in known]), strict=True)
    )
