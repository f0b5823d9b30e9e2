"""Logits in which every choice is clear, and tables of experts."""

from __future__ import annotations

from typing import Any

import torch

from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# Logits of bfloat16 are what they are; float32 scores are off by some 2^-23, and by
# 2^-18 where a kernel makes a sigmoid of tanh.approx; groups compare sums of two.
_CLEAR = 4e-5
# of which the sigmoid is nothing beside 1e-20
_UNWANTED = -100.0


def routing_inputs(
    definition: Definition, case: Case, stream: Stream
) -> dict[str, Any]:
    """Return the inputs of a case; its `mean` and `std` are those of the logits.

    router_logits bfloat16 or float32 [num_tokens, num_experts]; bias float32
    [num_experts] of the case's `bias_mean`, routed_scaling_factor; input_ids int64
    [num_tokens] and tid2eid int32 [vocab_size, topk]. Scores that choose are further
    apart than rounding. Where the definition has groups, or a bias, every third token of
    a case with `unwanted` has logits of -100.
    """
    specs, params = definition.interface.input_specs, case.params
    tokens = case.axes["num_tokens"]
    values: dict[str, Any] = {}
    if "bias" in specs:
        experts = definition.axes["num_experts"]
        noise = stream.child("bias").values((experts,), params.get("bias_std", 0.2))
        values["bias"] = noise + params.get("bias_mean", 0.0)
        values["routed_scaling_factor"] = params.get("factor", 2.5)
    if "tid2eid" in specs:
        values |= _table(definition, case, stream)
    values["router_logits"] = _logits(definition, case, stream, values.get("bias"))
    if params.get("unwanted"):
        values["router_logits"][:tokens:3] = _UNWANTED
    return {name: values[name] for name in specs}


def _table(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return tokens, the first and the last of the vocabulary too, and their experts."""
    vocabulary, tokens = case.axes["vocab_size"], case.axes["num_tokens"]
    experts, top_k = definition.axes["num_experts"], definition.axes["topk"]
    order = stream.child("experts").permutation(experts)
    places = 7 * torch.arange(vocabulary)[:, None] + torch.arange(top_k)
    ids = torch.tensor(stream.child("ids").integers(0, vocabulary, tokens))
    ids[0] = vocabulary - 1
    ids[1:2] = 0
    return {"input_ids": ids, "tid2eid": order[places % experts].to(torch.int32)}


def _logits(
    definition: Definition, case: Case, stream: Stream, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return the first rows whose choice is clear, of as many as it takes."""
    tokens, experts = case.axes["num_tokens"], definition.axes["num_experts"]
    dtype = getattr(torch, definition.interface.input_specs["router_logits"].dtype)
    # a workload has neither
    std, mean = case.params.get("std", 2.0), case.params.get("mean", 0.0)
    clear: list[torch.Tensor] = []
    while sum(len(rows) for rows in clear) < tokens:
        shape = (2 * tokens + 8, experts)
        values = stream.child(f"logits {len(clear)}").values(shape, std) + mean
        rows = values.to(dtype)
        clear.append(rows[_is_clear(definition, rows, bias)])
    return torch.cat(clear)[:tokens]


def _is_clear(
    definition: Definition, logits: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return which rows have no two scores side by side that rounding could swap."""
    top_k = definition.axes["topk"]
    if bias is None:
        return _gaps(logits.double(), top_k) > 0.0
    scores = scored(definition, logits.double()) + bias.double()
    groups = definition.constants.get("n_group", 1)
    kept = definition.constants.get("topk_group", 1)
    grouped = scores.view(len(scores), groups, -1)
    strength = grouped.topk(2, dim=2).values.sum(2)
    best = strength.topk(kept, dim=1).indices
    allowed = torch.zeros_like(strength).scatter(1, best, 1.0).bool()
    left = grouped.masked_fill(~allowed[:, :, None], -torch.inf).flatten(1)
    clear = _gaps(left, top_k) > _CLEAR
    if kept < groups:
        edge = strength.sort(descending=True).values
        clear &= edge[:, kept - 1] - edge[:, kept] > _CLEAR
    return clear


def _gaps(scores: torch.Tensor, top_k: int) -> torch.Tensor:
    """Return the least distance of neighbours among the best top_k + 1: float64 [rows]."""
    best = scores.topk(min(top_k + 1, scores.shape[1]), dim=1).values
    return (best[:, :-1] - best[:, 1:]).min(dim=1).values


def scored(definition: Definition, logits: torch.Tensor) -> torch.Tensor:
    """Return the scores of float64 logits, of the same shape."""
    function = definition.constants["scoring_func"]
    softplus = torch.logaddexp(torch.zeros_like(logits), logits)
    if function == "sqrtsoftplus":
        return softplus.sqrt()
    if function == "sigmoid":
        return torch.exp(logits - softplus)
    return torch.exp(logits - logits.logsumexp(dim=1, keepdim=True))
