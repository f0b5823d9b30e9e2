"""Which experts a token goes to and with what weights: logits to try, and an oracle.

Rounding and ties must not decide a comparison, so logits are drawn with scores that
differ clearly wherever the choice changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .definition import Definition
from .stream import Stream

DEEPSEEK, RENORMALIZE, LLAMA4, ROUTED = "deepseek", "renormalize", "llama4", "routed"
# so many of the largest logits are unevenly apart: more than any token chooses
_UNEVEN = 16
# a token's experts with their weights
Choice = dict[int, float]


def routing_of(definition: Definition) -> str:
    """Return the method by which a definition's interface routes."""
    inputs = definition.interface.inputs
    if "topk_ids" in inputs:
        return ROUTED
    if "routed_scaling_factor" in inputs:
        return DEEPSEEK
    if definition.constants["top_k"] == 1:
        return LLAMA4
    return RENORMALIZE


def experts_of(definition: Definition) -> tuple[int, int]:
    """Return the number of all experts and of those whose weights are here."""
    axes = definition.axes
    local = axes.get("num_local_experts", axes.get("num_experts", 0))
    return axes.get("num_experts", local), local


def choices(definition: Definition, inputs: Mapping[str, Any]) -> list[Choice]:
    """Return each token's experts and weights, by numbers of the whole model.

    One token at a time with Python's floats: float64, sorted, ties to the lower expert.
    """
    method = routing_of(definition)
    if method == ROUTED:
        return [
            {packed >> 16: weight_of(packed) for packed in row}
            for row in inputs["topk_ids"].tolist()
        ]
    top_k = definition.constants["top_k"]
    rows = inputs["routing_logits"].double().tolist()
    if method == RENORMALIZE:
        return [_renormalized(row, top_k) for row in rows]
    bias = inputs["routing_bias"].double().tolist()
    if method == LLAMA4:
        chosen = [_best(biased(row, bias), 1)[0] for row in rows]
        return [{e: _sigmoid(row[e])} for e, row in zip(chosen, rows, strict=True)]
    factor = inputs["routed_scaling_factor"]
    groups = definition.constants["n_group"], definition.constants["topk_group"]
    return [_deepseek(row, bias, top_k, *groups, factor) for row in rows]


def weight_of(packed: int) -> float:
    """Return the routing weight in the low 16 bits: those of a bfloat16."""
    bits = torch.tensor([(packed & 0xFFFF) << 16], dtype=torch.int64)
    return float(bits.to(torch.int32).view(torch.float32))


