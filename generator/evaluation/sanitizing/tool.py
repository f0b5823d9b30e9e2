"""Run compute-sanitizer on a process that calls what passed on small cases."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import generator
from generator.evaluation.conditions.asking import Asking, ConditionSkipped
from generator.evaluation.conditions.condition import (
    BROKEN,
    HOLDS,
    SKIPPED,
    UNSUPPORTED,
    Condition,
)
from generator.evaluation.confined import INSIDE, PROJECT
from generator.evaluation.rounds import Round
from generator.evaluation.sanitizing.findings import findings_in
from generator.evaluation.timing import layout_of
from generator.execution.processes import run, safe_environment
from generator.execution.sandbox import CUDA_LIMITS, Limits, read_result, run_confined
from generator.problems.messages import one_line, plural

TOOL_SECONDS = 300.0
"""For one tool: to start, to build, and to call all cases."""
_PROGRAM = "compute-sanitizer"
_FOLDER = Path(__file__).parent
_LOG, _CASES = "findings.txt", "cases.pt"
_CALLS = 4
# each kernel is many times as slow
_MOST_BYTES = 16 << 20
_OPTIONS = {
    # allocations may lie beside each other: what is behind one is nobody's then
    "memcheck": ["--padding", "512", "--report-api-errors", "no"],
}
_VARIABLES = {
    # each tensor is an allocation of its own, whose end is known
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    # a sandbox has no other sockets
    "NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE": "uds",
}


@dataclass(frozen=True)
class WatchedRun:
    """The end of a watched process: the tool's log, and why not all calls were made."""

    log: str
    why: str = ""


Watches = Callable[[Sequence[str], bytes], WatchedRun]
"""Run a tool's words before a process that makes the calls of a file's bytes."""


def program() -> str | None:
    """Return the path of compute-sanitizer, None where it is not installed."""
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    return shutil.which(_PROGRAM) or shutil.which(_PROGRAM, path=f"{home}/bin")


def lacking(device: str) -> str:
    """Return why no tool can run here, empty where it can."""
    if device != "cuda":
        return "needs CUDA"
    return "" if program() else f"{_PROGRAM} is not installed, or not on PATH"


def sanitized(
    asking: Asking, tool: str, solution: Mapping[str, Any], watches: Watches
) -> Condition:
    """Return the verdict of a tool on small cases of what passed.

    `solution` is what the process builds, and `watches` starts it.
    """
    why = lacking(asking.device.type)
    if why:
        return Condition(SKIPPED, why)
    try:
        rounds = _small(asking)
    except ConditionSkipped as skipped:
        return Condition(SKIPPED, str(skipped))
    how = {
        "solution": dict(solution),
        "device": asking.device.type,
        "passes_outputs": asking.passes_outputs,
        "cases": [_case(asking, one) for one in rounds],
    }
    data = io.BytesIO()
    torch.save(how, data)
    # links that lead there, as /usr/local/cuda by /etc, end nowhere in a sandbox
    words = [os.path.realpath(str(program())), "--tool", tool, *_OPTIONS.get(tool, [])]
    words += ["--show-backtrace", "device", "--target-processes", "application-only"]
    begun = time.monotonic()
    ended = watches(words, data.getvalue())
    seconds = time.monotonic() - begun
    return verdict(ended, {"cases": len(rounds), "seconds": round(seconds, 1)})


def verdict(ended: WatchedRun, details: Mapping[str, Any]) -> Condition:
    """Return what a tool's log says of a process; a finding counts however it ended."""
    findings = findings_in(ended.log)
    if findings.first:
        many = findings.count is not None and findings.count > 1
        more = f"; {plural(findings.count or 0, 'finding')} in all" if many else ""
        return Condition(BROKEN, one_line(f"{findings.first}{more}", 400), details)
    if ended.why:
        return Condition(UNSUPPORTED, one_line(ended.why, 400))
    if findings.count is None:
        lines = ended.log.strip().splitlines()[-1:] or ["it wrote nothing"]
        return Condition(UNSUPPORTED, one_line(f"no summary: {lines[0]}", 400))
    if findings.count:
        why = f"{plural(findings.count, 'finding')} that it does not name"
        return Condition(BROKEN, why, details)
    return Condition(HOLDS, "", details)


