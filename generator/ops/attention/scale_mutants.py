"""Domain mutants of caches in 8 bits: their scales, and their format."""

from __future__ import annotations

import torch

from generator.ops.mutants import Change, DomainMutant, Inputs, on_inputs
from kernel_judge.definition import Definition


def scale_mutants(
    definition: Definition, first: str, second: str
) -> list[DomainMutant]:
    """Return the mutants of two caches whose scales are these inputs."""

    def to_the(name: str, power: int) -> Change:
        return lambda inputs: {name: inputs[name] ** power}

    caches = [name.replace("_scale", "_cache") for name in (first, second)]

    def as_e5m2(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {name: inputs[name].view(torch.float8_e5m2) for name in caches}

    changes: dict[str, Change] = {
        f"{name} {what}": to_the(name, power)
        for name in (first, second)
        for what, power in (("missing", 0), ("inverted", -1), ("applied twice", 2))
    }
    changes["scales swapped"] = lambda i: {first: i[second], second: i[first]}
    changes[f"{first} for both"] = lambda i: {second: i[first]}
    changes[f"{second} for both"] = lambda i: {first: i[second]}
    changes["caches read as e5m2"] = as_e5m2
    return [on_inputs(definition, name, change) for name, change in changes.items()]


def scale_mutants_of_heads(definition: Definition) -> list[DomainMutant]:
    """Return the mutants of queries, keys and values with a scale for each head."""

    def first(name: str) -> Change:
        return lambda inputs: {name: inputs[name][:1].expand_as(inputs[name])}

    def next_head(name: str) -> Change:
        return lambda inputs: {name: inputs[name].roll(1)}

    changes: dict[str, Change] = {}
    for name in ("q_scale", "k_scale", "v_scale"):
        changes[f"{name} of the first head"] = first(name)
        changes[f"{name} of the next head"] = next_head(name)
    changes["q_scale missing"] = lambda i: {"q_scale": torch.ones_like(i["q_scale"])}
    changes["q_scale inverted"] = lambda i: {"q_scale": 1.0 / i["q_scale"]}
    return [on_inputs(definition, name, change) for name, change in changes.items()]
