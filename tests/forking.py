"""Run Python modules as forks of a process that has imported what they import.

A fork is a process of its own, with its own arguments, environment, folder and streams; it
runs the module as `python -m` does and ends as Python ends. Only the imports, which are
most of the time that a small command takes, have been made before. What a test says of
imports, of signals, of closed streams or of limits on memory needs a fresh process.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# what commands import sooner or later, but for torch and what reads variables at import
COMMANDS = (
    "generator.cli.trace_dataset",
    "generator.cli.gen_tests",
    "generator.rendering.generate",
    "generator.results.verification_report",
    "generator.review.review",
    "generator.validation.validate",
)
# what the rendered tests import, but for this project: they must do without it
PYTEST = ("torch", "pytest")
_MOST = 1 << 20


def run_module(
    module: str,
    *arguments: str | Path,
    imports: Sequence[str] = COMMANDS,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Return the end of `python -m module arguments`; `module` may be a file's path.

    `imports` are the modules that are there already; `env` is added to the variables of
    this process, of which pytest's are left out. Variables that Python reads as it starts get a fresh process. Raises
    subprocess.TimeoutExpired.
    """
    given = [module, *map(str, arguments)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    variables = {**kept, **(env or {})}
    if {name for name in env or () if name.startswith("PYTHON")} - {"PYTHONPATH"}:
        return subprocess.run(
            [sys.executable, "-m", *given],
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=cwd,
            env=variables,
            timeout=timeout,
        )
    request = {"given": given, "cwd": str(cwd), "env": variables}
    server = _server(tuple(imports))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        files = [out.fileno(), err.fileno()]
        socket.send_fds(server, [json.dumps(request).encode()], files)
        pid = int(server.recv(_MOST))
        server.settimeout(timeout)
        try:
            status = int(server.recv(_MOST))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            server.settimeout(None)
            server.recv(_MOST)
            raise subprocess.TimeoutExpired(given, timeout) from None
        finally:
            server.settimeout(None)
        texts = [_text(file.fileno()) for file in (out, err)]
    return subprocess.CompletedProcess(given, status, *texts)


def _text(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, encoding="utf-8", closefd=False) as file:
        return file.read()


@cache
def _server(imports: tuple[str, ...]) -> socket.socket:
    """Return the connection to a server, which ends when this process does."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        server = subprocess.Popen(
            [sys.executable, __file__, str(there.fileno()), *imports],
            stdin=subprocess.DEVNULL,
            pass_fds=[there.fileno()],
            cwd=ROOT,
            # tensors this small gain nothing from threads, and tests share the cores
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    @atexit.register
    def end() -> None:
        here.close()
        server.wait()

    return here


def _serve(link: socket.socket, imports: Sequence[str]) -> dict[str, Any] | None:
    """Answer requests; in a fork, return the request that it is to serve."""
    sys.path.insert(0, str(ROOT))
    for name in imports:
        importlib.import_module(name)
    del sys.path[0]
    gc.collect()
    # the forks' collector doesn't touch, and so copy, what all of them share
    gc.freeze()
    while True:
        data, files, *_ = socket.recv_fds(link, _MOST, 2)
        if not data:
            return None
        pid = os.fork()
        if not pid:
            link.close()
            for target, file in enumerate(files, 1):
                os.dup2(file, target)
                os.close(file)
            request: dict[str, Any] = json.loads(data)
            return request
        for file in files:
            os.close(file)
        # who asked may be gone
        with suppress(OSError):
            link.send(str(pid).encode())
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            link.send(str(status).encode())


def _become(request: dict[str, Any]) -> None:
    """Run the module in this process, as if Python had been started for it."""
    module, *arguments = request["given"]
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    is_file = os.sep in module
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [
        str(Path(module).parent) if is_file else os.getcwd(),
        *filter(None, folders),
    ]
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)
    if "generator" in sys.modules:
        # it has the providers that are installed where the server looked
        importlib.reload(sys.modules["generator"])
    if is_file:
        runpy.run_path(module, run_name="__main__")
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # the folder of this file
    del sys.path[0]
    asked = _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
    if asked is not None:
        _become(asked)
