"""Routing of tokens to experts: an oracle, and logits to test with.

Scores differ clearly wherever the selection changes, so that neither rounding in float32
nor ties decide a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream

DEEPSEEK, RENORMALIZE, LLAMA4, ROUTED = "deepseek", "renormalize", "llama4", "routed"
# number of the largest logits with uneven gaps: more than any token selects
_UNEVEN = 16
# tokens of a case with rivals that these are for
_RIVALS = 8
# expert → weight, of one token
Choice = dict[int, float]


def routing_of(definition: Definition) -> str:
    """Return the routing method of a definition, by its interface."""
    inputs = definition.interface.inputs
    if "topk_ids" in inputs:
        return ROUTED
    if "routed_scaling_factor" in inputs:
        return DEEPSEEK
    if definition.constants["top_k"] == 1:
        return LLAMA4
    return RENORMALIZE


def experts_of(definition: Definition) -> tuple[int, int]:
    """Return the number of experts of the model and of local experts.

    Where the choice is given, no shape says how many experts other devices have: any
    number would do, and as many as are here is what this returns.
    """
    axes = definition.axes
    local = axes.get("num_local_experts", axes.get("num_experts", 0))
    devices = 2 if "local_expert_offset" in definition.interface.inputs else 1
    return axes.get("num_experts", devices * local), local


def choices(definition: Definition, inputs: Mapping[str, Any]) -> list[Choice]:
    """Return each token's experts and weights, experts as model numbers.

    Computes in float64, by sorting; ties go to the lower expert.
    """
    method = routing_of(definition)
    if method == ROUTED:
        chosen, weights = unpack(inputs["topk_ids"])
    else:
        chosen, weights = _routed(definition, inputs, method)
    rows = zip(chosen.tolist(), weights.tolist(), strict=True)
    return [dict(zip(*row, strict=True)) for row in rows]


def _routed(
    definition: Definition, inputs: Mapping[str, Any], method: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the experts that a router chooses by its logits, and their weights."""
    logits = inputs["routing_logits"].double()
    if method == DEEPSEEK:
        scores = _sigmoid(logits) + inputs["routing_bias"].double()
        chosen = _deepseek(definition, scores)
    else:
        # the interface has a bias, which no router of Llama 4 adds
        chosen = _best(logits, definition.constants["top_k"])
    best = logits.gather(1, chosen)
    if method == RENORMALIZE:
        # relative to the largest, which is the first
        return chosen, _shares(torch.exp(best - best[:, :1]))
    if method == LLAMA4:
        return chosen, _sigmoid(best)
    return chosen, inputs["routed_scaling_factor"] * _shares(_sigmoid(best))


