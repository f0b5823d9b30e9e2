"""The exact law of a draw under top-k, top-p and min-p, up to ties and rounding.

FlashInfer keeps a token if fewer than k tokens are more probable, and then if the more
probable tokens kept by k hold less than the share p of their mass. That keeps all tokens
of a tie. Sorting keeps exactly k tokens, and of a tie at p as many as reach it. Both are
legal: a law has tokens that both keep, and free ones that only one keeps. All others are
illegal.

Sums are exact if probabilities are multiples of 2^-24 that add up to 1. Shares of the
mass kept by k are exact if that mass is a power of two. Otherwise tokens near the
boundary are free as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

# uncertainty of p, as a share of the kept mass: a float32 sum of a row has at most 300
# roundings of 2^-24 in a kernel's threads and the tree above them, 2^-15.8
SLACK = 2.0**-15
_UNITS = 2.0**24


@dataclass(frozen=True)
class Law:
    """The law of the rows with the same probabilities, k and p.

    `tokens`, int64 [n], are kept by every implementation, the most probable first;
    `weights`, float64 [n], are their unnormalised probabilities. `free`, int64, are
    tokens that may be kept; together their probability is within `free_share`.
    """

    tokens: torch.Tensor
    weights: torch.Tensor
    free: torch.Tensor
    free_share: tuple[float, float]
    probs: torch.Tensor
    top_k: int | None
    top_p: float | None
    min_p: float | None = None

    def __str__(self) -> str:
        """Return the filter as text, such as `k = 5, p = 0.8`."""
        limits = (("k", self.top_k), ("p", self.top_p), ("min_p", self.min_p))
        named = [f"{name} = {value:.9g}" for name, value in limits if value is not None]
        return ", ".join(named) or "all tokens"

    def is_legal(self, samples: torch.Tensor) -> torch.Tensor:
        """Return whether each sample, int64 [draws], is legal: bool [draws]."""
        return torch.isin(samples, torch.cat([self.tokens, self.free]))

    def objection(self, token: int) -> str:
        """Return why a token is illegal."""
        if not 0 <= token < len(self.probs):
            return f"is none of the {len(self.probs)} tokens"
        share = float(self.probs[token])
        if share <= 0.0:
            return f"has probability {share:g}"
        above = self.probs[self.probs > share].double()
        if self.top_k is not None and len(above) >= self.top_k > 0:
            return f"is number {len(above) + 1} by probability"
        if self.min_p is not None:
            return f"has the share {share / float(self.probs.max()):.6g} of the largest"
        return f"comes after tokens that hold {float(above.sum()):.6g} of all"


@dataclass(frozen=True)
class Laws:
    """The laws of a batch: row i follows `laws[row_law[i]]`, int64 [batch_size]."""

    laws: tuple[Law, ...]
    row_law: torch.Tensor


def laws_of(inputs: Mapping[str, Any]) -> Laws:
    """Return the laws of the rows of a batch."""
    first, row_law = distinct_rows(inputs)
    rows = probabilities({name: value[first].cpu() for name, value in inputs.items()})
    ks, ps, min_ps = (
        inputs[name][first].tolist() if name in inputs else [None] * len(first)
        for name in ("top_k", "top_p", "min_p")
    )
    laws = tuple(map(law_of, rows, ks, ps, min_ps))
    return Laws(laws, row_law)


def probabilities(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return float32 probabilities as given, or the float64 softmax of logits."""
    if "probs" in inputs:
        probs: torch.Tensor = inputs["probs"]
        return probs
    softmax: torch.Tensor = inputs["logits"].double().softmax(dim=1)
    return softmax


