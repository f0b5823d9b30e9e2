"""Description of a wrong output, as plain values: rows, distances, the likely cause."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch

from kernel_judge.comparison.compare import PROPORTIONAL, Comparison

_SHOWN = 8
_FEWEST = 8
"""Elements of a line that show a common factor, where fewer could by chance."""
_LEFT = 1e-4
"""Share of the squares that two roundings to bfloat16, each 2^-8, may leave."""
_MOVED = 0.01
"""Share of an error's squares that sorting leaves, where values are in other places."""
_UNRELATED = 0.05
"""A cosine, or a difference of sizes, that is taken for none."""
_LOGARITHM = 1e-3
_BLOCK = 1 << 17
"""Elements that are held to their bounds at once: what comes in between stays in a cache."""
_MOST = 1 << 18
"""Elements that a cause is looked for in, of a larger output indices of its longest axis."""


def described(
    output: str,
    axes: Sequence[str] | None,
    actual: Any,
    expected: Any,
    comparison: Comparison,
) -> dict[str, Any]:
    """Return what is known of one output; `axes` are the names of its axes.

    `worst` has indices with both values, `wrong_by_axis` for each axis at how many of
    its indices any element is wrong and the first of these, `likely` a cause where one is
    recognised. Of a large output the cause is that of a part, whose size is `likely_of`.
    """
    about: dict[str, Any] = {"output": output, **_kind(actual)}
    about["findings"] = list(comparison.findings)
    if comparison.metrics is not None:
        metrics = comparison.metrics
        about |= {"elements": metrics.elements, "mismatched": metrics.mismatched}
        about |= {"factor": metrics.factor, "mean_error": metrics.mean_error}
        worst = (w for w in metrics.worst if w.actual != w.expected)
        about["worst"] = [vars(w) | {"index": list(w.index)} for w in worst]
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        # a large one stays on a GPU; of it comes what a cause is looked for in
        expected = expected.detach()
        actual = actual.detach().to(expected.device)
    wrong = _wrong(actual, expected, comparison)
    if wrong is not None:
        about["wrong"] = int(wrong.sum())
        about["wrong_by_axis"] = _by_axis(wrong, axes)
        part = _part(wrong)
        about["likely"] = _likely(actual, expected, wrong, part, comparison, axes)
        if wrong.numel() > _MOST:
            about["likely_of"] = part(wrong).numel()
    return about


