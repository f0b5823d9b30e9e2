"""A folder for a run, which is removed whatever the run left in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from generator.execution.processes import start

# its input ends with the process that began it, however that ends
_KEEPER = """read line
for again in 1 2 3; do
  chmod -R u+rwX -- "$1"; rm -rf -- "$1" && exit
  sleep 1
done"""


@contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """Yield a new folder, gone afterwards with all that is in it.

    That is so where this process is killed, too: another one waits for its end.
    """
    folder = Path(mkdtemp(prefix=prefix))
    keeper = start(
        ["/bin/sh", "-c", _KEEPER, "sh", str(folder)],
        environment={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # it ends by its own, once the folder is gone
    with keeper:
        try:
            yield folder
        finally:
            remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder of any depth, without following links; what can't be stays.

    shutil.rmtree calls itself for each level, and a path has a greatest length: here
    each folder is moved up before it is emptied.
    """
    waiting, count = [str(folder)], 0
    while waiting:
        where = waiting.pop()
        with suppress(OSError):
            os.chmod(where, 0o700)
            with os.scandir(where) as scanned:
                entries = list(scanned)
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                path = entry.path
                if where != str(folder):
                    # a folder that may not be written to can't be moved
                    os.chmod(path, 0o700)
                    count += 1
                    path = f"{folder}/{count}.{os.urandom(8).hex()}"
                    os.rename(entry.path, path)
                waiting.append(path)
            if where != str(folder):
                os.rmdir(where)
    with suppress(OSError):
        os.rmdir(folder)
