"""The defects of 4-bit weights: nibbles, signs, groups, scales."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    on_inputs,
    on_outputs,
    shifted,
    zeroed,
)
from kernel_judge.definition import Definition


def _bytes(inputs: Inputs) -> torch.Tensor:
    codes: torch.Tensor = inputs["qweight"].view(torch.uint8)
    return codes


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a product of float8 and int4."""

    def swapped(inputs: Inputs) -> dict[str, torch.Tensor]:
        codes = _bytes(inputs)
        return {"qweight": ((codes << 4) | (codes >> 4)).view(torch.int8)}

    def halves(inputs: Inputs) -> dict[str, torch.Tensor]:
        # all lower bits first, then all upper ones
        codes = _bytes(inputs)
        each = torch.cat((codes & 15, codes >> 4), dim=1)
        packed = each[:, 0::2] | (each[:, 1::2] << 4)
        return {"qweight": packed.contiguous().view(torch.int8)}

    def offset(inputs: Inputs) -> dict[str, torch.Tensor]:
        # codes less 8, as of weights with a zero point of 8
        return {"qweight": (_bytes(inputs) ^ 0x88).view(torch.int8)}

    def without_lowest(inputs: Inputs) -> dict[str, torch.Tensor]:
        codes = _bytes(inputs)
        low, high = codes & 15, codes >> 4
        low, high = (torch.where(x == 8, 9, x) for x in (low, high))
        return {"qweight": (low | (high << 4)).to(torch.uint8).view(torch.int8)}

    changes: dict[str, Change] = {
        "nibbles swapped": swapped,
        "lower bits of all terms first": halves,
        "codes with a zero point of 8": offset,
        "lowest code taken as -7": without_lowest,
        "signs of weights lost": lambda i: {
            "qweight": (_bytes(i) & 0x77).view(torch.int8)
        },
        "weights of the output before": lambda i: {"qweight": shifted(i["qweight"], 0)},
        "scales of the group before": lambda i: {"w_scale": i["w_scale"].roll(1, 1)},
        "scales of the output before": lambda i: {"w_scale": i["w_scale"].roll(1, 0)},
        "first group's scale for all": lambda i: {
            "w_scale": i["w_scale"][:, :1].expand_as(i["w_scale"]).contiguous()
        },
        "groups' scales rounded to e4m3": lambda i: {
            "w_scale": (i["w_scale"] * 2.0**8)
            .to(torch.float8_e4m3fn)
            .to(i["w_scale"].dtype)
            / 2.0**8
        },
        "activations' scale missing": lambda i: {"a_scale": 1.0},
        "activations' scale inverted": lambda i: {"a_scale": 1.0 / i["a_scale"]},
        "last group missing": lambda i: {"w_scale": zeroed(i["w_scale"], 1, -1)},
        "last term missing": lambda i: {"a": zeroed(i["a"], 1, -1)},
        "activations of the row before": lambda i: {"a": shifted(i["a"], 0)},
        "activations limited to 240": lambda i: {
            "a": i["a"].float().clamp(-240.0, 240.0).to(i["a"].dtype)
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            "output rounded to e5m2",
            lambda o, _: (o[0].to(torch.float8_e5m2).to(o[0].dtype),),
        ),
    )


MUTANTS = (MutantGroup(mutants, "a qweight w_scale a_scale"),)
