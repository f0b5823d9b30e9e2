"""The defects of masked attention: masks ignored, scaled, of others; scales; buckets."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    on_inputs,
    taken,
)
from kernel_judge.definition import Definition


def of_attention(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of queries, keys and values."""
    root = definition.axes["head_dim"] ** 0.5
    changes: dict[str, Change] = {
        "keys and values swapped": lambda i: {"k": i["v"], "v": i["k"]},
        "scaled twice": lambda i: {"q": i["q"] / root},
        "scale missing, or inverted": lambda i: {"q": i["q"] * root},
        "head before": lambda i: {"k": i["k"].roll(1, 2)},
        "values of the key before": lambda i: {"v": i["v"].roll(1, 1)},
        "keys of the sequence before": lambda i: {"k": i["k"].roll(1, 0)},
        "queries of the row before": lambda i: {"q": i["q"].roll(1, 1)},
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_masks(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of masks."""
    is_bool = definition.interface.input_specs["mask"].dtype == "bool"
    head_dim = definition.axes["head_dim"]

    def nearly_masked(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"mask": inputs["mask"].clamp_min(-4.0)}

    of_floats: dict[str, Change] = {
        "mask ignored but for infinities": lambda i: {
            "mask": torch.where(i["mask"].isneginf(), i["mask"], 0.0)
        },
        "mask scaled as logits": lambda i: {"mask": i["mask"] * head_dim**-0.5},
        "mask doubled": lambda i: {"mask": 2.0 * i["mask"]},
        "mask subtracted": lambda i: {
            "mask": torch.where(i["mask"].isneginf(), i["mask"], -i["mask"])
        },
        "mask of the query before": lambda i: {"mask": i["mask"].roll(1, 1)},
        "mask of the first query": lambda i: {
            "mask": i["mask"][:, :1].expand_as(i["mask"]).contiguous()
        },
        "masked keys 4 less": nearly_masked,
    }
    of_bools: dict[str, Change] = {
        "mask inverted": lambda i: {"mask": ~i["mask"]},
        "all keys seen": lambda i: {"mask": torch.ones_like(i["mask"])},
        "counted from the first key": lambda i: {
            "mask": torch.arange(i["mask"].shape[1], device=i["mask"].device)
            < i["mask"].sum(dim=1, keepdim=True)
        },
    }
    changes = of_bools if is_bool else of_floats
    places = -1

    def key_before(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"mask": inputs["mask"].roll(1, places)}

    def other_sequence(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"mask": inputs["mask"].roll(1, 0)}

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_inputs(definition, "mask of the key before", key_before),
        on_inputs(definition, "mask of the sequence before", other_sequence),
    )


def of_buckets(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of T5's buckets."""

    def order(*places: int) -> Change:
        def change(inputs: Inputs) -> dict[str, torch.Tensor]:
            table = inputs["relative_bias"]
            return {
                "relative_bias": taken(
                    table, 0, torch.tensor(places, device=table.device)
                )
            }

        return change

    every = range(32)
    changes: dict[str, Change] = {
        "bias missing": lambda i: {
            "relative_bias": torch.zeros_like(i["relative_bias"])
        },
        "keys before as keys behind": order(*range(16), *range(16)),
        "directions exchanged": order(0, *range(17, 32), *range(16)),
        "next bucket": order(*((p + 1) % 32 for p in every)),
        "distances beyond 7 alike": order(
            *(min(p % 16, 8) + p // 16 * 16 for p in every)
        ),
        "last buckets alike": order(*(min(p % 16, 14) + p // 16 * 16 for p in every)),
        "own place as the first behind": order(17, *range(1, 32)),
        "bias of the head before": lambda i: {
            "relative_bias": i["relative_bias"].roll(1, 1)
        },
        "bias doubled": lambda i: {"relative_bias": 2.0 * i["relative_bias"]},
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


MUTANTS = (
    MutantGroup(of_attention, "q k v head_dim"),
    MutantGroup(of_masks, "q k v mask"),
    MutantGroup(of_buckets, "q k v relative_bias"),
)
