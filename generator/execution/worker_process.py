"""Start a worker process, which executes a dataset's code and writes lines of JSON."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from generator.execution.sandbox.paths import added_paths

# of the caller's environment; a dataset's code must not see the rest
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def start_worker(module: str) -> subprocess.Popen[str]:
    """Start `python -m module`, with pipes for stdin and stdout.

    Of the caller's environment it gets only what programs need.
    """
    # op_types may be those of a distribution that pip installed into a folder of it
    added = added_paths(os.environ.get("PYTHONPATH", ""))
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", module],
        env={
            **passed,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *added]),
            "PYTHONHASHSEED": "0",
            # a process a core: threads would only be in each other's way, and a forked
            # child can't use those of its parent
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            # glibc keeps freed memory: tensors of a reference come and go at every call
            "MALLOC_TRIM_THRESHOLD_": str(2**30),
            "MALLOC_MMAP_THRESHOLD_": str(2**25),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Ctrl-C is for the command: it ends the workers
        start_new_session=True,
    )
