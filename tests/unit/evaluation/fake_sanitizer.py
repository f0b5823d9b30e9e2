"""A compute-sanitizer that watches nothing: it runs the program and writes a recorded log."""

from __future__ import annotations

import sys
from pathlib import Path

LOGS = Path(__file__).parent / "sanitizer_logs"
_SCRIPT = """#!{python} -IS
import os, subprocess, sys, time
at = sys.argv.index("--")
options, program = sys.argv[1:at], sys.argv[at + 1:]
assert os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
logs = {logs!r}
status = subprocess.run(program).returncode
time.sleep({sleep})
tool = options[options.index("--tool") + 1]
with open(options[options.index("--log-file") + 1], "w") as log:
    log.write(logs["failed" if status else tool])
sys.exit(status)
"""


def recorded(name: str) -> str:
    return (LOGS / f"{name}.txt").read_text()


def fake(folder: Path, sleep: float = 0.0, **logs: str) -> Path:
    """Write the program; `logs` are tool → the name of what it writes."""
    texts = {
        tool: recorded(name) for tool, name in {**logs, "failed": "failed"}.items()
    }
    folder.mkdir(exist_ok=True)
    path = folder / "compute-sanitizer"
    path.write_text(_SCRIPT.format(python=sys.executable, logs=texts, sleep=sleep))
    path.chmod(0o755)
    return path
