"""Comparing top-k indices: the same set in every row, ties at the edge left free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernel_judge.comparison.compare import FAILED, PASSED, Comparison
from kernel_judge.comparison.policy import Question
from kernel_judge.definition import Definition
from kernel_judge.source_names import METAMORPHIC

PADDING = -1
# the arithmetic of a definition's own run()
REFERENCE = "reference"
# findings beyond these repeat what the first ones say
_SHOWN = 5


@dataclass(frozen=True)
class Candidates:
    """The candidates that one row may choose from.

    ids int64 [n], all distinct; scores float64 [n], exact; errors maps an arithmetic
    to how far it may be off each score: float64 [n].
    """

    ids: torch.Tensor
    scores: torch.Tensor
    errors: Mapping[str, torch.Tensor]


# of a definition, its inputs and the arithmetics to bound: one value a row
Rows = Callable[[Definition, Mapping[str, Any], Sequence[str]], Sequence[Candidates]]


@dataclass(frozen=True)
class TopKSet:
    """Ids [rows, k] are right where rounding explains that these were chosen.

    A row holds min(k, candidates) distinct ids of its candidates in any order, then -1.
    Of an id i in the set and an id j that was left out the computed scores say i >= j.
    So the exact ones say s_i + e_i >= s_j - e_j, where e bounds the arithmetic's error:
    ids may differ where this holds, that is at the k-th score alone, and nowhere else.
    Both sides are held against the exact scores, each with its own arithmetic's bound.
    """

    rows: Rows

    def judge(self, actual: Any, expected: Any, question: Question) -> Comparison:
        """Return the verdict on both sides' ids, and in how many ids they differ."""
        source, other = question.other or REFERENCE, question.source
        # the reference's own further call: on views, on a CPU
        other = REFERENCE if other.startswith(METAMORPHIC) else other
        arithmetics = (source, other)
        candidates = self.rows(question.definition, question.inputs, arithmetics)
        findings = []
        for side, ids, arithmetic in (
            ("actual", actual, source),
            ("expected", expected, other),
        ):
            defect = _malformed(ids, actual, len(candidates))
            texts = [defect] if defect else list(_judged(ids, candidates, arithmetic))
            findings += [f"{side}: {text}" for text in texts[:_SHOWN]]
            if len(texts) > _SHOWN:
                findings.append(f"{side}: and {len(texts) - _SHOWN} findings more")
        # a float64 oracle's dtype says nothing
        same = question.source == "oracle" or findings or actual.dtype == expected.dtype
        if not same:
            findings.append(f"dtype {actual.dtype}, expected {expected.dtype}")
        figures = {} if findings else _figures(actual, expected)
        verdict = FAILED if findings else PASSED
        return Comparison(verdict, tuple(findings), figures=figures)


def _malformed(ids: Any, actual: Any, rows: int) -> str | None:
    if not isinstance(ids, torch.Tensor):
        return f"a tensor is expected, got {type(ids).__name__}"
    shape = getattr(actual, "shape", ids.shape)
    if ids.dim() != 2 or len(ids) != rows or ids.shape != shape:
        return f"shape {list(ids.shape)}, expected {rows} rows of one length"
    if ids.dtype.is_floating_point or ids.dtype == torch.bool:
        return f"ids are integers, not {ids.dtype}"
    return None


def _judged(
    ids: torch.Tensor, candidates: Sequence[Candidates], arithmetic: str
) -> Iterator[str]:
    for number, (row, allowed) in enumerate(zip(ids, candidates, strict=True)):
        defect = _defect(row.to("cpu", torch.int64), allowed, arithmetic)
        if defect is not None:
            yield f"row {number}: {defect}"


def _defect(row: torch.Tensor, allowed: Candidates, arithmetic: str) -> str | None:
    """Return what is wrong with a row of ids, None where it may be the top k."""
    ids = row[row != PADDING]
    wanted = min(len(row), len(allowed.ids))
    if len(ids) != wanted:
        return f"{len(ids)} ids, of {len(allowed.ids)} candidates {wanted} are wanted"
    if bool((row[:wanted] == PADDING).any()):
        return "-1 stands before an id"
    ordered = ids.sort().values
    repeated = ordered[1:][ordered.diff() == 0]
    if len(repeated):
        return f"the id {int(repeated[0])} is there more than once"
    foreign = ids[~torch.isin(ids, allowed.ids)]
    if len(foreign):
        return f"{len(foreign)} ids are no candidates, the first is {int(foreign[0])}"
    chosen = torch.isin(allowed.ids, ids)
    return _out_of_order(allowed, chosen, allowed.errors[arithmetic])


def _out_of_order(
    allowed: Candidates, chosen: torch.Tensor, errors: torch.Tensor
) -> str | None:
    if bool(chosen.all()) or not bool(chosen.any()):
        return None
    most = torch.where(chosen, allowed.scores + errors, torch.inf)
    least = torch.where(chosen, -torch.inf, allowed.scores - errors)
    worst, best = int(most.argmin()), int(least.argmax())
    if bool(least[best] <= most[worst]):
        return None
    amiss = int((least > most[worst]).sum())
    return (
        f"{amiss} ids with a higher score than one of those chosen are left out: id "
        f"{int(allowed.ids[best])} has {float(allowed.scores[best]):.9g}, the chosen "
        f"{int(allowed.ids[worst])} has {float(allowed.scores[worst]):.9g}; rounding "
        f"explains {float(errors[best] + errors[worst]):.3g}"
    )


def _figures(actual: torch.Tensor, expected: torch.Tensor) -> dict[str, float]:
    """Return how many ids there are, and how many of these the other side lacks."""
    pairs = zip(actual.to("cpu"), expected.to("cpu"), strict=True)
    differing = sum(int((~torch.isin(a, e)).sum()) for a, e in pairs)
    return {"ids": float((actual != PADDING).sum()), "tied_ids": float(differing)}
