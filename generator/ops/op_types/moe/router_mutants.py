"""Domain mutants of routing.

Where other logits give the wrong selection or weight, the mutant passes those to run();
else it rescales the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    Outputs,
    Run,
    calling,
    changed,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.op_types.moe import routing as moe_routing
from generator.ops.op_types.moe.routing import DEEPSEEK, LLAMA4, RENORMALIZE, ROUTED
from kernel_judge.definition import Definition

# keeps scores away from 0 and 1
_LEAST = 1e-4
_ALWAYS, _NEVER = 30.0, -30.0


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the definition's routing method."""
    method = moe_routing.routing_of(definition)
    of_method = {
        DEEPSEEK: _of_deepseek,
        RENORMALIZE: _of_softmax,
        LLAMA4: _of_llama,
        ROUTED: _of_packed,
    }[method]
    name = "topk_ids" if method == ROUTED else "routing_logits"
    next_row = on_inputs(
        definition, "routing of the next token", lambda i: {name: shifted(i[name], 0)}
    )
    weights = _packed_of_next if method == ROUTED else partial(_of_next, definition)
    next_weights = on_inputs(definition, "weights of the next token", weights)
    of_shards = _of_shards(definition, method)
    return (next_row, next_weights, *of_method(definition), *of_shards)


def _of_shards(definition: Definition, method: str) -> list[DomainMutant]:
    """Return the mutants of experts on other devices; none where all are here."""
    experts, local = moe_routing.experts_of(definition)
    if experts == local:
        return []
    changes: dict[str, Change] = {
        "local expert offset ignored": lambda i: {"local_expert_offset": 0}
    }
    if method == RENORMALIZE:
        changes["choice among local experts alone"] = lambda i: _here_alone(i, local)
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    defects.append(
        on_outputs(
            definition,
            "weights normalised over local experts",
            lambda o, i: _weighed(o, 1.0 / _share_here(definition, i)),
        )
    )
    return defects


def _here_alone(inputs: Inputs, local: int) -> dict[str, Any]:
    """Return logits that no expert on another device is chosen by."""
    offset, logits = inputs["local_expert_offset"], inputs["routing_logits"]
    alone = torch.full_like(logits, _NEVER)
    here = slice(offset, offset + local)
    alone[:, here] = logits[:, here]
    return {"routing_logits": alone}


def _packed_of_next(inputs: Inputs) -> dict[str, Any]:
    experts, weights = moe_routing.unpack(inputs["topk_ids"])
    return {"topk_ids": moe_routing.pack(experts, shifted(weights, 0))}


def _of_next(definition: Definition, inputs: Inputs) -> dict[str, Any]:
    """Return logits with the same selection and the weights of the previous token.

    The best expert gets the weight of the previous token's best, and so on.
    """
    rows = [list(choice) for choice in moe_routing.choices(definition, inputs)]
    before = inputs["routing_logits"]
    logits = torch.full_like(before, _NEVER)
    for row, chosen in enumerate(rows):
        logits[row, chosen] = before[row - 1, rows[row - 1]]
    bias = {n: torch.zeros_like(inputs[n]) for n in ("routing_bias",) if n in inputs}
    return {"routing_logits": logits, **bias}


def _of_deepseek(definition: Definition) -> list[DomainMutant]:
    changes: dict[str, Change] = {
        # half of the sum, which may exceed 1; normalisation cancels the factor
        "bias kept in the weights": partial(_biased, 0.5),
        "bias ignored": lambda i: {"routing_bias": torch.zeros_like(i["routing_bias"])},
        "bias subtracted": lambda i: {"routing_bias": -i["routing_bias"]},
        "softmax for sigmoid": lambda i: _logits(
            i, torch.logit(torch.softmax(_wide(i), dim=1), _LEAST)
        ),
        "scaling factor missing": lambda i: {"routed_scaling_factor": 1.0},
        "scaling factor of the model, not the given one": lambda i: {
            "routed_scaling_factor": 2.5
        },
    }
    if definition.constants["n_group"] > 1:
        changes["groups by their best instead of their best two"] = lambda i: _grouped(
            definition, i, lambda groups: groups.amax(dim=2)
        )
        changes["groups by their sum"] = lambda i: _grouped(
            definition, i, lambda groups: groups.sum(dim=2)
        )
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    defects.append(
        on_outputs(
            definition,
            "weights not renormalised",
            lambda o, i: _weighed(o, _scores(definition, i)),
        )
    )
    return defects


def _of_softmax(definition: Definition) -> list[DomainMutant]:
    changes: dict[str, Change] = {
        "sigmoid for softmax": lambda i: _logits(
            i, torch.nn.functional.logsigmoid(_wide(i))
        ),
        "even weights": lambda i: _logits(i, _wide(i) / 16.0),
    }

    def share(inputs: Inputs) -> torch.Tensor:
        chosen = moe_routing.choices(definition, inputs)
        whole = torch.softmax(_wide(inputs), dim=1)
        sums = [float(row[list(c)].sum()) for row, c in zip(whole, chosen, strict=True)]
        return torch.tensor(sums, dtype=torch.float64)

    return [
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            "weights not renormalised",
            lambda o, i: _weighed(o, share(i)),
        ),
    ]


