"""Where a wrong output is wrong, as plain values: which rows, how far, the likely cause."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

from generator.evaluation.verdict import INCORRECT_NUMERICAL
from kernel_judge.comparison.compare import PROPORTIONAL, Comparison

_SHOWN = 8
_LOGARITHM = 1e-3


def described(
    output: str,
    axes: Sequence[str] | None,
    actual: Any,
    expected: Any,
    found: Comparison,
) -> dict[str, Any]:
    """Return what is known of one output; `axes` are the names of its axes.

    `worst` has indices with both values, `wrong_by_axis` for each axis at how many of
    its indices any element is wrong and the first of these, `likely` a cause where one is
    recognised.
    """
    about: dict[str, Any] = {"output": output, **_kind(actual)}
    about["findings"] = list(found.findings)
    if found.metrics is not None:
        metrics = found.metrics
        about |= {"elements": metrics.elements, "mismatched": metrics.mismatched}
        about |= {"factor": metrics.factor, "mean_error": metrics.mean_error}
        worst = (w for w in metrics.worst if w.actual != w.expected)
        about["worst"] = [vars(w) | {"index": list(w.index)} for w in worst]
    wrong = _wrong(actual, expected, found)
    if wrong is not None:
        about["wrong"] = int(wrong.sum())
        about["wrong_by_axis"] = _by_axis(wrong, axes)
        about["likely"] = _likely(actual, expected, wrong, found, axes)
    return about


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


def _kind(value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        return {"type": type(value).__name__}
    return {"dtype": str(value.dtype).removeprefix("torch."), "shape": [*value.shape]}


def _wrong(actual: Any, expected: Any, found: Comparison) -> torch.Tensor | None:
    """Return where two tensors of one shape disagree, None where no bound says so."""
    both = isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not both or actual.shape != expected.shape or found.tolerance is None:
        return None
    a, e = actual.detach().cpu().double(), expected.detach().cpu().double()
    allowed = found.tolerance.atol + found.tolerance.rtol * e.abs()
    right: torch.Tensor = (a == e) | ((a - e).abs() <= allowed)
    return ~right


def _by_axis(wrong: torch.Tensor, axes: Sequence[str] | None) -> dict[str, Any]:
    about = {}
    for number, length in enumerate(wrong.shape):
        others = [n for n in range(wrong.ndim) if n != number]
        any_wrong = wrong.any(dim=others) if others else wrong
        places = any_wrong.nonzero().flatten().tolist()
        name = axes[number] if axes and number < len(axes) else f"axis {number}"
        about[name] = {"wrong": len(places), "of": length, "first": places[:_SHOWN]}
    return about


def _likely(
    actual: torch.Tensor,
    expected: torch.Tensor,
    wrong: torch.Tensor,
    found: Comparison,
    axes: Sequence[str] | None,
) -> str:
    """Return a cause that is recognised by where and how an output is wrong."""
    a, e = actual.detach().cpu().double(), expected.detach().cpu().double()
    if not bool(wrong.any()):
        return ""
    if bool(a[wrong].isnan().all()):
        return "NaN: elements that were never written, 0 / 0, or a sum over no element"
    if bool((a[wrong].isinf() & e[wrong].isfinite()).all()):
        return "an intermediate is beyond its dtype's largest number"
    if bool((a[wrong] == 0).all()):
        return (
            _placed(wrong, axes) or "zeros: elements are skipped, or nothing is added"
        )
    where = _placed(wrong, axes)
    if where:
        return where
    metrics = found.metrics
    if metrics is None:
        return ""
    factor = metrics.factor
    if abs(metrics.cosine) > 1.0 - PROPORTIONAL and abs(factor - 1.0) > _LOGARITHM:
        for value, what in _FACTORS:
            if abs(factor - value) < _LOGARITHM * abs(value):
                return what
        return "one factor throughout: a scale is missing or applied twice"
    if metrics.max_rel < 2.0**-6 and metrics.nmse < 1e-4:
        return "an intermediate is rounded to a narrower dtype than the reference's"
    return ""


_FACTORS = (
    (-1.0, "the sign is reversed"),
    (
        math.log(2.0),
        "a logarithm to base 2 where a natural one is meant, or its inverse",
    ),
    (1.0 / math.log(2.0), "a natural logarithm where one to base 2 is meant"),
    (2.0, "twice: added twice, or a factor of 1/2 is missing"),
    (0.5, "half: a part is left out, or a factor of 2 is missing"),
)


def _placed(wrong: torch.Tensor, axes: Sequence[str] | None) -> str:
    """Return which indices of one axis are wrong, where these are a part of a kind."""
    for number, length in enumerate(wrong.shape):
        others = [n for n in range(wrong.ndim) if n != number]
        any_wrong = wrong.any(dim=others) if others else wrong
        places = any_wrong.nonzero().flatten().tolist()
        if not 0 < len(places) < length:
            continue
        name = axes[number] if axes and number < len(axes) else f"axis {number}"
        first, count = places[0], len(places)
        if places == list(range(first, length)):
            return f"{name} from {first} on: the tail of a block is not computed"
        if count > 1 and len({b - a for a, b in pairwise(places)}) == 1:
            step = places[1] - first
            every = "" if step == 1 else f" every {step}. index of"
            return f"{every} {name} from {first} to {places[-1]}".strip()
        if count == 1:
            return f"{name} {first} alone"
    return ""
