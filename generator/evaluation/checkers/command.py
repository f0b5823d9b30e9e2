"""Ask a command of the user's which planted defects it lets pass, by files."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from generator.evaluation.checkers.posed_rounds import Planted, PosedRounds, Run, called
from generator.evaluation.rounds import Round
from generator.execution import processes
from generator.execution.outcome import CannotRun
from generator.problems.messages import one_line

_SECONDS = 300.0
_SHORT = 200


def judged(planted: Planted, command: str) -> PosedRounds:
    """Return which defects pass a command in all small cases of a definition.

    The command gets a folder as its last argument: `question.json` names the
    definition, its case, scalar inputs, outputs and defects; `inputs.safetensors` and
    `expected.safetensors` have the tensors by name, `0.safetensors` and so on what each
    defect returns. It prints {"passes": [0, …]}. Raises CannotRun where it does not.
    """
    subject = planted.subject
    cases = subject.cases(("small",))
    left, rounds = planted.by_name(), 0
    for case in cases:
        asked = Round(subject, case, 0, torch.device("cpu"))
        with TemporaryDirectory(prefix="trace-dataset-checker-") as name:
            folder = Path(name)
            names = _written(folder, planted, asked, left)
            passes = _answer(command, folder, len(names)) if names else []
        left = {names[place]: left[names[place]] for place in passes}
        rounds += 1
    return PosedRounds(rounds, tuple(left), "" if cases else "it has no small case")


def _written(
    folder: Path, planted: Planted, asked: Round, defects: Mapping[str, Run]
) -> list[str]:
    """Write a question; return the defects that it has: those that answer at all."""
    inputs = asked.inputs
    outputs = list(asked.subject.interface.output_specs)
    lines: list[str] = []
    for name, run in defects.items():
        # any checker sees one that raises
        with suppress(Exception):
            _save(folder / f"{len(lines)}.safetensors", outputs, called(run, inputs))
            lines.append(name)
    _save(folder / "expected.safetensors", outputs, called(planted.run, inputs))
    _save(folder / "inputs.safetensors", list(inputs), list(inputs.values()))
    question = {
        "definition": planted.definition.name,
        "op_type": planted.definition.op_type,
        "case": asked.case.name,
        "scalars": {
            n: v for n, v in inputs.items() if isinstance(v, (bool, int, float))
        },
        "outputs": outputs,
        "defects": lines,
    }
    (folder / "question.json").write_text(json.dumps(question), "utf-8")
    return lines


def _save(path: Path, names: Sequence[str], values: Sequence[Any]) -> None:
    from safetensors.torch import save_file

    tensors = {
        name: torch.as_tensor(value).contiguous().clone()
        for name, value in zip(names, values, strict=False)
        if value is not None and not isinstance(value, str)
    }
    save_file(tensors, path)


def _answer(command: str, folder: Path, count: int) -> list[int]:
    words = [*shlex.split(command), str(folder)]
    words[0] = os.path.abspath(shutil.which(words[0]) or words[0])
    try:
        done = processes.run(
            words,
            environment=processes.safe_environment(),
            timeout=_SECONDS,
            folder=folder,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(
            one_line(f"the checker can't be asked: {error}", _SHORT)
        ) from None
    if done.returncode:
        message = one_line(done.stderr.strip().rpartition("\n")[2], _SHORT)
        raise CannotRun(f"the checker ended with status {done.returncode}: {message}")
    try:
        passes = json.loads(done.stdout)["passes"]
        if all(type(place) is int and 0 <= place < count for place in passes):
            return sorted(set(passes))
    except (ValueError, KeyError, TypeError):
        pass
    message = one_line(done.stdout.strip(), 60)
    raise CannotRun(f'the checker printed {message!r}, and no {{"passes": [0, …]}}')
