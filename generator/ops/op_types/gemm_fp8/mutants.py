"""The defects of float8 products: scales of other blocks, codes read as others."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    MutantGroup,
    misread_as_e5m2,
    on_inputs,
    on_outputs,
    shifted,
    zeroed,
)
from kernel_judge.definition import Definition


def _blockwise(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a product with scales of blocks."""
    axes = definition.axes
    changes: dict[str, Change] = {}
    for name, rows in (("input_scale", 2), ("weight_scale", axes["num_n_blocks"])):
        changes |= _of_scales(name, rows > 1, axes["num_k_blocks"] > 1)
    changes |= _of_codes("input", "weight")
    if axes["N"] % 128:
        changes["last block of the weight with the scale before"] = lambda i: {
            "weight_scale": torch.cat(
                (i["weight_scale"][:-1], i["weight_scale"][-2:-1])
            )
        }
    return _all(definition, changes)


def _of_scales(name: str, rows: bool, columns: bool) -> dict[str, Change]:
    """Return the defects of one matrix of scales, those that its axes allow."""
    changes: dict[str, Change] = {
        f"{name} missing": lambda i: {name: torch.full_like(i[name], i[name].mean())},
        f"{name} inverted": lambda i: {name: i[name].mean() ** 2 / i[name]},
        f"{name} right for the upper 4 exponents alone": lambda i: {
            name: i[name].clamp(min=float(i[name].max()) / 16)
        },
    }
    if columns:
        changes[f"{name} of the next block of K"] = lambda i: {
            name: shifted(i[name], 1)
        }
        changes[f"{name} of the first block of K"] = lambda i: {
            name: i[name][:, :1].expand_as(i[name]).contiguous()
        }
        changes[f"{name} read column by column"] = lambda i: {
            name: i[name].T.contiguous().view(i[name].shape)
        }
    if rows:
        changes[f"{name} of the next row"] = lambda i: {name: shifted(i[name], 0)}
    return changes


def _of_codes(first: str, second: str) -> dict[str, Change]:
    return {
        "codes of the first read as e5m2": lambda i: {first: misread_as_e5m2(i[first])},
        "codes of the second read as e5m2": lambda i: {
            second: misread_as_e5m2(i[second])
        },
        "last product missing": lambda i: {
            first: zeroed(i[first], i[first].dim() - 1, -1)
        },
        "columns of the second shifted": lambda i: {
            second: shifted(i[second], i[second].dim() - 1)
        },
    }


def _batched(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of products with one scale a tensor."""
    changes: dict[str, Change] = {
        "scale of A missing": lambda i: {"A_scale": 1.0},
        "scale of B missing": lambda i: {"B_scale": 1.0},
        "scale of A inverted": lambda i: {"A_scale": 1.0 / i["A_scale"]},
        "scale of A in float16": lambda i: {
            "A_scale": float(torch.tensor(float(i["A_scale"])).half())
        },
        "scale of A for both": lambda i: {"B_scale": i["A_scale"]},
        **_of_codes("A", "B"),
        "B read row by row": lambda i: {"B": i["B"].mT.contiguous().view(i["B"].shape)},
    }
    if definition.axes["batch_size"] > 1:
        changes["B of the next batch"] = lambda i: {"B": shifted(i["B"], 0)}
        changes["B of the first batch"] = lambda i: {
            "B": i["B"][:1].expand_as(i["B"]).contiguous()
        }
    return _all(definition, changes)


def _all(
    definition: Definition, changes: dict[str, Change]
) -> tuple[DomainMutant, ...]:
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(
            definition,
            "output rounded to float8",
            lambda o, i: (o[0].to(torch.float8_e4m3fn).to(o[0].dtype),),
        ),
    )


MUTANTS = (
    MutantGroup(_blockwise, "input weight input_scale weight_scale num_n_blocks"),
    MutantGroup(_batched, "A B A_scale B_scale batch_size"),
)