def pack(experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return packed ids, int32 (expert << 16) | bfloat16 bits of the weight.

    Both arguments have the shape of the result.
    """
    bits = weights.to(torch.bfloat16).view(torch.int16).to(torch.int32) & 0xFFFF
    return (experts.to(torch.int32) << 16) | bits


def unpack(topk_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return experts, int32, and weights, float32, shaped as the packed ids."""
    bits = (topk_ids & 0xFFFF).to(torch.int16)
    return topk_ids >> 16, bits.view(torch.bfloat16).float()


def _sigmoid(logits: torch.Tensor) -> torch.Tensor:
    return 1.0 / (1.0 + torch.exp(-logits))


def _shares(weights: torch.Tensor) -> torch.Tensor:
    return weights / weights.sum(dim=1, keepdim=True)


def _best(values: torch.Tensor, count: int) -> torch.Tensor:
    """Return the places of the largest values of each row: int64 [rows, count]."""
    return values.sort(dim=1, descending=True, stable=True).indices[:, :count]


def _deepseek(definition: Definition, scores: torch.Tensor) -> torch.Tensor:
    """Return the experts of the largest scores in groups whose two best are."""
    constants = definition.constants
    groups = scores.view(len(scores), constants["n_group"], -1)
    strength = groups.sort(dim=2).values[:, :, -2:].sum(dim=2)
    strongest = _best(strength, constants["topk_group"])
    size = groups.shape[2]
    places = torch.arange(size, device=scores.device)
    allowed: torch.Tensor = (strongest[:, :, None] * size + places).flatten(1)
    return allowed.gather(1, _best(scores.gather(1, allowed), constants["top_k"]))


def _with_first(order: list[int], first: Sequence[int], turn: int) -> list[int]:
    """Move the experts of `first`, rotated by `turn`, to the front of an order."""
    turn %= len(first)
    front = [*first[turn:], *first[:turn]]
    return front + [expert for expert in order if expert not in front]


def draw_logits(
    stream: Stream,
    tokens: int,
    experts: int,
    hot: list[int],
    top: float,
    first: Sequence[int] = (),
    uneven: bool = False,
) -> torch.Tensor:
    """Return logits in which `hot` experts are the largest: float32 [tokens, experts].

    A token's logits are distinct multiples of 1/8 that bfloat16 holds, in random order.
    Experts of `first` precede other hot ones, and take turns to lead. The largest logit
    is `top` - 1 … `top` + 1, so that its sigmoid is neither 0 nor 1. Neighbouring logits
    are 1/8 apart, which gives all tokens the same softmax weights; with `uneven` the
    largest are up to 1/2 apart, and weights differ.
    """
    most, others = torch.tensor(hot), [e for e in range(experts) if e not in hot]
    rest = torch.tensor(others, dtype=torch.int64)
    orders, levels = [], []
    steps = torch.arange(experts).repeat(tokens, 1)
    for token in range(tokens):
        own = stream.child(f"token {token}")
        best = most[own.permutation(len(most))]
        if first:
            best = torch.tensor(_with_first(best.tolist(), first, token))
        orders += [best, rest[own.child("rest").permutation(len(rest))]]
        levels += own.child("top").integers(-8, 9, 1)
        if uneven:
            count = min(_UNEVEN, experts - 1)
            wider = own.child("gaps").integer_tensor(0, 4, count).cumsum(0)
            steps[token, 1 : count + 1] += wider
            steps[token, count + 1 :] += wider[-1]
    logits = (8.0 * top + torch.tensor(levels)[:, None] - steps) / 8.0
    order = torch.cat(orders).view(tokens, experts)
    return torch.empty(tokens, experts).scatter_(1, order, logits)


def draw_scores(
    stream: Stream,
    tokens: int,
    experts: int,
    hot: list[int],
    raised: list[int],
    bias_mean: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits and a bias for DeepSeek's routing.

    float32 [tokens, experts] and bfloat16 [experts]. Tokens select `hot` experts; every
    other token, from the first on, selects the `raised` among them. The bias changes the
    selection. With a `bias_mean` below -1 all sums are negative, so a reference that
    masks excluded groups with 0 selects them.
    """
    logits = stream.child("logits").values((tokens, experts), 0.8) - 4.0
    logits[:, hot] += 4.0
    logits[::2, raised] += 3.0
    bias = stream.child("bias").values((experts,), 0.1) + bias_mean
    return logits, bias.to(torch.bfloat16)


def set_rivals(
    stream: Stream,
    definition: Definition,
    logits: torch.Tensor,
    bias: torch.Tensor,
    here: Sequence[int],
    offset: int,
) -> None:
    """Change the first tokens so that experts, and groups, are rivals for the last place.

    `logits` float32 [tokens, experts] and `bias` bfloat16 [experts] are changed. The
    first of `here` has a rival in its group; the logits of both differ by 2^-10, in
    bfloat16 by nothing, and they win in turns. Another group's two best are worse, or
    better by as little. A token's other experts are clearly better, elsewhere if there
    are such, and the rest is clearly worse.
    """
    experts, local = experts_of(definition)
    n_group, kept = definition.constants["n_group"], definition.constants["topk_group"]
    size, first = experts // n_group, here[0]
    mates = (*here[1:], *range(offset, offset + local))
    second = next(e for e in mates if e // size == first // size and e != first)
    groups = [g for g in range(n_group) if g != first // size]
    # as many groups as a token selects beside the rivals', two in each at least
    places = [g * size + i for i in range(size) for g in groups[: kept - 1] or [0]]
    better = [e for e in places if not offset <= e < offset + local]
    if experts == local:
        better = [e for e in here if e not in (first, second)]
    rows = logits[:_RIVALS]
    rows.copy_(stream.values(tuple(rows.shape), 0.25) - 6.0)
    rows[:, better[: definition.constants["top_k"] - 1]] += 10.0
    rivals = [first, second]
    for group in groups[kept - 1 : kept]:
        rivals += [group * size, group * size + 1]
    rows[:, rivals] = 0.5
    rows[::2, first] += 2.0**-10
    rows[1::2, second] += 2.0**-10
    for expert in rivals[2:3]:
        rows[2::4, expert] += 2.0**-9
        rows[3::4, expert] += 2.0**-9
    bias[rivals] = bias[first].clone()


def packed_choices(
    stream: Stream,
    tokens: int,
    top_k: int,
    hot: list[int],
    first: Sequence[int] = (),
    uneven: bool = False,
    odd: bool = False,
) -> torch.Tensor:
    """Return packed ids of `top_k` distinct `hot` experts: int32 [tokens, top_k].

    Experts of `first` precede others, and take turns to lead. A token's weights differ,
    add up to about 1, and are multiples of 1 / (16 · top_k); with `uneven` they use all
    bits of a bfloat16, with `odd` their last bit alone behind a power of two: 0.8 % of them.
    """
    most, orders, shares = torch.tensor(hot), [], []
    # 1/2 to 3/2 of an equal share
    whole = 4096 if uneven else 16
    for token in range(tokens):
        own = stream.child(f"token {token}")
        order = most[own.permutation(len(most))]
        if first:
            order = torch.tensor(_with_first(order.tolist(), first, token))
        orders.append(order[:top_k])
        draws = own.child("weights")
        shares.append(draws.integer_tensor(whole // 2, whole * 3 // 2, top_k))
    weights = torch.stack(shares).float() / whole / top_k
    ids = pack(torch.stack(orders), weights)
    return ids & ~0x7F | 1 if odd else ids
