"""The defects of whole rows: settings, ties, sums, what is left out."""

from __future__ import annotations

from collections.abc import Callable

import torch

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

Setting = Callable[[torch.Tensor], torch.Tensor]


def softmax_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a softmax at a temperature."""
    changes: dict[str, Change] = {
        "temperature ignored": _set("temperature", torch.ones_like),
        "logits times temperature": _set("temperature", lambda t: 1.0 / t),
        "temperature of the first row": _set("temperature", _first),
        "temperature squared": _set("temperature", torch.square),
        "temperature's root": _set("temperature", torch.sqrt),
        "logits rounded to bfloat16": lambda i: {
            "logits": i["logits"].bfloat16().float()
        },
        "logits clamped at -10": lambda i: {"logits": i["logits"].clamp(min=-10.0)},
        "softmax over the batch": lambda i: {"logits": i["logits"].roll(1, 0) * 0.5},
    }

    def plain(outputs: Outputs, inputs: Inputs) -> Outputs:
        exponents = inputs["logits"] / inputs["temperature"][:, None]
        powers = exponents.exp()
        return (powers / powers.sum(dim=1, keepdim=True),)

    def logarithms(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0].log(),)

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "largest logit not subtracted", plain),
        on_outputs(definition, "logarithms returned", logarithms),
        on_outputs(definition, "rounded to bfloat16", _rounded),
    )


def top_k_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of k and of its ties."""
    settings: dict[str, Setting] = {
        "k one too many": lambda k: k + 1,
        "k one too few": lambda k: (k - 1).clamp_min(1),
        "k ignored": lambda k: torch.full_like(k, 2**30),
        "k of the first row": _first,
    }

    def ties_left_out(outputs: Outputs, inputs: Inputs) -> Outputs:
        rows, k = inputs.values()
        order = rows.argsort(dim=1, descending=True, stable=True)
        rank = order.argsort(dim=1)
        return (_left(outputs[0], rows, rank < k[:, None]),)

    return (
        *(
            on_inputs(definition, name, _set("top_k", change))
            for name, change in settings.items()
        ),
        on_outputs(definition, "ties left out", ties_left_out),
    )


def top_p_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of p and of the token that crosses it."""
    settings: dict[str, Setting] = {
        "p ignored": torch.ones_like,
        "p of the first row": _first,
        "1 - p for p": lambda p: (1.0 - p).clamp_min(1e-9),
        "p squared": torch.square,
        "p reached and not crossed": lambda p: torch.nextafter(
            p, torch.full_like(p, 2.0)
        ),
    }

    def uncrossed(outputs: Outputs, inputs: Inputs) -> Outputs:
        rows, p = inputs.values()
        falling, order = rows.sort(dim=1, descending=True)
        kept = falling.cumsum(dim=1) <= p[:, None]
        kept[:, 0] = True
        return (_left(outputs[0], rows, kept.gather(1, order.argsort(dim=1))),)

    return (
        *(
            on_inputs(definition, name, _set("top_p", change))
            for name, change in settings.items()
        ),
        on_outputs(definition, "crossing token left out", uncrossed),
    )


def renorm_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the sum that kept probabilities are divided by."""

    def undivided(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (torch.where(outputs[0] > 0, inputs["probs"], 0.0),)

    def by_softmax(outputs: Outputs, inputs: Inputs) -> Outputs:
        left = inputs["probs"].masked_fill(outputs[0] == 0, -torch.inf)
        return (left.softmax(dim=1),)

    def by_number(outputs: Outputs, inputs: Inputs) -> Outputs:
        kept = (outputs[0] > 0).float()
        return (kept / kept.sum(dim=1, keepdim=True),)

    return (
        on_outputs(definition, "not divided by the sum", undivided),
        on_outputs(definition, "softmax of what is kept", by_softmax),
        on_outputs(definition, "all that is kept alike", by_number),
        on_outputs(definition, "rounded to bfloat16", _rounded),
    )


def masked_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of what stands for logits that are left out."""

    def filled(value: float) -> Callable[[Outputs, Inputs], Outputs]:
        return lambda outputs, _: (outputs[0].clamp(min=value),)

    return (
        on_outputs(definition, "0 for what is left out", filled(0.0)),
        on_outputs(definition, "-1e4 for what is left out", filled(-1e4)),
        on_outputs(
            definition,
            "nothing left out",
            lambda _, inputs: (inputs["logits"].clone(),),
        ),
    )


def _set(name: str, change: Setting) -> Change:
    return lambda inputs: {name: change(inputs[name])}


def _first(values: torch.Tensor) -> torch.Tensor:
    return values[:1].expand_as(values).contiguous()


def _rounded(outputs: Outputs, inputs: Inputs) -> Outputs:
    return (outputs[0].bfloat16().float(),)


def _left(output: torch.Tensor, rows: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return the output that keeps these tokens: of logits or of probabilities."""
    if bool(output.isneginf().any()):
        return rows.masked_fill(~kept, -torch.inf)
    left = rows.masked_fill(~kept, 0.0)
    return left / left.sum(dim=1, keepdim=True)


MUTANTS = (
    MutantGroup(softmax_mutants, "logits temperature probs"),
    MutantGroup(top_k_mutants, "top_k"),
    MutantGroup(top_p_mutants, "probs top_p renorm_probs"),
    MutantGroup(renorm_mutants, "probs renorm_probs"),
    MutantGroup(rounded_inputs, "probs renorm_probs"),
    MutantGroup(masked_mutants, "logits masked_logits"),
)