def pack(experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return int32 (expert << 16) | bits of the weight as bfloat16."""
    bits = weights.to(torch.bfloat16).view(torch.int16).to(torch.int32) & 0xFFFF
    return (experts.to(torch.int32) << 16) | bits


def unpack(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return experts, int32, and weights, float32, of packed ids."""
    bits = (topk_ids & 0xFFFF).to(torch.int16)
    return topk_ids >> 16, bits.view(torch.bfloat16).float()


def biased(row: list[float], bias: list[float]) -> list[float]:
    """Return the scores that choose: sigmoid of the logit, plus the bias."""
    return [_sigmoid(logit) + b for logit, b in zip(row, bias, strict=True)]


def _sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _best(values: list[float], count: int) -> list[int]:
    order = sorted(range(len(values)), key=lambda i: -values[i])
    return order[:count]


def _renormalized(row: list[float], top_k: int) -> Choice:
    chosen = _best(row, top_k)
    # relative to the largest, which is the first
    powers = {e: math.exp(row[e] - row[chosen[0]]) for e in chosen}
    return {e: power / sum(powers.values()) for e, power in powers.items()}


def _deepseek(
    row: list[float],
    bias: list[float],
    top_k: int,
    n_group: int,
    topk_group: int,
    factor: float,
) -> Choice:
    scores = biased(row, bias)
    size = len(row) // n_group
    groups = [scores[g * size : (g + 1) * size] for g in range(n_group)]
    strength = [sum(sorted(group)[-2:]) for group in groups]
    allowed = [
        e for g in _best(strength, topk_group) for e in range(g * size, (g + 1) * size)
    ]
    chosen = [allowed[i] for i in _best([scores[e] for e in allowed], top_k)]
    unbiased = {e: _sigmoid(row[e]) for e in chosen}
    total = sum(unbiased.values())
    return {e: factor * score / total for e, score in unbiased.items()}


def _led(order: list[int], first: Sequence[int], turn: int) -> list[int]:
    """Return an order with those of `first` in front, another one leading each turn."""
    if not first:
        return order
    turn %= len(first)
    led = [*first[turn:], *first[:turn]]
    return led + [expert for expert in order if expert not in led]


def draw_logits(
    stream: Stream,
    tokens: int,
    experts: int,
    hot: list[int],
    top: float,
    first: Sequence[int] = (),
    uneven: bool = False,
) -> torch.Tensor:
    """Return distinct bfloat16 multiples of 1/8 a token, `hot` experts the largest.

    Those of `first` come before other hot ones, each in turn before all.
    float32 [tokens, experts]. Each token has an order of its own. The largest logit is
    `top` - 1 … `top` + 1, so that a sigmoid of it is neither 0 nor 1. Logits that
    follow each other are 1/8 apart: softmax over the best gives every token the same
    weights. With `uneven` the largest are up to 1/2 apart, and weights differ.
    """
    rows = []
    others = [e for e in range(experts) if e not in hot]
    for token in range(tokens):
        own = stream.child(f"token {token}")
        best = _led([hot[i] for i in own.permutation(len(hot)).tolist()], first, token)
        rest = [others[i] for i in own.child("rest").permutation(len(others)).tolist()]
        level = 8.0 * top + own.child("top").integers(-8, 9, 1)[0]
        row = torch.empty(experts)
        steps = torch.arange(experts)
        if uneven:
            wider = own.child("gaps").integers(0, 4, min(_UNEVEN, experts - 1))
            steps[1 : len(wider) + 1] += torch.tensor(wider).cumsum(0)
            steps[len(wider) + 1 :] += sum(wider)
        row[best + rest] = (level - steps) / 8.0
        rows.append(row)
    return torch.stack(rows)


def draw_scores(
    stream: Stream,
    tokens: int,
    experts: int,
    hot: list[int],
    raised: list[int],
    bias_mean: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32 logits and a bfloat16 bias that choose by their sum.

    All choices fall on the `hot` experts, those of every other token, from the first
    on, also on `raised` ones of these. The bias reorders them: the choice by unbiased
    scores is another one. With a bias below -1 every sum is negative, so that a group
    which is left out by 0 in the place of its sums would be chosen.
    """
    logits = stream.child("logits").values((tokens, experts), 0.8) - 4.0
    logits[:, hot] += 4.0
    logits[::2, raised] += 3.0
    bias = stream.child("bias").values((experts,), 0.1) + bias_mean
    return logits, bias.to(torch.bfloat16)


def packed_choices(
    stream: Stream,
    tokens: int,
    top_k: int,
    hot: list[int],
    first: Sequence[int] = (),
    uneven: bool = False,
) -> torch.Tensor:
    """Return packed ids: `top_k` distinct experts of `hot` a token, int32.

    Those of `first` are chosen before others, each in turn before all.
    The weights are sixteenths that add up to about 1, as a router's do, and differ.
    With `uneven` they have all the bits that a bfloat16 has.
    """
    rows = []
    for token in range(tokens):
        own = stream.child(f"token {token}")
        order = [hot[i] for i in own.permutation(len(hot)).tolist()]
        experts = torch.tensor(_led(order, first, token)[:top_k])
        # 1/2 to 3/2 of an even share
        whole = 4096 if uneven else 16
        shares = own.child("weights").integers(whole // 2, whole * 3 // 2, top_k)
        rows.append(pack(experts, torch.tensor(shares).float() / whole / top_k))
    return torch.stack(rows)
