"""What the supervisor tells the launcher, and the names of the layers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

NETWORK = "network namespace"
FILES = "private file system"
PROCESSES = "process namespace"
IPC = "ipc namespace"
USER = "unprivileged user"
LANDLOCK_FILES = "landlock files"
LANDLOCK_NETWORK = "landlock network"
LANDLOCK_SCOPES = "landlock scopes"
SECCOMP = "seccomp"
RESOURCES = "resource limits"

NAMES = (
    NETWORK,
    FILES,
    PROCESSES,
    IPC,
    USER,
    LANDLOCK_FILES,
    LANDLOCK_NETWORK,
    LANDLOCK_SCOPES,
    SECCOMP,
    RESOURCES,
)

PROTECTS = {
    NETWORK: "no interface but one that is down",
    FILES: "only the named folders exist",
    PROCESSES: "no other process can be seen, and all end together",
    IPC: "no shared memory of others",
    USER: "the command is not the caller, and never root",
    LANDLOCK_FILES: "the kernel refuses every other path",
    LANDLOCK_NETWORK: "the kernel refuses TCP",
    LANDLOCK_SCOPES: "no signals to, and no abstract sockets of, others",
    SECCOMP: "no sockets, no tracing, no mounts, no rarely used system calls",
    RESOURCES: "memory, CPU time, processes, open files, size of a file",
}

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders of programs and libraries; none holds what belongs to somebody."""

OF_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
"""What the linker and programs read of /etc; users, hosts and secrets stay out."""

OF_SYS = ("/sys/devices/system",)
"""How many processors there are, and how they hang together."""

OF_DEV = ("null", "zero", "full", "random", "urandom")

HOME = "/tmp/home"
TEMPORARY = "/tmp"


@dataclass(frozen=True)
class Limits:
    """What a command may use; sizes in bytes, times in seconds."""

    wall_seconds: float = 600.0
    """Until the whole tree of processes is killed."""
    cpu_seconds: int = 600
    """Of one process."""
    memory_bytes: int = 8 << 30
    """Resident in all processes together; each may reserve addresses for more."""
    processes: int = 256
    """Threads count as well."""
    open_files: int = 1024
    """Of one process."""
    file_bytes: int = 1 << 30
    """Size of one file."""
    disk_bytes: int = 2 << 30
    """In the working folder, and again in temporary files."""
    output_bytes: int = 1 << 20
    """Kept of each of the two streams: the first and the last half."""


RESERVED = 16 << 30
"""Addresses that a process may reserve beyond its memory.

An import of torch for CPUs reserves 0.6 GiB, every thread 8 MiB of stack and 64 MiB of
allocator; a build of torch for CUDA maps several GiB of libraries. What is in use is
limited apart from that, so that this bound need not be close."""


@dataclass(frozen=True)
class SandboxPlan:
    """One confined run, as the launcher gets it."""

    command: list[str]
    environment: dict[str, str]
    active: list[str]
    read_only: list[str]
    work: str
    scratch: str
    """A folder of this run alone, which the supervisor removes."""
    devices: list[str]
    limits: Limits
    parent: int
    report: int
    """The descriptor of the pipe for how it ended; the command never has it."""
    interpreter: list[str] = field(default_factory=list)
    mounted: list[str] = field(default_factory=list)
    """Mounts below what is readable, which are not shown with it."""

    def to_json(self) -> str:
        """Return the plan as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> SandboxPlan:
        """Return the plan that a text says."""
        values = json.loads(text)
        return SandboxPlan(**{**values, "limits": Limits(**values["limits"])})

    def has(self, layer: str) -> bool:
        """Return whether a layer is to be used."""
        return layer in self.active

    def readable(self) -> Iterator[str]:
        """Yield every path to be readable, but for devices and /proc."""
        yield from SYSTEM
        yield from (f"/etc/{name}" for name in OF_ETC)
        yield from OF_SYS if not self.devices else ("/sys",)
        yield from self.interpreter
        yield from self.mounted
        yield from self.read_only

    @property
    def is_closed(self) -> bool:
        """Return whether no socket of others can be reached by a name."""
        return self.has(NETWORK) and self.has(FILES)

    def home(self) -> str:
        """Return the home that the command gets."""
        return HOME if self.has(FILES) else f"{self.scratch}/home"

    def temporary(self) -> str:
        """Return the folder for temporary files that the command gets."""
        return TEMPORARY if self.has(FILES) else f"{self.scratch}/tmp"


def interpreter_paths() -> list[str]:
    """Return the folders of this interpreter and of what is installed for it."""
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    real = [os.path.realpath(path) for path in named]
    installed = [
        path
        for path in sys.path
        if path.endswith(("site-packages", "dist-packages")) and Path(path).is_dir()
    ]
    found = named + real + installed + added_paths(os.environ.get("PYTHONPATH", ""))
    kept = dict.fromkeys(os.path.abspath(path) for path in found)
    return [path for path in kept if path != "/" and os.path.isdir(path)]


def added_paths(pythonpath: str) -> list[str]:
    """Return the folders of a PYTHONPATH that pip installed into, and those below them.

    Others may hold anything of the user's.
    """
    named = [p for p in pythonpath.split(os.pathsep) if os.path.isabs(p)]
    installed = [p for p in named if any(Path(p).glob("*.dist-info/METADATA"))]
    below = tuple(f"{path.rstrip('/')}/" for path in installed)
    return [p for p in named if f"{p}/".startswith(below) and os.path.isdir(p)]