def _of_llama(definition: Definition) -> list[DomainMutant]:
    def alone(inputs: Inputs) -> tuple[dict[str, Any], torch.Tensor]:
        """Return inputs with the same selection and scores of 1, and the true scores."""
        rows = moe_routing.choices(definition, inputs)
        logits = torch.full_like(inputs["routing_logits"], _NEVER)
        scores = torch.zeros(len(rows), dtype=torch.float64)
        for row, choice in enumerate(rows):
            ((expert, score),) = choice.items()
            logits[row, expert], scores[row] = _ALWAYS, score
        return {**inputs, "routing_logits": logits}, scores

    def behind(run: Run, inputs: dict[str, Any]) -> Any:
        lone, scores = alone(inputs)
        return changed(run(*lone.values()), lambda o: _weighed(o, scores))

    def missing(run: Run, inputs: dict[str, Any]) -> Any:
        return run(*alone(inputs)[0].values())

    def by_bias(inputs: Inputs) -> dict[str, Any]:
        """Return logits that are low but for the expert that the bias would choose."""
        before = inputs["routing_logits"]
        scores = before.double().sigmoid() + inputs["routing_bias"].double()
        chosen = scores.argmax(dim=1, keepdim=True)
        alone = torch.full_like(before, _NEVER)
        return {"routing_logits": alone.scatter(1, chosen, before.gather(1, chosen))}

    return [
        on_inputs(definition, "bias used", by_bias),
        on_inputs(definition, "bias used and kept in the score", partial(_biased, 1.0)),
        calling(definition, "score scales the output", behind),
        calling(definition, "score missing", missing),
    ]


def _of_packed(definition: Definition) -> list[DomainMutant]:
    def packed(
        change: Callable[
            [torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]
        ],
    ) -> Change:
        return lambda i: {
            "topk_ids": moe_routing.pack(*change(*moe_routing.unpack(i["topk_ids"])))
        }

    experts = moe_routing.experts_of(definition)[0]
    top_k = definition.constants["top_k"]
    changes: dict[str, Change] = {
        "weights missing": packed(lambda e, w: (e, torch.ones_like(w))),
        "weights read as float16": packed(
            lambda e, w: (e, w.bfloat16().view(torch.float16).float())
        ),
        "last bit of each weight lost": lambda i: {"topk_ids": i["topk_ids"] & ~1},
        "the next expert": packed(lambda e, w: ((e + 1) % experts, w)),
        "last expert of each token left out": packed(_without_last),
    }
    if top_k > 1:
        changes["weights of the next slot"] = packed(lambda e, w: (e, shifted(w, 1)))
        changes["weights renormalised"] = packed(
            lambda e, w: (e, w / w.sum(dim=1, keepdim=True))
        )
    return [on_inputs(definition, name, change) for name, change in changes.items()]


def _without_last(
    experts: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    weights = weights.clone()
    weights[:, -1] = 0.0
    return experts, weights


def _wide(inputs: Inputs) -> torch.Tensor:
    logits: torch.Tensor = inputs["routing_logits"].double()
    return logits


def _logits(inputs: Inputs, logits: torch.Tensor) -> dict[str, Any]:
    return {"routing_logits": logits.to(inputs["routing_logits"].dtype)}


def _biased(scale: float, inputs: Inputs) -> dict[str, Any]:
    """Return a bias of 0, and logits with sigmoids of `scale` · biased scores."""
    scores = _wide(inputs).sigmoid() + inputs["routing_bias"].double()
    bias = torch.zeros_like(inputs["routing_bias"])
    logits = torch.logit(scale * scores, _LEAST)
    return {**_logits(inputs, logits), "routing_bias": bias}


def _grouped(
    definition: Definition,
    inputs: Inputs,
    strength: Callable[[torch.Tensor], torch.Tensor],
) -> dict[str, Any]:
    """Return logits that restrict the selection to groups ranked by `strength`.

    `strength` maps biased scores [tokens, n_group, group size] to [tokens, n_group].
    """
    constants = definition.constants
    logits = _wide(inputs)
    scores = logits.sigmoid() + inputs["routing_bias"].double()
    groups = scores.unflatten(1, (constants["n_group"], -1))
    best = strength(groups).topk(constants["topk_group"], dim=1).indices
    allowed = torch.zeros(groups.shape[:2], dtype=torch.bool).scatter_(1, best, True)
    size = groups.shape[2]
    allowed = allowed.repeat_interleave(size, dim=1)
    return _logits(inputs, logits.where(allowed, _NEVER))


def _scores(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Return the sum of each token's selected unbiased scores: float64 [tokens]."""
    rows = _wide(inputs).sigmoid()
    chosen = moe_routing.choices(definition, inputs)
    sums = [float(row[list(c)].sum()) for row, c in zip(rows, chosen, strict=True)]
    return torch.tensor(sums, dtype=torch.float64)


def _share_here(definition: Definition, inputs: Inputs) -> torch.Tensor:
    """Return the local share of each token's weights, 1 for none: float64 [tokens]."""
    count = moe_routing.experts_of(definition)[1]
    offset, factor = inputs["local_expert_offset"], inputs.get("routed_scaling_factor")
    sums = [
        sum(w for e, w in choice.items() if offset <= e < offset + count)
        / (factor or 1)
        for choice in moe_routing.choices(definition, inputs)
    ]
    return torch.tensor([s or 1.0 for s in sums], dtype=torch.float64)


def _weighed(outputs: Outputs, factors: torch.Tensor) -> Outputs:
    """Return each token's output times its factor; factors float64 [tokens]."""
    (output,) = outputs
    return ((output.double() * factors[:, None]).to(output.dtype),)
