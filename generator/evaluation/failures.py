"""What the author of a refused solution gets: why, and files to run the case again.

Only of values that are no secret afterwards: a contest that keeps its seed says of a
refusal its verdict alone.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from generator.dataset.file_reading import read_bytes
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    PASSED,
    Refused,
    SolutionVerdict,
)
from generator.problems import Failure

MOST = 8
"""Cases of a solution whose files are kept."""

FAILURE, TENSORS = "failure.json", "failure.safetensors"
"""The files of a refused case: what is known of it, and its values."""

_MOST_BYTES = 64 << 20
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
    """Write what is known of the refused cases of one solution, each into a folder.

    `about` is what a replay needs beside the case: the definition's name, the solution's
    value and path, from which its values are drawn, and what was asked. With
    `hides_expected` nothing is written that expected values follow from.
    """

    folder: Path
    about: Mapping[str, Any]
    hides_expected: bool = False
    cases: list[str] = field(default_factory=list)

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
        if case in self.cases or len(self.cases) >= MOST:
            return ""
        self.cases.append(case)
        folder = self.folder / f"{len(self.cases)}-{_part(case)}"
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"inputs.{name}": value for name, value in inputs.items()}
        for name, (actual, expected) in values.items():
            tensors[f"actual.{name}"] = actual
            if not self.hides_expected:
                tensors[f"expected.{name}"] = expected
        numbers = _write(folder / TENSORS, tensors)
        failure = {
            "format": 1,
            **self.about,
            "case": case,
            "axes": dict(axes),
            "verdict": refused.verdict,
            "reason": refused.reason,
            "outputs": list(outputs),
            "numbers": numbers,
            "next": f"trace-dataset replay {shlex.quote(str(folder / FAILURE))}",
        }
        if self.hides_expected:
            failure = without_expected(failure)
        text = json.dumps(finite(failure), indent=1, allow_nan=False)
        (folder / FAILURE).write_text(f"{text}\n", "utf-8")
        return str(folder)


def read_failure(path: Path) -> dict[str, Any]:
    """Return the value of a failure's JSON file. Raises Failure for another file."""
    try:
        value = json.loads(read_bytes(path.parent, path.name, _MOST_BYTES))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("format") != 1:
        raise Failure(f"{path}: it is no failure that evaluate --keep-failures wrote.")
    chosen = {"device": ("cpu", "cuda"), "workloads": ("dataset", "cases", "both")}
    for name, words in chosen.items():
        if value.get(name) not in words:
            raise Failure(f"{path} /{name}: it is none of {', '.join(words)}.")
    most = {"seed": 2**62, "fuzz": 10_000}
    for name, highest in most.items():
        one = value.get(name)
        if not isinstance(one, int) or isinstance(one, bool) or not 0 <= one <= highest:
            raise Failure(f"{path} /{name}: it is no number from 0 to {highest}.")
    kinds = {"definition": str, "path": str, "case": str, "verdict": str}
    for name, kind in {**kinds, "solution": dict}.items():
        if not isinstance(value.get(name), kind):
            raise Failure(f"{path} /{name}: it is missing, or of another kind.")
    return value


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
    kept = {k: v for k, v in failure.items() if k not in dropped}
    return {**kept, "outputs": outputs}


def finite(value: Any) -> Any:
    """Return a value whose numbers JSON has: NaN and infinities as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def _write(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Write tensors to a file; return what is none, but JSON."""
    from safetensors.torch import save_file

    tensors = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in values.items()
        if isinstance(value, torch.Tensor)
    }
    save_file(tensors, path)
    return {
        name: value
        for name, value in values.items()
        if value is None or isinstance(value, (bool, int, float))
    }


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
