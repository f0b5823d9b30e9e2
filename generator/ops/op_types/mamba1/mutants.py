"""The defects of states of channels: decays, steps, gates, what is read."""

from __future__ import annotations

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
    zeroed,
)
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a step or a scan."""

    def ungated(outputs: Outputs, inputs: Inputs) -> Outputs:
        gate = torch.nn.functional.silu(inputs["z"].float())
        return with_output(outputs, 0, (outputs[0] / gate).to(outputs[0].dtype))

    def sigmoid_gate(outputs: Outputs, inputs: Inputs) -> Outputs:
        value = outputs[0].float() / inputs["z"].float()
        return with_output(outputs, 0, value.to(outputs[0].dtype))

    def short_state(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 1, outputs[1].bfloat16().float())

    def linear(inputs: Inputs) -> dict[str, torch.Tensor]:
        # softplus left out: raw steps, as the logarithm of exp(x) - 1 gives them back
        raw = (inputs["dt"].float() + inputs["dt_bias"]).clamp_min(1e-3)
        return {
            "dt": raw.expm1().log().to(torch.bfloat16),
            "dt_bias": torch.zeros_like(inputs["dt_bias"]),
        }

    changes: dict[str, Change] = {
        "bias of steps missing": lambda i: {"dt_bias": torch.zeros_like(i["dt_bias"])},
        "softplus missing": linear,
        "decay twice as fast": lambda i: {"A": 2.0 * i["A"]},
        "decay of the first state for all": lambda i: {
            "A": i["A"][:, :1].expand_as(i["A"]).contiguous()
        },
        "decay of the channel before": lambda i: {"A": i["A"].roll(1, 0)},
        "no decay": lambda i: {"A": torch.zeros_like(i["A"])},
        "B and C swapped": lambda i: {"B": i["C"], "C": i["B"]},
        "B of the state before": lambda i: {"B": i["B"].roll(1, -1)},
        "C of the sequence before": lambda i: {"C": i["C"].roll(1, 0)},
        "last state not read": lambda i: {"C": zeroed(i["C"], i["C"].dim() - 1, -1)},
        "D missing": lambda i: {"D": torch.zeros_like(i["D"])},
        "D doubled": lambda i: {"D": 2.0 * i["D"]},
        "D of the channel before": lambda i: {"D": i["D"].roll(1)},
        "gate of the channel before": lambda i: {"z": i["z"].roll(1, -1)},
        "gate negative": lambda i: {"z": -i["z"]},
        "x and gate swapped": lambda i: {"x": i["z"], "z": i["x"]},
        "steps of the channel before": lambda i: {"dt": i["dt"].roll(1, -1)},
    }
    if "state" in definition.interface.inputs:
        changes["states begin at 0"] = lambda i: {"state": torch.zeros_like(i["state"])}
        changes["state of the sequence before"] = lambda i: {
            "state": i["state"].roll(1, 0)
        }
        changes["states rounded to bfloat16"] = lambda i: {
            "state": i["state"].bfloat16().float()
        }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "gate missing", ungated),
        on_outputs(definition, "sigmoid for the gate", sigmoid_gate),
        on_outputs(definition, "new states rounded to bfloat16", short_state),
    )


MUTANTS = (MutantGroup(mutants, "x dt A B C D z dt_bias output new_state"),)
