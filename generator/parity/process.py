"""Start the process that imports transformers, and ask it once.

transformers needs a huggingface_hub older than this software's: it comes from a folder of
its own, before the packages of this environment, whose torch the process uses.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.execution.processes import run_python, safe_environment
from generator.problems import Failure

TRANSFORMERS = "transformers==5.17.0"
DTYPES = ("float32", "bfloat16")
_PACKAGE = Path(__file__).resolve().parents[2]
LIMIT_S = 1800
"""Seconds that the comparison of a model may take."""


def ask(
    requests: Sequence[Mapping[str, Any]], folder: Path, limit_s: float = LIMIT_S
) -> list[dict[str, Any]]:
    """Return what the worker found for each request: dtype → level → values.

    `folder` is where pip installed transformers; where there is none, this
    environment's own is used. Raises Failure with the worker's reason, and where it
    ends without an answer.
    """
    paths = [str(folder.resolve())] if folder.is_dir() else []
    environment = {
        **safe_environment(paths=[*paths, str(_PACKAGE)]),
        # nothing is downloaded: weights are drawn, or given
        "HF_HUB_OFFLINE": "1",
    }
    command = ["-m", "generator.parity.worker"]
    limit_s *= len(requests)
    try:
        done = run_python(
            command,
            environment=environment,
            timeout=limit_s,
            text=json.dumps(list(requests)),
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"The comparison took more than {limit_s:g} s.") from error
    try:
        answers = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        why = f"exit status {done.returncode}: {lines[-1][:300]}"
        raise Failure(f"The process that imports transformers ended, {why}") from None
    if "no_transformers" in answers:
        raise Failure(
            f"transformers can't be imported ({answers['no_transformers']}): run `pip "
            f"install --target {folder} {TRANSFORMERS}`, or give --transformers."
        )
    return [_found(answer) for answer in answers]


def _found(answer: Mapping[str, Any]) -> dict[str, Any]:
    if "failed" in answer:
        raise Failure(answer["failed"])
    by_dtype: dict[str, Any] = answer["found"]
    return by_dtype