def distinct_rows(inputs: Mapping[str, Any]) -> tuple[list[int], torch.Tensor]:
    """Return the first row of each kind, and each row's kind: int64 [batch_size].

    Rows are of one kind if all their inputs have the same bits.
    """
    columns = [
        value.contiguous().cpu().flatten(1) if value.dim() > 1 else value[:, None].cpu()
        for value in inputs.values()
    ]
    kinds: dict[bytes, int] = {}
    first, row_kind = [], []
    for row in range(len(columns[0])):
        key = b"".join(column[row].numpy().tobytes() for column in columns)
        if key not in kinds:
            kinds[key] = len(kinds)
            first.append(row)
        row_kind.append(kinds[key])
    return first, torch.tensor(row_kind)


def law_of(
    probs: torch.Tensor,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None = None,
) -> Law:
    """Return the law of one row, probs float32 or float64 [vocab_size].

    k <= 0 keeps all tokens, p <= 0 only the most probable one.
    """
    possible = (probs > 0).nonzero().flatten()
    levels, level_of, counts = torch.unique(
        probs[possible].double(), return_inverse=True, return_counts=True
    )
    # from the most probable level down
    levels, counts = levels.flip(0), counts.flip(0)
    level_of = len(levels) - 1 - level_of

    exact = _is_exact(levels, counts)
    kept = []
    for first in _within_k(counts, top_k):
        mass = float((levels * first).sum())
        slack = 0.0 if exact and math.frexp(mass)[0] == 0.5 else SLACK
        for second in _within_p(levels, first, top_p, slack):
            kept += _within_min_p(levels, second, min_p)
    sure = torch.stack([(k == counts) for k in kept]).all(0)
    free = torch.stack([k > 0 for k in kept]).any(0) & ~sure
    masses = [levels * k for k in kept]
    shares = [float(mass[free].sum() / mass.sum()) for mass in masses]

    tokens = possible[sure[level_of]]
    order = probs[tokens].argsort(descending=True, stable=True)
    return Law(
        tokens[order],
        probs[tokens][order].double(),
        possible[free[level_of]],
        (min(shares), max(shares)),
        probs,
        top_k,
        top_p,
        min_p,
    )


def _is_exact(levels: torch.Tensor, counts: torch.Tensor) -> bool:
    units = levels * _UNITS
    whole = torch.equal(units, units.round())
    return whole and float((units * counts).sum()) == _UNITS


def _within_k(counts: torch.Tensor, top_k: int | None) -> list[torch.Tensor]:
    """Return the tokens of each level that k keeps: exactly k, and all of a tie."""
    if top_k is None or top_k <= 0:
        return [counts]
    more_probable = counts.cumsum(0) - counts
    exactly = torch.minimum((top_k - more_probable).clamp_min(0), counts)
    return [exactly, torch.where(more_probable < top_k, counts, 0)]


def _within_p(
    levels: torch.Tensor, counts: torch.Tensor, top_p: float | None, slack: float
) -> list[torch.Tensor]:
    """Return the tokens of each level that p keeps: as few and as many as legal."""
    if top_p is None or top_p >= 1.0:
        return [counts]
    mass = levels * counts
    before = mass.cumsum(0) - mass
    low, high = ((top_p + sign * slack) * mass.sum() for sign in (-1.0, 1.0))
    needed = ((low - before) / levels).ceil().long()
    few = torch.minimum(needed.clamp_min(0), counts)
    many = torch.where(before < high, counts, 0)
    # every p keeps one of the most probable tokens
    few[0] = few[0].clamp_min(1)
    many[0] = counts[0]
    return [few, many]


def _within_min_p(
    levels: torch.Tensor, counts: torch.Tensor, min_p: float | None
) -> list[torch.Tensor]:
    """Return the tokens of each level that have the share min_p of the first level's.

    The product is rounded to float32, unless that holds it.
    """
    if min_p is None:
        return [counts]
    least = min_p * float(levels[0])
    exact = float(torch.tensor(least, dtype=torch.float32)) == least
    slack = 0.0 if exact else 2.0**-23
    return [
        torch.where(levels >= least * (1.0 + s), counts, 0) for s in (slack, -slack)
    ]
