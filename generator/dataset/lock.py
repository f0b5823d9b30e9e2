"""One writer of a dataset at a time: a lock that ends with the process that holds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def _say(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the lock of a folder while what is in it is read, changed and written.

    Another command that holds it is waited for, with one line on stderr. The lock is
    advisory, on the folder itself: it leaves no file, and none is left by a kill. Where
    the file system knows no locks, there is none. Must not be nested.
    """
    try:
        import fcntl

        place = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (ImportError, OSError):
        # there is nothing yet, or writing says what is wrong with the folder
        yield
        return
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("Another command is writing into this dataset: waiting for it.")
            fcntl.flock(place, fcntl.LOCK_EX)
        except OSError:
            pass
        yield
    finally:
        os.close(place)
