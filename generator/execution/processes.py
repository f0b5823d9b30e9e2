"""Start processes: the one place that does, outside of the sandbox.

A process that starts here looks for no module and no program in the current folder,
which may be a stranger's checkout, and gets of the environment what programs need: a
list of names, never a token.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_NAMES = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "TMPDIR",
        "SHELL",
        "LD_LIBRARY_PATH",
        "LIBRARY_PATH",
        "CPATH",
        "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH",
        "VIRTUAL_ENV",
        "CC",
        "CXX",
        "CUDAHOSTCXX",
        "MAX_JOBS",
        "MAX_NUM_THREADS",
        "SOURCE_DATE_EPOCH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_HUB_OFFLINE",
        "HF_ENDPOINT",
    ]
)
_GROUPS = (
    *("CUDA_", "NVIDIA_", "NVCC_", "NCCL_", "OMP_", "MKL_", "OPENBLAS_", "LC_", "XDG_"),
    *("TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "FLASHINFER_", "SGLANG_"),
    *("SGL_", "TVM_", "DG_", "MALLOC_", "PYTEST_XDIST_", "RAY_", "REFERENCE_"),
)
# a name in a group may still be that of a secret
_SECRET = re.compile(r"(?i)token|secret|passw|credential|api_?key|auth|cookie")
_PROXY = re.compile(r"(?i)(https?|all|no)_proxy")


def safe_environment(
    variables: Mapping[str, str] | None = None, paths: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables of `variables`, else of this process, that a program needs.

    `paths` come first in PYTHONPATH. Of a relative path there, which is one of the current
    folder, and of a proxy's password nothing is passed on.
    """
    source = os.environ if variables is None else variables
    passed = {name: value for name, value in source.items() if _is_passed(name, value)}
    folders = [*paths, *source.get("PYTHONPATH", "").split(os.pathsep)]
    absolute = dict.fromkeys(path for path in folders if os.path.isabs(path))
    if absolute:
        passed["PYTHONPATH"] = os.pathsep.join(absolute)
    # Python 3.11 and later; `start` gives a folder that is safe to the others
    passed["PYTHONSAFEPATH"] = "1"
    return passed


def _is_passed(name: str, value: str) -> bool:
    if _PROXY.fullmatch(name):
        return "@" not in value
    return (name in _NAMES or name.startswith(_GROUPS)) and not _SECRET.search(name)


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path | None = None,
    **options: Any,
) -> subprocess.Popen[Any]:
    """Start a program; `options` are those of Popen.

    `environment` is all that it gets: `safe_environment` makes it. It runs in `folder`,
    which must not hold what others wrote, else in the root folder: `python -m` and
    `-c` look for modules there first. A program must be an absolute path.
    """
    program = command[0]
    if not os.path.isabs(program):
        raise ValueError(f"{program} is no absolute path")
    return subprocess.Popen(
        list(command), env=dict(environment), cwd=folder or "/", **options
    )


def start_python(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path | None = None,
    **options: Any,
) -> subprocess.Popen[Any]:
    """Start this interpreter; as `start`."""
    # a script in a virtual environment may have started it by a relative path
    python = os.path.abspath(sys.executable)
    command = [python, *arguments]
    return start(command, environment=environment, folder=folder, **options)


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout: float,
    text: str | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return its status and output; `text` is its input.

    Raises subprocess.TimeoutExpired, after it and what it started were killed.
    """
    process = start(
        command,
        environment=environment,
        folder=folder,
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            out, err = process.communicate(text, timeout)
        except BaseException:
            end_group(process.pid)
            process.wait()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_python(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout: float,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter to its end; as `run`."""
    command = [os.path.abspath(sys.executable), *arguments]
    return run(command, environment=environment, timeout=timeout, text=text)


def end_group(pid: int) -> None:
    """Kill a process that leads a session, and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
