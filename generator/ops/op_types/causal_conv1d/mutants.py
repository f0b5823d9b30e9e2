"""The defects of causal convolutions: taps, states, slots, the activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

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
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a prefill as well as of a step."""
    changes: dict[str, Change] = {
        "taps reversed": lambda i: {"weight": i["weight"].flip(1)},
        "taps of the next channel": lambda i: {"weight": shifted(i["weight"], 0)},
        "state ignored": lambda i: {"conv_states": torch.zeros_like(i["conv_states"])},
        "state read newest first": lambda i: {"conv_states": i["conv_states"].flip(2)},
        "slot of the row's number": lambda i: {
            "cache_indices": torch.where(
                i["cache_indices"] < 0,
                i["cache_indices"],
                torch.arange(len(i["cache_indices"]), dtype=torch.int32),
            )
        },
    }
    if "bias" in definition.interface.inputs:
        changes["bias missing"] = lambda i: {"bias": torch.zeros_like(i["bias"])}
        changes["bias of the next channel"] = lambda i: {"bias": i["bias"].roll(1)}
        changes["bias subtracted"] = lambda i: {"bias": -i["bias"]}
    spoilt: dict[str, Callable[[Outputs, Inputs], Outputs]] = {
        **_of_activation(definition),
        "states not written": lambda o, i: (o[0], i["conv_states"].clone()),
        "states written newest first": lambda o, i: (o[0], _written(o, i, _flipped)),
        "states shifted by one": lambda o, i: (o[0], _written(o, i, _shifted)),
        "states hold outputs": _of_outputs,
        "slots not of the batch zero": _others_zero,
    }
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    defects += [on_outputs(definition, name, change) for name, change in spoilt.items()]
    return tuple(defects)


def _of_activation(
    definition: Definition,
) -> dict[str, Callable[[Outputs, Inputs], Outputs]]:
    """Return the defects of silu: one too many, or one too few."""

    def silu(outputs: Outputs, inputs: Inputs) -> Outputs:
        value = torch.nn.functional.silu(outputs[0].float())
        return value.to(outputs[0].dtype), outputs[1]

    if {"is_linear", "is_gated"} & {*definition.constants}:
        return {"silu where there is none": silu}
    return {
        "silu missing": lambda o, i: (_before_silu(o[0]), o[1]),
        "silu twice": silu,
    }


def of_gates(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gates before and behind the convolution."""
    changes: dict[str, Change] = {
        "gates swapped": lambda i: {"b_gate": i["c_gate"], "c_gate": i["b_gate"]},
        "gate and input swapped behind": lambda i: {"x": i["c_gate"], "c_gate": i["x"]},
        "first gate missing": lambda i: {"b_gate": torch.ones_like(i["b_gate"])},
        "second gate missing": lambda i: {"c_gate": torch.ones_like(i["c_gate"])},
        "first gate of the next channel": lambda i: {"b_gate": shifted(i["b_gate"], 1)},
        "second gate of the next channel": lambda i: {
            "c_gate": shifted(i["c_gate"], 1)
        },
        "second gate by a sigmoid": lambda i: {
            "c_gate": i["c_gate"].float().sigmoid().to(i["c_gate"].dtype)
        },
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_prefills(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of several sequences in one call."""
    changes: dict[str, Change] = {
        "every sequence goes on": lambda i: {
            "has_initial_state": torch.ones_like(i["has_initial_state"])
        },
        "no sequence goes on": lambda i: {
            "has_initial_state": torch.zeros_like(i["has_initial_state"])
        },
        "sequences that go on exchanged with new ones": lambda i: {
            "has_initial_state": ~i["has_initial_state"]
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        calling(definition, "sequences run together", _together),
    )


def of_steps(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of padding."""

    def written(outputs: Outputs, inputs: Inputs) -> Outputs:
        pool = outputs[1].clone()
        if bool((inputs["cache_indices"] < 0).any()):
            pool[-1] += 1.0
        return outputs[0], pool

    def read(outputs: Outputs, inputs: Inputs) -> Outputs:
        padded = inputs["cache_indices"] < 0
        return torch.where(padded[:, None], inputs["x"], outputs[0]), outputs[1]

    return (
        on_inputs(
            definition,
            "slot -1 taken as the last",
            lambda i: {"cache_indices": i["cache_indices"] % len(i["conv_states"])},
        ),
        on_outputs(definition, "slot -1 written", written),
        on_outputs(definition, "output of a padded row not zero", read),
    )


def _before_silu(output: torch.Tensor) -> torch.Tensor:
    """Return about what silu was applied to, by steps of Newton from above its minimum."""
    wanted: torch.Tensor = output.double()
    x: torch.Tensor = wanted.abs() + 1.0
    for _ in range(30):
        share = x.sigmoid()
        slope = share * (1.0 + x * (1.0 - share))
        x = x - (x * share - wanted) / slope.clamp_min(0.1)
    return x.to(output.dtype)


def _slots(inputs: Inputs) -> torch.Tensor:
    slots: torch.Tensor = inputs["cache_indices"].long()
    return slots[slots >= 0]


def _written(
    outputs: Outputs, inputs: Inputs, change: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return the pool with the states of this call changed."""
    pool: torch.Tensor = outputs[1].clone()
    slots = _slots(inputs)
    pool[slots] = change(pool[slots])
    return pool


def _flipped(states: torch.Tensor) -> torch.Tensor:
    return states.flip(2)


def _shifted(states: torch.Tensor) -> torch.Tensor:
    return states.roll(1, 2)


def _of_outputs(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Put the last output in place of the last input."""
    output, pool = outputs[0], outputs[1].clone()
    slots = inputs["cache_indices"].long()
    if "cu_seqlens" in inputs:
        last = output[inputs["cu_seqlens"][1:].long() - 1]
    else:
        last = output
    pool[slots[slots >= 0], :, -1] = last[slots >= 0]
    return output, pool


def _others_zero(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Return a pool that is zero outside of the batch's slots."""
    output, pool = outputs
    emptied = torch.zeros_like(pool)
    emptied[_slots(inputs)] = pool[_slots(inputs)]
    return output, emptied


def _together(run: Run, inputs: dict[str, Any]) -> Any:
    """Let each sequence see the last inputs of the one before it."""
    states, ends = inputs["conv_states"].clone(), inputs["cu_seqlens"].tolist()
    length, seen = states.shape[2], inputs["x"]
    if "b_gate" in inputs:
        seen = inputs["b_gate"] * seen
    for place, slot in enumerate(inputs["cache_indices"].tolist()):
        if ends[place] >= length:
            states[slot] = seen[ends[place] - length : ends[place]].T
    goes_on = inputs["has_initial_state"].clone()
    goes_on[1:] = True
    changes = {"conv_states": states, "has_initial_state": goes_on}
    output, pool = as_tuple(run(*{**inputs, **changes}.values()))
    return output, pool


MUTANTS = (
    MutantGroup(mutants, "x conv_states weight cache_indices output new_conv_states"),
    MutantGroup(of_gates, "b_gate c_gate x"),
    MutantGroup(of_prefills, "x conv_states cu_seqlens has_initial_state"),
    MutantGroup(of_steps, "x conv_states cache_indices batch_size"),
)
