"""The defects of routing: scores, what chooses, what weighs, the sum, the numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import softplus

from generator.ops.common_mutants import rounded_inputs
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
)
from kernel_judge.definition import Definition

Scores = Callable[[torch.Tensor], torch.Tensor]
_SCORES: dict[str, Scores] = {
    "softmax": lambda x: x.softmax(dim=1),
    "sigmoid": torch.sigmoid,
    "sqrtsoftplus": lambda x: softplus(x).sqrt(),
    "softplus without its root": softplus,
    "logits": lambda x: x,
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of every kind: of the tokens, the experts and the weights."""
    changes: dict[str, Change] = {
        "logits of the next token": lambda i: {
            "router_logits": i["router_logits"].roll(1, 0)
        },
        "logits of the next expert": lambda i: {
            "router_logits": i["router_logits"].roll(1, 1)
        },
        "logits negated": lambda i: {"router_logits": -i["router_logits"]},
        "logits halved": lambda i: {"router_logits": 0.5 * i["router_logits"]},
        "logits clamped at 4": lambda i: {
            "router_logits": i["router_logits"].clamp(max=4.0)
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "experts counted from one", _one_more),
        on_outputs(definition, "weights in the opposite order", _reversed),
        on_outputs(definition, "experts by their number", _by_number),
        on_outputs(definition, "weights rounded to bfloat16", _rounded),
        *(
            _weighing(definition, f"weighs by {name}", scores)
            for name, scores in _SCORES.items()
        ),
    )


def biased_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the bias and of the factor."""
    changes: dict[str, Change] = {
        "bias ignored": lambda i: {"bias": torch.zeros_like(i["bias"])},
        "bias subtracted": lambda i: {"bias": -i["bias"]},
        "bias twice": lambda i: {"bias": 2.0 * i["bias"]},
        "bias of the next expert": lambda i: {"bias": i["bias"].roll(1)},
        "factor ignored": lambda i: {"routed_scaling_factor": 1.0},
        "factor squared": lambda i: {
            "routed_scaling_factor": i["routed_scaling_factor"] ** 2
        },
        "factor's inverse": lambda i: {
            "routed_scaling_factor": 1.0 / i["routed_scaling_factor"]
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "bias in the weights", _bias_weighs),
    )


def grouped_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of groups, where there are any."""
    groups, kept = (definition.constants[n] for n in ("n_group", "topk_group"))
    if groups == 1:
        return ()

    def best(count: int) -> Scores:
        return lambda g: g.topk(count, dim=2).values.sum(dim=2)

    none = -torch.inf
    variants: dict[str, tuple[Scores, int, float, bool]] = {
        "groups ignored": (best(2), groups, none, False),
        "groups by their best expert": (best(1), kept, none, False),
        "groups by their three best experts": (best(3), kept, none, False),
        "groups by their sum": (lambda g: g.sum(dim=2), kept, none, False),
        "the worst groups": (lambda g: -best(2)(g), kept, none, False),
        "one group fewer": (best(2), kept - 1, none, False),
        "one group more": (best(2), kept + 1, none, False),
        "other groups masked with 0": (best(2), kept, 0.0, False),
        "groups interleaved": (best(2), kept, none, True),
    }
    return tuple(_grouped(definition, name, *how) for name, how in variants.items())


def table_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the table."""

    def next_id(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"input_ids": (inputs["input_ids"] + 1) % len(inputs["tid2eid"])}

    def by_place(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.arange(len(inputs["input_ids"]))}

    def by_logits(outputs: Outputs, inputs: Inputs) -> Outputs:
        chosen = inputs["router_logits"].topk(outputs[1].shape[1], dim=1)
        return outputs[0], chosen.indices.to(outputs[1].dtype)

    return (
        on_inputs(definition, "the next token's experts", next_id),
        on_inputs(definition, "experts by the token's place", by_place),
        on_outputs(definition, "experts by the logits", by_logits),
    )


def _one_more(outputs: Outputs, inputs: Inputs) -> Outputs:
    return outputs[0], outputs[1] + 1


def _reversed(outputs: Outputs, inputs: Inputs) -> Outputs:
    weights, experts = outputs
    if weights.shape[1] == 1:
        return torch.ones_like(weights), experts
    return weights.flip(1), experts


def _by_number(outputs: Outputs, inputs: Inputs) -> Outputs:
    weights, experts = outputs
    if weights.shape[1] == 1:
        return weights, torch.zeros_like(experts)
    return weights, experts.sort(dim=1).values


def _rounded(outputs: Outputs, inputs: Inputs) -> Outputs:
    return outputs[0].bfloat16().float(), outputs[1]


def _weighing(definition: Definition, name: str, scores: Scores) -> DomainMutant:
    """Return the mutant that weighs what was chosen by other scores, or by no sum.

    Where the scores are the kind's own, it leaves out the division by the sum, or
    divides where the kind doesn't.
    """
    is_of_kind = name == f"weighs by {definition.constants['scoring_func']}"
    inputs_of = definition.interface.inputs
    plain = (
        definition.constants["scoring_func"] == "sigmoid" and "bias" not in inputs_of
    )

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        chosen = scores(inputs["router_logits"].float()).gather(1, outputs[1].long())
        if is_of_kind == plain:
            chosen = chosen / chosen.sum(dim=1, keepdim=True)
        return chosen * inputs.get("routed_scaling_factor", 1.0), outputs[1]

    return on_outputs(definition, f"{name}, no sum" if is_of_kind else name, spoil)


def _bias_weighs(outputs: Outputs, inputs: Inputs) -> Outputs:
    weights, experts = outputs
    biased = weights + inputs["bias"][experts.long()]
    return biased / biased.sum(dim=1, keepdim=True) * inputs[
        "routed_scaling_factor"
    ], experts


def _grouped(
    definition: Definition,
    name: str,
    strength: Scores,
    kept: int,
    outside: float,
    interleaved: bool,
) -> DomainMutant:
    groups = definition.constants["n_group"]

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        scores = inputs["router_logits"].sigmoid()
        order = torch.arange(scores.shape[1]).view(groups, -1)
        if interleaved:
            order = order.flatten().view(-1, groups).T.contiguous()
        grouped = (scores + inputs["bias"])[:, order.flatten()].unflatten(
            1, (groups, -1)
        )
        best = strength(grouped).topk(kept, dim=1).indices
        allowed = torch.zeros(grouped.shape[:2]).scatter(1, best, 1.0).bool()
        left = grouped.masked_fill(~allowed[:, :, None], outside).flatten(1)
        experts = order.flatten()[left.topk(outputs[1].shape[1], dim=1).indices]
        weights = scores.gather(1, experts)
        weights = weights / (weights.sum(dim=1, keepdim=True) + 1e-20)
        factor = inputs["routed_scaling_factor"]
        return weights * factor, experts.to(outputs[1].dtype)

    return on_outputs(definition, name, spoil)


MUTANTS = (
    MutantGroup(mutants, "router_logits topk_weights topk_ids"),
    MutantGroup(rounded_inputs, "bias topk_weights"),
    MutantGroup(biased_mutants, "bias routed_scaling_factor topk_weights"),
    MutantGroup(grouped_mutants, "bias n_group topk_group topk_weights"),
    MutantGroup(table_mutants, "router_logits input_ids tid2eid topk_ids"),
)