def _small(asking: Asking) -> list[Round]:
    """Return the smallest case and some of the small ones. Raises ConditionSkipped."""
    rounds = asking.small_cases(len(asking.asked.rounds))
    small = [one for one in rounds if layout_of(one).size <= _MOST_BYTES] or rounds[:1]
    others = asking.draw.sample(small[1:], min(_CALLS - 1, len(small) - 1))
    return [asking.other(one) for one in (small[0], *others)]


def _case(asking: Asking, one: Round) -> dict[str, Any]:
    places = layout_of(one).outputs
    return {
        "inputs": list(one.inputs.values()),
        "outputs": [
            {"shape": list(place["shape"]), "dtype": place["dtype"]} for place in places
        ],
        "seed": asking.draw.randrange(2**31),
    }


def confined(hidden: Sequence[Path], device: str) -> Watches:
    """Return what runs a solution and the tool in a sandbox that is theirs alone.

    The filter of system calls holds for both. The log lies where the solution can write.
    """
    base = CUDA_LIMITS if device == "cuda" else Limits()
    limits = replace(base, wall_seconds=TOOL_SECONDS)

    def watch(words: Sequence[str], cases: bytes) -> WatchedRun:
        files = {
            f"{INSIDE}/calls.py": (_FOLDER / "calls.py").read_bytes(),
            f"{INSIDE}/building.py": (_FOLDER.parent / "building.py").read_bytes(),
            f"{INSIDE}/{_CASES}": cases,
        }
        python = [sys.executable, "-s", "-B", f"{INSIDE}/calls.py"]
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / _LOG
            outcome = run_confined(
                [*words, "--log-file", _LOG, "--", *python, f"{INSIDE}/{_CASES}"],
                read_only=_folders_of(words[0]),
                results=log,
                limits=limits,
                environment=_VARIABLES,
                devices=device == "cuda",
                hidden=[*PROJECT, *hidden],
                files=files,
            )
            text = (read_result(log) or b"").decode("utf-8", "replace")
        if outcome.limit == "wall clock":
            return WatchedRun(text, f"not done within {TOOL_SECONDS:g} s")
        error = outcome.detail or _last(outcome.stderr) or _last(outcome.stdout)
        how = outcome.limit or f"status {outcome.exit_status}"
        return WatchedRun(text, "" if outcome.ok else f"it ended with {how}: {error}")

    return watch


def plain(module: str) -> Watches:
    """Return what runs a module of this software, which a kernel's adapter is called by."""

    def watch(words: Sequence[str], cases: bytes) -> WatchedRun:
        above = str(Path(generator.__file__).resolve().parents[1])
        environment = {**safe_environment(paths=[above]), **_VARIABLES}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / _CASES).write_bytes(cases)
            log = folder / _LOG
            command = [*words, "--log-file", str(log), "--", sys.executable, "-m"]
            command += [module, str(folder / _CASES)]
            why = ""
            try:
                done = run(command, environment=environment, timeout=TOOL_SECONDS)
                if done.returncode:
                    why = f"it ended with {done.returncode}: {_last(done.stderr)}"
            except subprocess.TimeoutExpired:
                why = f"not done within {TOOL_SECONDS:g} s"
            text = log.read_text("utf-8", "replace") if log.exists() else ""
        return WatchedRun(text, why)

    return watch


def _folders_of(binary: str) -> list[Path]:
    """Return where a program lies, and what its script in the toolkit's bin/ starts."""
    folder = Path(binary).parent
    beside = folder.parent / _PROGRAM
    return [folder, *([beside] if beside.is_dir() else [])]


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
