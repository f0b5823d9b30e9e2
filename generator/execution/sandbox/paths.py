"""Files that a confined command can read, and its environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders of programs and libraries; none holds files of users."""

OF_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
"""What the linker and programs read in /etc; users, hosts and secrets are left out."""

TEMPORARY = "/tmp"
"""All that a command can write to, in memory."""

HOME, WORK, SHARED = "/tmp/home", "/tmp/work", "/tmp/shm"
_THREADS = 4
"""Threads of numerical libraries: each counts as a process of the run."""


def environment() -> dict[str, str]:
    """Return the variables that programs need, and no others of the caller's."""
    added = added_paths(os.environ.get("PYTHONPATH", ""))
    # pip puts programs beside packages: ninja, which compiles kernels, is one
    folders = [os.path.dirname(sys.executable), *(f"{path}/bin" for path in added)]
    folders += ["/usr/local/bin", "/usr/bin", "/bin"]
    threads = str(min(_THREADS, os.cpu_count() or 1))
    return {
        **({"PYTHONPATH": os.pathsep.join(added)} if added else {}),
        "PATH": ":".join(folders),
        "HOME": HOME,
        "TMPDIR": os.path.dirname(HOME),
        "LANG": "C.UTF-8",
        "USER": "review",
        "LOGNAME": "review",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
    }


def interpreter_paths() -> list[str]:
    """Return the folders of this interpreter and of what is installed for it."""
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    installed = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    paths = named + installed + added_paths(os.environ.get("PYTHONPATH", ""))
    return [path for path in both_names(paths) if path != "/" and os.path.isdir(path)]


def added_paths(pythonpath: str) -> list[str]:
    """Return the folders of a PYTHONPATH that pip installed into, and those below them.

    Others may hold anything of the user's.
    """
    named = [p for p in pythonpath.split(os.pathsep) if os.path.isabs(p)]
    installed = [p for p in named if any(Path(p).glob("*.dist-info/METADATA"))]
    below = tuple(f"{path.rstrip('/')}/" for path in installed)
    return [p for p in named if f"{p}/".startswith(below) and os.path.isdir(p)]


def both_names(paths: list[str]) -> list[str]:
    """Return paths as given and with links resolved."""
    absolute = [os.path.abspath(path) for path in paths]
    return list(dict.fromkeys(absolute + [os.path.realpath(path) for path in absolute]))
