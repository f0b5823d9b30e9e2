"""Inside bubblewrap: set limits, check what can be read, start the command.

An interpreter that imports nothing else runs this source, with a plan as JSON.
"""

import json
import os
import resource
import signal
import sys
from typing import Any


def start(plan: dict[str, Any], command: list[str]) -> None:
    """Become the command; raises OSError."""
    for name, value in plan["limits"].items():
        which = getattr(resource, f"RLIMIT_{name}")
        _, most = resource.getrlimit(which)
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        # a second later the kernel kills what ignores the signal for CPU time
        later = allowed + (name == "CPU" and allowed < most % 2**63)
        resource.setrlimit(which, (allowed, later))
    for path in [*plan["read_only"], command[0]]:
        needed = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
        if not os.access(path, needed):
            raise PermissionError(f"{path}: not there, or not readable by others")
    gpus = [path for path in plan["gpus"] if os.access(path, os.R_OK | os.W_OK)]
    for path in plan["devices"] + ([] if gpus else plan["gpus"]):
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(f"{path}: not readable and writable by others")
    os.umask(0o022)
    os.chdir(plan["work"])
    os.mkdir(os.environ["HOME"], 0o700)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    # raises if the supervisor died before bubblewrap had set --die-with-parent
    os.write(plan["report"], b"{}\n")
    os.execv(command[0], command)


def main() -> None:
    """Start the command of the arguments, or report why it was not started."""
    plan = json.loads(sys.argv[1])
    # exec closes it: the command never has it
    os.set_inheritable(plan["report"], False)
    try:
        start(plan, sys.argv[2:])
    except BaseException as error:  # noqa: BLE001 - reported to the supervisor
        message = json.dumps({"not-started": f"{type(error).__name__}: {error}"})
        os.write(plan["report"], f"{message}\n".encode())
        os._exit(1)


if __name__ == "__main__":
    main()
