"""The defects of Mamba prefills: steps, decays, groups, and states of sequences."""

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
from generator.ops.sequence_mutants import leaking, one_sequence
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
        "dt_bias of the next head": lambda i: {"dt_bias": shifted(i["dt_bias"], 0)},
        "D missing": lambda i: {"D": torch.zeros_like(i["D"])},
        "D of the next head": lambda i: {"D": shifted(i["D"], 0)},
        "decay missing": lambda i: {"A": torch.zeros_like(i["A"])},
        "exponential of A": lambda i: {"A": -torch.exp(i["A"])},
        "A of the next head": lambda i: {"A": shifted(i["A"], 0)},
        "B and C swapped": lambda i: {"B": i["C"], "C": i["B"]},
        "B taken for C": lambda i: {"C": i["B"]},
        "state ignored": lambda i: {"state": torch.zeros_like(i["state"])},
        "state of the next sequence": lambda i: {"state": shifted(i["state"], 0)},
        "one sequence": one_sequence,
    }
    if definition.axes["ngroups"] > 1:
        changes["B of the next group"] = lambda i: {"B": shifted(i["B"], 1)}
        changes["C of the next group"] = lambda i: {"C": shifted(i["C"], 1)}
    spoilt: dict[str, Callable[[Outputs, Inputs], Outputs]] = {
        "state not updated": lambda o, i: (o[0], i["state"].clone()),
        "state of the last sequence alone": lambda o, i: (
            o[0],
            o[1][-1:].expand_as(o[1]).clone(),
        ),
        "x of the last token read before its step": _unweighted,
    }
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    defects += [on_outputs(definition, name, change) for name, change in spoilt.items()]
    defects.append(calling(definition, "state leaks into the next sequence", leaking))
    defects.append(calling(definition, "K/V state transposed", other_layout))
    if 1 < definition.axes["ngroups"] < definition.axes["nheads"]:
        defects.append(interleaved_groups(definition))
    return tuple(defects)


def _unweighted(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Add each sequence's last x·B to its state without the step."""
    last = inputs["cu_seqlens"][1:].long() - 1
    ratio = inputs["x"].shape[1] // inputs["B"].shape[1]
    b = inputs["B"][last].float().repeat_interleave(ratio, dim=1)
    steps = torch.nn.functional.softplus(inputs["dt"][last] + inputs["dt_bias"])
    x = (1.0 - steps[..., None]) * inputs["x"][last].float()
    return outputs[0], outputs[1] + x[..., None] * b[:, :, None]


MUTANTS = (
    MutantGroup(mutants, "x dt A B C D dt_bias state cu_seqlens nheads ngroups"),
    MutantGroup(rounded_inputs, "x dt A state cu_seqlens"),
)