def _kind(value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        return {"type": type(value).__name__}
    return {"dtype": str(value.dtype).removeprefix("torch."), "shape": [*value.shape]}


def _wrong(actual: Any, expected: Any, comparison: Comparison) -> torch.Tensor | None:
    """Return where two tensors of one shape disagree, None where no bound says so."""
    both = isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not both or actual.shape != expected.shape or comparison.tolerance is None:
        return None
    values = actual, expected
    wrong = torch.empty(actual.shape, dtype=torch.bool, device=actual.device)
    blocks: Iterable[Sequence[torch.Tensor]] = [(wrong, *values)]
    if wrong.numel() > _BLOCK and wrong.ndim > 1:
        # a bound may be that of a row
        length = wrong.shape[-1]
        rows = (v.reshape(-1, length) for v in (wrong, *values))
        blocks = zip(*(v.split(-(-_BLOCK // length)) for v in rows), strict=True)
    for to, one, other in blocks:
        a, e = one.double(), other.double()
        to.copy_((a != e) & ~((a - e).abs() <= comparison.tolerance.allowed(e)))
    return wrong


def _part(wrong: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what takes the part of a tensor that a cause is looked for in.

    Of a large one that is the whole of indices of its longest axis, evenly from those at
    which elements are wrong.
    """
    if wrong.numel() <= _MOST:
        return lambda tensor: tensor
    axis = max(range(wrong.ndim), key=lambda n: wrong.shape[n])
    others = [n for n in range(wrong.ndim) if n != axis]
    places = (wrong.any(dim=others) if others else wrong).nonzero().flatten()
    count = max(_MOST * wrong.shape[axis] // wrong.numel(), 1)
    some = places[:: -(-len(places) // count) or 1]
    return lambda tensor: tensor.index_select(axis, some)


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
    part: Callable[[torch.Tensor], torch.Tensor],
    comparison: Comparison,
    axes: Sequence[str] | None,
) -> str:
    """Return a cause that is recognised by where and how an output is wrong."""
    if not bool(wrong.any()):
        return ""
    placed = _placed(wrong, axes)
    is_part = wrong.numel() > _MOST
    a, e = (part(v).cpu().double() for v in (actual, expected))
    wrong = part(wrong).cpu()
    if bool(a[wrong].isnan().all()):
        return "NaN: elements that were never written, 0 / 0, or a sum over no element"
    if bool((a[wrong].isinf() & e[wrong].isfinite()).all()):
        return "an intermediate is beyond its dtype's largest number"
    if bool((a[wrong] == 0).all()):
        return placed or "zeros: elements are skipped, or nothing is added"
    # in a part that has what is wrong alone, it is wrong throughout
    by_lines = "" if placed and is_part else _by_lines(a, e, axes)
    # of few indices the place says more
    if placed and not by_lines:
        return placed
    metrics = comparison.metrics
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
    return by_lines or _as_a_whole(a, e)


def _by_lines(a: torch.Tensor, e: torch.Tensor, axes: Sequence[str] | None) -> str:
    """Return that a factor, a term or both differ by the indices of some axes alone."""
    names = [axes[n] if axes and n < len(axes) else f"axis {n}" for n in range(a.ndim)]
    kinds: set[tuple[int, ...]] = {(n,) for n in range(a.ndim)}
    kinds |= {tuple(m for m in range(a.ndim) if m != n) for n in range(a.ndim)}
    for along in sorted(kinds, key=len, reverse=True):
        lengths = [a.shape[n] for n in along]
        whom = " and ".join(names[n] for n in range(a.ndim) if n not in along)
        if not whom or math.prod(lengths) < _FEWEST:
            continue
        for cause, explained, changed in _fits(a, e, along):
            left, whole = (explained - a).square().sum(), (a - e).square().sum()
            fits = bool(left < _LEFT * a.square().sum()) and bool(left < whole / 4)
            # what is wrong at few indices is wrong there, and not throughout
            if fits and float(changed.double().mean()) > 0.5:
                return f"{cause} for each {whom}"
    return ""


def _fits(
    a: torch.Tensor, e: torch.Tensor, along: tuple[int, ...]
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Yield a cause, what it makes of the expected values, and where it changes them."""
    factor = (a * e).sum(along, keepdim=True) / e.square().sum(along, keepdim=True)
    yield (
        "a weight or a scale is missing or twice",
        factor * e,
        (factor - 1).abs() > 0.01,
    )
    mean_a, mean_e = a.mean(along, keepdim=True), e.mean(along, keepdim=True)
    term = mean_a - mean_e
    size = e.square().mean(along, keepdim=True).sqrt()
    yield "a bias or a mean is missing or twice", e + term, term.abs() > 0.01 * size
    spread = e - mean_e
    slope = ((a - mean_a) * spread).sum(along, keepdim=True)
    slope = slope / spread.square().sum(along, keepdim=True)
    yield (
        "a scale is another before a term is added,",
        mean_a + slope * spread,
        (slope - 1).abs() > 0.01,
    )


def _as_a_whole(a: torch.Tensor, e: torch.Tensor) -> str:
    """Return a cause by the sizes of all values, and by what is missing of them."""
    there, wanted = a.square().sum(), e.square().sum()
    ordered = a.flatten().sort().values - e.flatten().sort().values
    left = ordered.square().sum()
    # values that are a little wrong are close in any order
    if bool(left < _LEFT * wanted) and bool(left < _MOVED * (a - e).square().sum()):
        return "the right values in other places: an order or a layout is another"
    missing = e - a
    shared = (a * missing).sum().abs() / (there * missing.square().sum()).sqrt()
    if bool(shared < _UNRELATED) and bool(there < wanted):
        return (
            "a part of a sum is left out: what is missing has nothing of what is there"
        )
    if bool((there / wanted - 1.0).abs() < _UNRELATED):
        return (
            "as large as it should be, and otherwise: two operands are swapped, or a "
            "term has the other sign"
        )
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
            is_short = 2 * len(places) < length
            why = ": the tail of a block is not computed" if is_short else ""
            return f"{name} from {first} on{why}"
        if count > 1 and len({b - a for a, b in pairwise(places)}) == 1:
            step = places[1] - first
            every = "" if step == 1 else f" every {step}. index of"
            return f"{every} {name} from {first} to {places[-1]}".strip()
        if count == 1:
            return f"{name} {first} alone"
    return ""


def first_finding(message: str) -> str:
    """Return the first finding of a defect's message, without its heading."""
    lines = [line.strip() for line in message.strip().splitlines()]
    has_heading = len(lines) > 1 and lines[0].endswith((": FAILED", ": ERROR"))
    return lines[has_heading] if lines else "AssertionError"
