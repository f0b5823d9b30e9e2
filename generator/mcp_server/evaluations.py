"""Evaluations that agents ask for: one at a time, the others wait, failures are kept.

No expected value is written or returned: a refused case is described by what the solution
returned, and its inputs are kept as a file.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from generator import api
from generator.dataset.failure_file import FAILURE, TENSORS
from generator.evaluation.evaluate import EvaluationRequest
from generator.evaluation.failures import without_details
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    PASSED,
    SKIPPED,
    CaseVerdict,
    SolutionVerdict,
)
from generator.problems import Failure
from generator.problems.messages import did_you_mean, quote

MOST_WAITING = 16
"""Evaluations that may wait; a further one is refused at once."""

MOST_KEPT = 64
"""Evaluations whose failures can be asked for; older ones are forgotten."""


@dataclass
class Evaluations:
    """The evaluations of solutions, in the order in which they are asked for.

    All run on one thread, so that those that are timed share the GPU with nobody; the
    process that imported torch stays. `folder` gets the files of refused cases. With
    `secret` nothing is said of a refusal but the verdict.
    """

    dataset: api.Dataset
    folder: Path
    asks: EvaluationRequest
    secret: bool = False
    _evaluator: api.Evaluator = field(default_factory=api.Evaluator, init=False)
    _kept: OrderedDict[str, list[dict[str, Any]]] = field(
        default_factory=OrderedDict, init=False
    )
    _count: int = field(default=0, init=False)
    _waiting: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        # the process that runs tasks ends with the thread that started it: it has to stay
        self._thread = ThreadPoolExecutor(1, "evaluations")

    async def evaluate(
        self,
        solution: Mapping[str, Any],
        *,
        timing: bool,
        workloads: str,
        starts: int = 1,
    ) -> dict[str, Any]:
        """Return the verdict on a solution's JSON value, and the evaluation's name.

        Raises Failure for what is no solution, or where too many wait. Where the caller
        goes away, the evaluation ends.
        """
        if timing and self.asks.device != "cuda":
            raise Failure(
                "times are measured on a GPU: trace-dataset mcp --device cuda."
            )
        read = api.as_solution(self.dataset, solution)
        if self._waiting >= MOST_WAITING:
            raise Failure(f"{MOST_WAITING} evaluations wait already: ask again later.")
        self._count += 1
        name = f"evaluation-{self._count}"
        kept = "" if self.secret else str((self.folder / name).absolute())
        asks = replace(
            self.asks,
            timing=timing,
            starts=starts,
            workloads=workloads,
            keep_failures=kept,
            hides_expected=True,
        )
        asked, begun = time.monotonic(), 0.0

        def run() -> list[SolutionVerdict]:
            nonlocal begun
            begun = time.monotonic()
            return self._evaluator.evaluate(self.dataset, [read], asks)

        self._waiting += 1
        running = self._thread.submit(run)
        try:
            (verdict,) = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancel() and not running.done():
                self._evaluator.cancel()
            raise
        finally:
            self._waiting -= 1
        failures = self._failures(name)
        shown = without_details(verdict) if self.secret else _shown(verdict, failures)
        return {
            "evaluation": name,
            **shown.as_dict(),
            "waited_seconds": round(begun - asked, 3),
            "failures": [failure["case"] for failure in failures],
        }

    def failure(self, evaluation: str, case: str = "") -> dict[str, Any]:
        """Return what is known of a refused case, the first if none is named."""
        if evaluation not in self._kept:
            known = did_you_mean(evaluation, self._kept)
            raise Failure(f"No evaluation is named {quote(evaluation)}.{known}")
        failures = self._kept[evaluation]
        for failure in failures:
            if case in ("", failure["case"]):
                return failure
        if not failures:
            raise Failure(f"{evaluation} has no refused case with values.")
        known = did_you_mean(case, (failure["case"] for failure in failures))
        raise Failure(f"{evaluation} has no refused case {quote(case)}.{known}")

    def close(self) -> None:
        """End what runs, and its processes."""
        self._evaluator.cancel()
        self._thread.shutdown(cancel_futures=True)
        self._evaluator.close()

    def _failures(self, name: str) -> list[dict[str, Any]]:
        """Return what was kept of an evaluation's refused cases; forget the oldest."""
        failures = []
        for path in sorted((self.folder / name).glob(f"*/*/{FAILURE}")):
            failure = json.loads(path.read_text("utf-8"))
            for hidden in ("solution", "path", "next", "format"):
                failure.pop(hidden, None)
            failures.append(failure | {"inputs": str(path.with_name(TENSORS))})
        failures.sort(
            key=lambda one: int(Path(one["inputs"]).parent.name.split("-")[0])
        )
        self._kept[name] = failures
        while len(self._kept) > MOST_KEPT:
            oldest, _ = self._kept.popitem(last=False)
            shutil.rmtree(self.folder / oldest, ignore_errors=True)
        return failures


def _shown(verdict: SolutionVerdict, failures: list[dict[str, Any]]) -> SolutionVerdict:
    """Return a verdict whose reasons name no expected value, nor an error of one."""
    known = {failure["case"]: summary(failure) for failure in failures}

    def of_case(case: CaseVerdict) -> CaseVerdict:
        if case.verdict in (PASSED, SKIPPED):
            return case
        return replace(case, reason=known.get(case.case, _said(case)), metrics={})

    cases = [of_case(case) for case in verdict.cases]
    reason = next(
        (
            c.reason
            for c in cases
            if (c.case, c.verdict) == (verdict.case, verdict.verdict)
        ),
        "" if verdict.case else verdict.reason,
    )
    return replace(verdict, cases=cases, reason=reason)


def _said(case: CaseVerdict) -> str:
    """Return a case's reason where that is no comparison of values."""
    return "wrong values" if case.verdict == INCORRECT_NUMERICAL else case.reason


def summary(failure: Mapping[str, Any]) -> str:
    """Return in a line where the outputs of a failure are wrong."""
    sentences = []
    for one in failure["outputs"]:
        where = [
            f"{name} {at['wrong']} of {at['of']} (first {', '.join(map(str, at['first']))})"
            for name, at in one.get("wrong_by_axis", {}).items()
        ]
        parts = [f"{one['output']}: {one.get('wrong', 'some')} elements are wrong"]
        parts += [f"at {'; '.join(where)}"] if where else []
        parts += [f"likely: {one['likely']}"] if one.get("likely") else []
        sentences.append(", ".join(parts))
    return ". ".join(sentences) or str(failure.get("reason", "wrong values"))
