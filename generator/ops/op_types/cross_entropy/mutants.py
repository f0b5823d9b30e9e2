"""The defects of losses: labels, what is ignored, the logarithm, precision, z-loss."""

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
from kernel_judge.definition import Definition


def of_labels(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which token a label is, and of which row."""
    size = definition.axes["vocab_size"]

    def moved(by: int) -> Change:
        def change(inputs: Inputs) -> dict[str, torch.Tensor]:
            labels = inputs["labels"]
            return {"labels": torch.where(labels < 0, labels, (labels + by) % size)}

        return change

    changes: dict[str, Change] = {
        "label one further": moved(1),
        "label one before": moved(-1),
        "label of the token before": lambda i: {"labels": i["labels"].roll(1)},
        "ignored label taken as token 0": lambda i: {
            "labels": i["labels"].clamp_min(0)
        },
        "token 0 ignored": lambda i: {
            "labels": i["labels"].masked_fill(i["labels"] == 0, -100)
        },
        "last token ignored": lambda i: {
            "labels": i["labels"].masked_fill(i["labels"] == size - 1, -100)
        },
        "all labels ignored": lambda i: {"labels": torch.full_like(i["labels"], -100)},
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_saved(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of what a backward pass takes of the forward one."""
    changes: dict[str, Change] = {
        "gradient of the losses missing": lambda i: {
            "grad_losses": torch.ones_like(i["grad_losses"])
        },
        "gradient of the token before": lambda i: {
            "grad_losses": i["grad_losses"].roll(1)
        },
        "log-sum-exp in base 2": lambda i: {"lse": i["lse"] * math.log(2.0)},
        "log-sum-exp of the token before": lambda i: {"lse": i["lse"].roll(1)},
        "log-sum-exp rounded to bfloat16": lambda i: {
            "lse": i["lse"].bfloat16().float()
        },
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_losses(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of losses and of the log-sum-exp."""

    def in_base_2(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 1, outputs[1] / math.log(2.0))

    def loss_in_base_2(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 0, outputs[0] / math.log(2.0))

    def mean(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 0, outputs[0] / max(len(outputs[0]), 2))

    def smoothed(outputs: Outputs, inputs: Inputs) -> Outputs:
        rows = inputs["logits"].float()
        even = outputs[1] - rows.masked_fill(rows.isinf(), 0.0).mean(dim=1)
        asked = outputs[0] != 0.0
        loss = torch.where(asked, 0.9 * outputs[0] + 0.1 * even, outputs[0])
        return with_output(outputs, 0, loss)

    def unshifted(outputs: Outputs, inputs: Inputs) -> Outputs:
        lse = inputs["logits"].float().exp().sum(dim=1).log()
        return with_output(outputs, 1, lse)

    def rounded(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(value.bfloat16().float() for value in outputs)

    def one_ignored(outputs: Outputs, inputs: Inputs) -> Outputs:
        ignored = inputs["labels"] < 0
        return with_output(outputs, 1, outputs[1].masked_fill(ignored, 0.0))

    changes = {
        "log-sum-exp in base 2": in_base_2,
        "loss in base 2": loss_in_base_2,
        "divided by the tokens": mean,
        "labels smoothed by 0.1": smoothed,
        "largest logit not subtracted": unshifted,
        "rounded to bfloat16": rounded,
        "log-sum-exp of ignored tokens 0": one_ignored,
    }
    return tuple(on_outputs(definition, *item) for item in changes.items())


def of_gradients(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gradient of the logits."""

    def softmax_alone(outputs: Outputs, inputs: Inputs) -> Outputs:
        rows = inputs["logits"].float().softmax(dim=1) * inputs["grad_losses"][:, None]
        asked = inputs["labels"][:, None] >= 0
        return (torch.where(asked, rows, 0.0).to(outputs[0].dtype),)

    def label_alone(outputs: Outputs, inputs: Inputs) -> Outputs:
        labelled = inputs["labels"].clamp_min(0).unsqueeze(1)
        only = torch.zeros_like(outputs[0]).scatter(
            1, labelled, outputs[0].gather(1, labelled)
        )
        return (only,)

    def mean(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0] / max(len(outputs[0]), 2),)

    return (
        on_outputs(definition, "one of the label not taken away", softmax_alone),
        on_outputs(definition, "label alone", label_alone),
        on_outputs(definition, "divided by the tokens", mean),
        *of_saved(definition),
    )


def of_z_loss(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the loss that keeps the log-sum-exp near 0."""
    z_loss = definition.constants["z_loss"]

    def times(factor: float, power: int) -> DomainMutant:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            asked = inputs["labels"] >= 0
            added = z_loss * (factor * outputs[1] ** power - outputs[1] ** 2)
            return with_output(outputs, 0, outputs[0] + torch.where(asked, added, 0.0))

        return on_outputs(definition, f"z-loss times {factor}, power {power}", spoil)

    def of_ignored(outputs: Outputs, inputs: Inputs) -> Outputs:
        added = torch.where(inputs["labels"] < 0, z_loss * outputs[1] ** 2, 0.0)
        return with_output(outputs, 0, outputs[0] + added)

    return (
        times(0.0, 2),
        times(2.0, 2),
        times(1.0, 1),
        on_outputs(definition, "z-loss of ignored tokens", of_ignored),
    )


MUTANTS = (
    MutantGroup(of_labels, "labels vocab_size"),
    MutantGroup(of_losses, "logits labels losses lse"),
    MutantGroup(of_gradients, "grad_losses logits labels lse grad_logits"),
    MutantGroup(of_z_loss, "labels losses lse z_loss"),
)
