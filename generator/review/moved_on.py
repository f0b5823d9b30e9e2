"""Changes of the base's branch since head left it, which a merge brings together with head's.

What git merges is a tree that no review saw: of the branch's part only that is harmless
which neither decides about the change nor belongs to what it changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from generator.dataset.changes import owner_of
from generator.dataset.paths import is_evidence
from generator.review.sources import BaseAndHead
from generator.review.treatment import SETTINGS_FILE, SOFTWARE, treatment_of
from generator.review.tree import Blobs, Tree, TreeEntry


def moved_on(sides: BaseAndHead, branch: Tree, blobs: Blobs) -> tuple[str, ...]:
    """Return the paths of the base's branch that a review of the change has to know.

    `branch` is the branch as it is now. Settings and the software, files of definitions
    that the change touches, and evidence that names one of these.
    """
    if not sides.changed:
        return ()
    keys = {owner[0] for p in sides.changed if (owner := owner_of(p)) is not None}
    names = [f'"{name}"'.encode() for _, name in keys]

    def matters(path: str) -> bool:
        old, new = sides.base.get(path), branch.get(path)
        if path in sides.changed or treatment_of(path, old, new) in _DECIDE:
            return True
        owner = owner_of(path)
        if owner is not None:
            return owner[0] in keys
        return is_evidence(path) and any(
            name in data for data in _contents((old, new), blobs) for name in names
        )

    moved = {p for p, _ in sides.base.items() ^ branch.items()}
    # what is the same on both branches by now is merged already
    other = (p for p in moved if sides.head.get(p) != branch.get(p))
    return tuple(sorted(filter(matters, other)))


_DECIDE = (SETTINGS_FILE, SOFTWARE)


def _contents(entries: tuple[TreeEntry | None, ...], blobs: Blobs) -> Iterator[bytes]:
    yield from blobs([e.oid for e in entries if e is not None and e.is_file])
