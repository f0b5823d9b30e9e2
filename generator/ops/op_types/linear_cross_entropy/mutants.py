"""The defects of losses of a product: labels, what is ignored, logits, sums, z-loss."""

from __future__ import annotations

import math

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
    with_output,
)
from generator.ops.op_types.cross_entropy.mutants import of_labels, of_saved
from kernel_judge.definition import Definition


def of_inputs(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of labels, rows and weights."""
    changes: dict[str, Change] = {
        "last column missing": lambda i: {
            "weight": i["weight"].index_fill(
                1, torch.tensor([-1], device=i["weight"].device), 0.0
            )
        },
        "weight rounded to float8": lambda i: {
            "weight": i["weight"].to(torch.float8_e4m3fn).to(i["weight"].dtype)
        },
        "weight of the next token": lambda i: {"weight": i["weight"].roll(-1, 0)},
        "hidden states of the token before": lambda i: {
            "hidden_states": i["hidden_states"].roll(1, 0)
        },
        "hidden states doubled": lambda i: {"hidden_states": 2.0 * i["hidden_states"]},
    }
    others = (on_inputs(definition, *item) for item in changes.items())
    return (*of_labels(definition), *others)


def of_losses(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of losses and of the log-sum-exp."""

    def in_base_2(place: int) -> DomainMutant:
        name = ("loss", "log-sum-exp")[place]
        return on_outputs(
            definition,
            f"{name} in base 2",
            lambda o, _: with_output(o, place, o[place] / math.log(2.0)),
        )

    def mean(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 0, outputs[0] / max(len(outputs[0]), 2))

    def in_bfloat16(outputs: Outputs, inputs: Inputs) -> Outputs:
        logits = (
            inputs["hidden_states"].float() @ inputs["weight"].float().T
        ).bfloat16()
        return with_output(outputs, 1, logits.float().logsumexp(dim=1))

    def unshifted(outputs: Outputs, inputs: Inputs) -> Outputs:
        logits = inputs["hidden_states"].float() @ inputs["weight"].float().T
        return with_output(outputs, 1, logits.exp().sum(dim=1).log())

    def last_block(outputs: Outputs, inputs: Inputs) -> Outputs:
        weight = inputs["weight"][: len(inputs["weight"]) // 64 * 64]
        logits = inputs["hidden_states"].float() @ weight.float().T
        return with_output(outputs, 1, logits.logsumexp(dim=1))

    def one_ignored(outputs: Outputs, inputs: Inputs) -> Outputs:
        ignored = inputs["labels"] < 0
        return with_output(outputs, 1, outputs[1].masked_fill(ignored, 0.0))

    changes = {
        "divided by the tokens": mean,
        "logits rounded to bfloat16": in_bfloat16,
        "largest logit not subtracted": unshifted,
        "whole blocks of the vocabulary alone": last_block,
        "log-sum-exp of ignored tokens 0": one_ignored,
    }
    every = tuple(on_outputs(definition, *item) for item in changes.items())
    # where the vocabulary is whole blocks that is no defect
    if definition.axes["vocab_size"] % 64 == 0:
        every = tuple(m for m in every if not m.name.startswith("whole blocks"))
    return (in_base_2(0), in_base_2(1), *every)


def of_gradients(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gradients."""

    def from_logits(outputs: Outputs, inputs: Inputs, grad: torch.Tensor) -> Outputs:
        x, weight = inputs["hidden_states"].float(), inputs["weight"].float()
        each = (grad @ weight, grad.T @ x)
        pairs = zip(each, outputs, strict=True)
        return tuple(value.to(output.dtype) for value, output in pairs)

    def softmax_alone(outputs: Outputs, inputs: Inputs) -> Outputs:
        logits = inputs["hidden_states"].float() @ inputs["weight"].float().T
        scales = inputs["grad_losses"].masked_fill(inputs["labels"] < 0, 0.0)
        return from_logits(outputs, inputs, logits.softmax(dim=1) * scales[:, None])

    def mean(outputs: Outputs, inputs: Inputs) -> Outputs:
        count = max(len(inputs["labels"]), 2)
        return tuple(value / count for value in outputs)

    return (
        on_outputs(definition, "one of the label not taken away", softmax_alone),
        on_outputs(definition, "divided by the tokens", mean),
        *of_saved(definition),
    )


MUTANTS = (
    MutantGroup(of_inputs, "hidden_states weight labels"),
    MutantGroup(of_losses, "hidden_states weight labels losses lse"),
    MutantGroup(of_gradients, "grad_losses lse grad_hidden_states grad_weight"),
)
