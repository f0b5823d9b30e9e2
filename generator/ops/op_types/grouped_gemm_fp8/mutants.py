"""The defects of grouped products: another expert's weight, scales of other blocks."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    MutantGroup,
    on_inputs,
    on_outputs,
    shifted,
    zeroed,
)
from kernel_judge.definition import Definition


def _of_products(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of weights and scales."""
    changes: dict[str, Change] = {
        "weight of the next expert": lambda i: {"b": shifted(i["b"], 0)},
        "weight of the first expert": lambda i: {
            "b": i["b"][:1].expand_as(i["b"]).contiguous()
        },
        "scales of the next expert": lambda i: {"b_scale": shifted(i["b_scale"], 0)},
        "scales of the next block of N": lambda i: {
            "b_scale": shifted(i["b_scale"], 1)
        },
        "scales of the next block of K": lambda i: {
            "b_scale": shifted(i["b_scale"], 2)
        },
        "scales of weights read column by column": lambda i: {
            "b_scale": i["b_scale"].mT.contiguous().view(i["b_scale"].shape)
        },
        "scales of rows read column by column": lambda i: {
            "a_scale": i["a_scale"].mT.contiguous().view(i["a_scale"].shape)
        },
        "scales of the next row": lambda i: {
            "a_scale": shifted(i["a_scale"], i["a_scale"].dim() - 2)
        },
        "scales of rows of the next block": lambda i: {
            "a_scale": shifted(i["a_scale"], i["a_scale"].dim() - 1)
        },
        "last product missing": lambda i: {"a": zeroed(i["a"], i["a"].dim() - 1, -1)},
        "columns of weights shifted": lambda i: {"b": shifted(i["b"], 2)},
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            "output rounded to float8",
            lambda o, i: (o[0].to(torch.float8_e4m3fn).to(o[0].dtype),),
        ),
    )


def _of_rows(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of numbers of experts."""
    changes: dict[str, Change] = {
        "padding is of the first expert": lambda i: {
            "m_indices": i["m_indices"].clamp_min(0)
        },
        "experts of the next row": lambda i: {"m_indices": shifted(i["m_indices"], 0)},
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


def _of_counts(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of numbers of rows."""
    changes: dict[str, Change] = {
        "counts ignored": lambda i: {
            "masked_m": torch.full_like(i["masked_m"], i["a"].shape[1])
        },
        "one row less": lambda i: {"masked_m": (i["masked_m"] - 1).clamp_min(0)},
        "counts of the next expert": lambda i: {"masked_m": shifted(i["masked_m"], 0)},
    }
    return tuple(on_inputs(definition, name, c) for name, c in changes.items())


MUTANTS = (
    MutantGroup(_of_products, "a b a_scale b_scale"),
    MutantGroup(_of_rows, "m_indices"),
    MutantGroup(_of_counts, "masked_m"),
)
