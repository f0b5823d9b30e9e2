"""Write a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill, sees the old one or the new one.

    Raises OSError with the file's own name, whichever step failed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(content)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        # a full disk names no file, and nobody knows the temporary one
        why = error.strerror
        if isinstance(error, FileExistsError):
            why = "a file is in the place of its folder"
        raise OSError(error.errno, why, str(path)) from error
