"""The defects of Kimi delta attention: gates, lengths, states, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    Run,
    calling,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.sequence_mutants import ended_early, leaking, one_sequence
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple

# softplus of it is 0, in bfloat16 too; sigmoid of the opposite is 1
_LOW = -1e4
_EPS = 1e-6


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of both stages."""
    changes: dict[str, Change] = {
        "beta missing": lambda i: {"b": torch.full_like(i["b"], -_LOW)},
        "beta of opposite sign": lambda i: {"b": -i["b"]},
        "beta twice": _beta_twice,
        "decay missing": lambda i: {"a": torch.full_like(i["a"], _LOW)},
        "dt_bias missing": lambda i: {"dt_bias": torch.zeros_like(i["dt_bias"])},
        "dt_bias behind softplus": _late_bias,
        "dt_bias of the next head": lambda i: {"dt_bias": shifted(i["dt_bias"], 0)},
        "dt_bias of the next channel": lambda i: {"dt_bias": shifted(i["dt_bias"], 1)},
        "A_log of opposite sign": lambda i: {"A_log": -i["A_log"]},
        "A_log without exp": lambda i: {"A_log": i["A_log"].abs().log()},
        "A_log of the next head": lambda i: {"A_log": shifted(i["A_log"], 0)},
        "softplus missing": _without_softplus,
        "one gate for a head": lambda i: {
            "a": i["a"]
            .float()
            .mean(-1, keepdim=True)
            .expand_as(i["a"])
            .to(i["a"].dtype)
        },
        "gate of the next channel": lambda i: {
            "a": shifted(i["a"], 2),
            "dt_bias": shifted(i["dt_bias"], 1),
        },
        "q and k swapped": lambda i: {"q": i["k"], "k": i["q"]},
        "k and v swapped": lambda i: {"k": i["v"], "v": i["k"]},
        "k of the next head": lambda i: {"k": shifted(i["k"], 1)},
        "q of the next head": lambda i: {"q": shifted(i["q"], 1)},
        "state ignored": lambda i: {"state": torch.zeros_like(i["state"])},
        "state transposed as it is read": lambda i: {"state": _mT(i["state"])},
        "state of the next head": lambda i: {"state": shifted(i["state"], 1)},
        "state of the next sequence": lambda i: {"state": shifted(i["state"], 0)},
    }
    root = definition.axes["head_dim"] ** 0.5
    spoilt: dict[str, Callable[[Outputs, Inputs], Outputs]] = {
        "scale missing": lambda o, i: ((o[0].float() * root).to(o[0].dtype), o[1]),
        "queries not divided by their length": lambda o, i: (
            (o[0].float() * _lengths(i["q"])).to(o[0].dtype),
            o[1],
        ),
        "scale twice": lambda o, i: ((o[0].float() / root).to(o[0].dtype), o[1]),
        "state transposed as it is written": lambda o, i: (o[0], _mT(o[1])),
        "state not updated": lambda o, i: (o[0], i["state"].clone()),
    }
    calls: dict[str, Callable[[Run, dict[str, Any]], Any]] = {
        "K/V state transposed": _other_layout,
        "lengths without eps": _without_eps,
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(on_outputs(definition, name, change) for name, change in spoilt.items()),
        *(calling(definition, name, call) for name, call in calls.items()),
    )


def _lengths(x: torch.Tensor) -> torch.Tensor:
    return (x.float().square().sum(dim=-1, keepdim=True) + _EPS).sqrt()


def _mT(state: torch.Tensor) -> torch.Tensor:
    return state.mT.contiguous()


def _other_layout(run: Run, inputs: dict[str, Any]) -> Any:
    """Return the result of a reference whose states are [keys, values]."""
    output, state = as_tuple(run(*{**inputs, "state": _mT(inputs["state"])}.values()))
    return output, _mT(state)


def _beta_twice(inputs: Inputs) -> dict[str, Any]:
    share = inputs["b"].double().sigmoid().square()
    return {"b": share.logit().to(inputs["b"].dtype)}


def _before_softplus(inputs: Inputs, steps: torch.Tensor) -> dict[str, Any]:
    """Return inputs whose softplus is `steps`; its inverse is log(e^x - 1)."""
    x = steps.clamp_min(1e-6)
    before = torch.where(x > 30.0, x, torch.log(torch.expm1(x.clamp_max(30.0))))
    return {
        "a": before.to(inputs["a"].dtype),
        "dt_bias": torch.zeros_like(inputs["dt_bias"]),
    }


def _without_softplus(inputs: Inputs) -> dict[str, Any]:
    return _before_softplus(inputs, inputs["a"].double() + inputs["dt_bias"])


def _late_bias(inputs: Inputs) -> dict[str, Any]:
    steps = torch.nn.functional.softplus(inputs["a"].double())
    return _before_softplus(inputs, steps + inputs["dt_bias"])


def _without_eps(run: Run, inputs: dict[str, Any]) -> Any:
    """Lengthen vectors by so much that eps is nothing beside their squares."""
    longer = {name: (2.0**12 * inputs[name]) for name in ("q", "k")}
    return run(*{**inputs, **longer}.values())


def of_prefill(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of sequences that stand one after another."""

    def late_gates(inputs: Inputs) -> dict[str, Any]:
        a = shifted(inputs["a"], 0)
        a[inputs["cu_seqlens"][:-1].long().clamp_max(len(a) - 1)] = _LOW
        return {"a": a}

    changes: dict[str, Change] = {
        "one sequence": one_sequence,
        "last token of each sequence in the next one": ended_early,
        "gates one token late": late_gates,
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        calling(definition, "state carried into the next sequence", leaking),
    )


_GATED = "q k v a b A_log dt_bias state output new_state num_heads head_dim"
MUTANTS = (
    MutantGroup(mutants, _GATED),
    MutantGroup(of_prefill, f"{_GATED} cu_seqlens"),
    MutantGroup(rounded_inputs, _GATED),
)
