"""Run a command that is killed at a chosen event: `python killed.py K MODULE ARGUMENTS`.

Events are those that Python audits: each file that is opened, made, moved or removed, each
process that is started. With K of 0 the command ends by itself, and the number of its events
is written to the file that KILLED_COUNT names. Only events of the process itself count.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys

_WRITES = ("open", "os.", "shutil.", "tempfile.", "subprocess.", "socket.")
_seen = 0


def _watch(at: int) -> None:
    mine = os.getpid()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        global _seen
        if os.getpid() != mine or not event.startswith(_WRITES):
            return
        _seen += 1
        if _seen == at:
            os.kill(mine, signal.SIGKILL)

    sys.addaudithook(hook)


def main() -> None:
    """Run the module as `python -m` does."""
    at, module = int(sys.argv[1]), sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    _watch(at)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        if not at:
            count = _seen
            with open(os.environ["KILLED_COUNT"], "w") as stream:
                stream.write(str(count))


if __name__ == "__main__":
    main()
