"""What a push would change: the dataset's files against those of a revision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from generator.hub.client import RemoteFile
from generator.hub.local import LocalFile, Unfit
from generator.problems.messages import one_line


@dataclass(frozen=True)
class Delta:
    """Hold what is to be added, changed and deleted, and how many are there already.

    `absent` were to be deleted and are not there.
    """

    added: tuple[LocalFile, ...]
    changed: tuple[LocalFile, ...]
    deleted: tuple[RemoteFile, ...]
    same: int
    absent: tuple[str, ...] = ()

    @property
    def sent(self) -> tuple[LocalFile, ...]:
        """Return the files that are to be sent."""
        return tuple(sorted((*self.added, *self.changed), key=lambda f: f.path))

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is to be done."""
        return not (self.added or self.changed or self.deleted)


def compare(
    files: Iterable[LocalFile],
    remote: Mapping[str, RemoteFile],
    delete: Sequence[str] = (),
) -> Delta:
    """Compare by hash; nothing is downloaded. Raises Unfit for a pointer to be sent."""
    added: list[LocalFile] = []
    changed: list[LocalFile] = []
    same = 0
    for file in files:
        there = remote.get(file.path)
        if there is not None and is_same(file, there):
            same += 1
            continue
        if file.is_pointer:
            raise Unfit(
                f"{one_line(file.path)} is a Git LFS pointer here, and the repository "
                "does not have what it points to: git lfs pull."
            )
        (added if there is None else changed).append(file)
    gone = tuple(remote[path] for path in delete if path in remote)
    absent = tuple(path for path in delete if path not in remote)
    return Delta(tuple(added), tuple(changed), gone, same, absent)


def is_same(file: LocalFile, there: RemoteFile) -> bool:
    """Return whether the Hub has these bytes."""
    if there.sha256 is not None:
        return there.sha256 == file.sha256
    return not file.is_pointer and there.sha1 == file.sha1
