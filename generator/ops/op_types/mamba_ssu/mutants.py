"""Domain mutants of Mamba's state update: steps, groups, slots, padding."""

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
    calling,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.state_space_mutants import (
    interleaved_groups,
    other_layout,
    without_softplus,
)
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that the numbers of heads and groups allow."""
    changes: dict[str, Change] = {
        "softplus missing": without_softplus,
        "dt_bias missing": lambda i: {"dt_bias": torch.zeros_like(i["dt_bias"])},
        "D missing": lambda i: {"D": torch.zeros_like(i["D"])},
        "D of the next head": lambda i: {"D": shifted(i["D"], 0)},
        "decay missing": lambda i: {"A": torch.zeros_like(i["A"])},
        "A of opposite sign": lambda i: {"A": -i["A"]},
        "A of the next head": lambda i: {"A": shifted(i["A"], 0)},
        "B and C swapped": lambda i: {"B": i["C"], "C": i["B"]},
        "B taken for C": lambda i: {"C": i["B"]},
        "C taken for B": lambda i: {"B": i["C"]},
        "state ignored": lambda i: {"state": torch.zeros_like(i["state"])},
        "slot of the row's number": lambda i: {
            "state_batch_indices": torch.where(
                i["state_batch_indices"] < 0,
                i["state_batch_indices"],
                torch.arange(len(i["x"]), dtype=torch.int32),
            )
        },
    }
    changes["slot -1 taken as the last"] = lambda i: {
        "state_batch_indices": i["state_batch_indices"] % len(i["state"])
    }
    if definition.axes["ngroups"] > 1:
        changes["B of the next group"] = lambda i: {"B": shifted(i["B"], 1)}
        changes["C of the next group"] = lambda i: {"C": shifted(i["C"], 1)}
    spoilt: dict[str, Callable[[Outputs, Inputs], Outputs]] = {
        "state not updated": lambda o, i: (o[0], i["state"].clone()),
        "output of the state before": lambda o, i: (_read(i, i["state"], o[0]), o[1]),
        "state decay after the update": _late_decay,
        "slot -1 written": _padding_written,
        "output of a padded row not zero": _padding_read,
        "slots not of the batch zero": _others_zero,
    }
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    defects += [on_outputs(definition, name, change) for name, change in spoilt.items()]
    defects.append(calling(definition, "K/V state transposed", other_layout))
    if 1 < definition.axes["ngroups"] < definition.axes["nheads"]:
        defects.append(interleaved_groups(definition))
    return tuple(defects)


def _raw_steps(inputs: Inputs) -> torch.Tensor:
    raw: torch.Tensor = inputs["dt"].double() + inputs["dt_bias"].double()
    return raw


def _rows(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows that are not padding, and their slots: int64 each."""
    slots = inputs["state_batch_indices"].long()
    rows = (slots >= 0).nonzero().flatten()
    return rows, slots[rows]


def _read(inputs: Inputs, pool: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """Return the outputs for a pool, C·state + D·x, zero for padding."""
    rows, slots = _rows(inputs)
    ratio = pool.shape[1] // inputs["C"].shape[1]
    wide = inputs["C"][rows].float().repeat_interleave(ratio, dim=1)
    read = torch.einsum("bhds,bhs->bhd", pool[slots].float(), wide)
    zeroed = torch.zeros_like(output)
    skipped = inputs["D"].float() * inputs["x"][rows].float()
    zeroed[rows] = (read + skipped).to(output.dtype)
    return zeroed


def _late_decay(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Apply the decay after the update, so also to the token's own part."""
    output, pool = outputs
    rows, slots = _rows(inputs)
    steps = torch.nn.functional.softplus(_raw_steps(inputs)[rows])
    decay = torch.exp(inputs["A"].double() * steps[..., None])
    old = inputs["state"][slots].double()
    added = pool[slots].double() - old * decay
    late = pool.clone()
    late[slots] = ((old + added) * decay).to(pool.dtype)
    return _read(inputs, late, output), late


def _padding_written(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Let padded rows write to slot -1, which is the last."""
    output, pool = outputs
    if bool((inputs["state_batch_indices"] < 0).any()):
        pool = pool.clone()
        pool[-1] += 1.0
    return output, pool


def _padding_read(outputs: Outputs, inputs: Inputs) -> Outputs:
    output, pool = outputs
    padded = inputs["state_batch_indices"] < 0
    output = torch.where(padded[:, None, None], inputs["x"], output)
    return output, pool


def _others_zero(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Return a pool that is zero outside of the batch's slots."""
    output, pool = outputs
    _, slots = _rows(inputs)
    emptied = torch.zeros_like(pool)
    emptied[slots] = pool[slots]
    return output, emptied


MUTANTS = (
    MutantGroup(
        mutants, "state x dt A B C D dt_bias state_batch_indices nheads ngroups"
    ),
    MutantGroup(rounded_inputs, "state x dt A"),
)
