"""The defects of adapters: another adapter, none, factors, the base's rows."""

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
    zeroed,
)
from kernel_judge.definition import Definition


def of_slots(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which adapter a token has."""

    def modulo(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"slots": inputs["slots"] % len(inputs["weights"])}

    def first_segment(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"slots": inputs["slots"][:1].expand_as(inputs["slots"]).contiguous()}

    changes: dict[str, Change] = {
        "adapter 0 for tokens without": lambda i: {"slots": i["slots"].clamp_min(0)},
        "slots taken modulo the adapters": modulo,
        "adapter 0 taken as none": lambda i: {
            "slots": torch.where(i["slots"] == 0, -1, i["slots"])
        },
        "last adapter left out": lambda i: {
            "slots": torch.where(i["slots"] == len(i["weights"]) - 1, -1, i["slots"])
        },
        "adapter of the token before": lambda i: {"slots": i["slots"].roll(1)},
        "first token's adapter for all": first_segment,
        "next adapter": lambda i: {"weights": i["weights"].roll(1, 0)},
        "last feature of the rank missing": lambda i: {
            "x" if "base" in i else "weights": zeroed(
                i["x" if "base" in i else "weights"], 1, -1
            )
        },
        "last term missing": lambda i: {"x": zeroed(i["x"], 1, -1)},
        "rows of the token before": lambda i: {"x": i["x"].roll(1, 0)},
        "columns of the weights shifted": lambda i: {
            "weights": i["weights"].roll(1, 2)
        },
        "rows of the weights shifted": lambda i: {"weights": i["weights"].roll(1, 1)},
        "weights rounded to e4m3": lambda i: {
            "weights": i["weights"].to(torch.float8_e4m3fn).to(torch.bfloat16)
        },
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_base(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of factors and of what an adapter adds to."""

    def alone(outputs: Outputs, inputs: Inputs) -> Outputs:
        return ((outputs[0].float() - inputs["base"].float()).to(outputs[0].dtype),)

    changes: dict[str, Change] = {
        "base doubled": lambda i: {"base": 2.0 * i["base"]},
        "base of the token before": lambda i: {"base": i["base"].roll(1, 0)},
        "factors missing": lambda i: {"scalings": torch.ones_like(i["scalings"])},
        "factors inverted": lambda i: {"scalings": 1.0 / i["scalings"]},
        "factors squared": lambda i: {"scalings": i["scalings"].square()},
        "factor of the next adapter": lambda i: {"scalings": i["scalings"].roll(-1)},
        "first adapter's factor": lambda i: {
            "scalings": i["scalings"][:1].expand_as(i["scalings"]).contiguous()
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "base not added", alone),
    )


MUTANTS = (
    MutantGroup(of_slots, "x weights slots"),
    MutantGroup(of_base, "scalings base"),
)
