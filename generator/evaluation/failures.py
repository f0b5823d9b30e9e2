"""What the author of a refused solution gets: why, and files to run the case again.

Only of values that are no secret afterwards: a contest that keeps its seed says of a
refusal its verdict alone.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from generator.evaluation.verdict import PASSED, SolutionVerdict

MOST = 8
"""Cases of a solution whose files are kept."""

_COMMAND = "run-again.sh"
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def unwritten(actual: Sequence[Any]) -> str:
    """Return that outputs which a solution is to fill still hold the judge's poison.

    That is NaN of the usual bits; division on a CPU or a GPU makes NaN of others.
    """
    for value in actual:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        if not is_float or value.element_size() == 1 or not value.numel():
            continue
        poison = torch.full_like(value, torch.nan)
        integer = _INTEGERS[value.element_size()]
        count = int((value.view(integer) == poison.view(integer)).sum())
        if count:
            return (
                f"{count} of {value.numel()} elements have the NaN that outputs are filled "
                "with before a call"
            )
    return ""


@dataclass
class Failures:
    """Write inputs, expected and returned values of refused cases of one solution.

    `again` is the command that evaluates the solution with the same values; a case's
    name is appended. The values of an answer that several calls gave are of all of them.
    """

    folder: Path
    again: Sequence[str]
    cases: list[str] = field(default_factory=list)

    def keep(
        self,
        case: str,
        inputs: Mapping[str, Any],
        outputs: Sequence[str],
        expected: Sequence[Any],
        actual: Sequence[Any],
    ) -> str:
        """Write the files of a case, once; return the folder, empty if none was made."""
        if case in self.cases or len(self.cases) >= MOST:
            return ""
        self.cases.append(case)
        folder = self.folder / f"{len(self.cases)}-{_part(case)}"
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "inputs", inputs)
        _write(folder / "expected", dict(zip(outputs, expected, strict=False)))
        _write(folder / "actual", dict(zip(outputs, actual, strict=False)))
        command = shlex.join([*self.again, "--case", case])
        (folder / _COMMAND).write_text(f"{command}\n", "utf-8")
        return str(folder)


def _write(path: Path, values: Mapping[str, Any]) -> None:
    """Write tensors to PATH.safetensors and what is none, but JSON, to PATH.json."""
    from safetensors.torch import save_file

    tensors = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in values.items()
        if isinstance(value, torch.Tensor)
    }
    save_file(tensors, path.with_suffix(".safetensors"))
    rest = {
        name: value
        for name, value in values.items()
        if value is None or isinstance(value, (bool, int, float))
    }
    if rest:
        path.with_suffix(".json").write_text(json.dumps(rest), "utf-8")


def _part(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.")


def without_details(verdict: SolutionVerdict) -> SolutionVerdict:
    """Return a verdict that tells nothing of the cases that are secret.

    Kept are the verdicts and times of all cases; of those that did not pass neither
    reason nor error, and no length of a drawn case.
    """
    cases = [
        replace(
            case,
            case=case.case.partition(":")[0],
            reason="",
            metrics=case.metrics if case.verdict == PASSED else {},
        )
        for case in verdict.cases
    ]
    hidden = verdict.verdict != PASSED
    return (
        replace(verdict, reason="", case="", cases=cases, notes=())
        if hidden
        else (replace(verdict, cases=cases))
    )
