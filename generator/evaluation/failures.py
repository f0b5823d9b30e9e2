"""Feedback for the author of a refused solution: the reason, and files to rerun the case.

Only of values that are no secret afterwards: a contest that keeps its seed says of a
refusal its verdict alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from generator.dataset.failure_file import FAILURE, MOST_BYTES, write_failure
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    PASSED,
    Refused,
    SolutionVerdict,
)
from generator.results.failure import OF_SOLUTION

MOST = 8
"""Cases of a solution whose files are kept."""

MOST_BYTES_LATER = 64 << 20
"""Of the values of a case after the first: to write what is larger takes seconds."""

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def unwritten(actual: Sequence[Any]) -> str:
    """Return a sentence where outputs still hold the judge's poison, else an empty one.

    The poison is NaN of the usual bits; division on a CPU or a GPU makes NaN of others.
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
    """The folders of the refused cases of one solution, with what is known of each.

    `about` is what a replay needs beside the case: the definition's name, the solution's
    value and path, from which its values are drawn, and what was asked. With
    `hides_expected` nothing is written that expected values follow from.
    """

    folder: Path
    about: Mapping[str, Any]
    hides_expected: bool = False
    cases: list[str] = field(default_factory=list)

    def takes(self, case: str) -> bool:
        """Return whether files of a case would be written: once, and of the first few."""
        return case not in self.cases and len(self.cases) < MOST

    def keep(
        self,
        case: str,
        inputs: Mapping[str, Any],
        refused: Refused,
        values: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
        outputs: Sequence[Mapping[str, Any]] = (),
        axes: Mapping[str, int] = MappingProxyType({}),
    ) -> str:
        """Write the files of a case, once; return the folder, empty if none was made.

        `values` has what was returned and what was expected, by output; `outputs` says
        where these differ.
        """
        if not self.takes(case):
            return ""
        self.cases.append(case)
        folder = self.folder / f"{len(self.cases)}-{_part(case)}"
        tensors = {f"inputs.{name}": value for name, value in inputs.items()}
        for name, (actual, expected) in values.items():
            tensors[f"actual.{name}"] = actual
            if not self.hides_expected:
                tensors[f"expected.{name}"] = expected
        failure = {
            "kind": OF_SOLUTION,
            **self.about,
            "case": case,
            "axes": dict(axes),
            "verdict": refused.verdict,
            "reason": refused.reason,
            "outputs": list(outputs),
            "next": f"trace-dataset replay {shlex.quote(str(folder / FAILURE))}",
        }
        if self.hides_expected:
            failure = without_expected(failure)
        most = MOST_BYTES if len(self.cases) == 1 else MOST_BYTES_LATER
        write_failure(folder, failure, tensors, most)
        return str(folder)


def without_expected(failure: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failure file's value without expected values, and what they follow from."""
    hidden = ("findings", "factor", "mean_error")
    outputs = [
        {
            **{key: value for key, value in one.items() if key not in hidden},
            "worst": [
                {"index": w["index"], "actual": w["actual"]}
                for w in one.get("worst", ())
            ],
        }
        for one in failure.get("outputs", ())
    ]
    compared = bool(outputs) or failure.get("verdict") == INCORRECT_NUMERICAL
    dropped = ("seed", "next", *(("reason",) if compared else ()))
    rest = {k: v for k, v in failure.items() if k not in dropped}
    return {**rest, "outputs": outputs}


def _part(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.")


def without_details(verdict: SolutionVerdict) -> SolutionVerdict:
    """Return a verdict that tells nothing of the cases that are secret.

    Kept are the verdicts and times of all cases; of those that did not pass neither
    reason nor error, and no length of a drawn case, nor memory that tells it.
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
    if ":" in verdict.memory.get("case", ""):
        verdict = replace(verdict, memory={})
    if verdict.verdict == PASSED:
        return replace(verdict, cases=cases)
    return replace(verdict, reason="", case="", cases=cases, notes=())
