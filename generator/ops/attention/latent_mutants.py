"""Domain mutants of latent attention (MLA), dense over pages or sparse."""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.attention import mutants as attention
from generator.ops.attention.scale_mutants import scale_mutants
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    Outputs,
    on_inputs,
    on_outputs,
    shifted,
)
from kernel_judge.definition import Definition

_PADDING = -1


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of logits with a latent and a rotary part."""
    axes = definition.axes
    whole = 1.0 / math.sqrt(axes["head_dim_ckv"] + axes["head_dim_kpe"])
    changes: dict[str, Change] = {
        "rotary part left out": lambda i: {"q_pe": torch.zeros_like(i["q_pe"])},
        "latent part left out": lambda i: {"q_nope": torch.zeros_like(i["q_nope"])},
        "scale of the latent": lambda i: {"sm_scale": whole},
        "rotary keys of the next page": lambda i: {
            "kpe_cache": shifted(i["kpe_cache"], 0)
        },
        "latents of the next page": lambda i: {"ckv_cache": shifted(i["ckv_cache"], 0)},
        "rotary queries of the next head": lambda i: {"q_pe": shifted(i["q_pe"], 1)},
        "latent queries of the next head": lambda i: {
            "q_nope": shifted(i["q_nope"], 1)
        },
    }
    if axes["num_qo_heads"] == 1:
        changes = {name: c for name, c in changes.items() if "next head" not in name}
    of_latents = (
        on_inputs(definition, name, change) for name, change in changes.items()
    )
    return (*attention.mutants(definition), *of_latents)


def stored_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of latents and rotary keys in 8 bits."""

    def unscaled(outputs: Outputs, inputs: Inputs) -> Outputs:
        output, lse = outputs
        return (output.float() / inputs["ckv_scale"]).to(output.dtype), lse

    return (
        *scale_mutants(definition, "ckv_scale", "kpe_scale"),
        on_outputs(definition, "values unscaled", unscaled),
    )


def sparse_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of reading padded lists of tokens."""
    page_size = definition.axes["page_size"]
    changes: dict[str, Change] = {
        "padding taken as token 0": lambda i: _indices(
            i["sparse_indices"].clamp_min(0)
        ),
        "list ends at the first padding": lambda i: _indices(
            i["sparse_indices"].where(_leading(i["sparse_indices"]), _PADDING)
        ),
        "token 0 taken as padding": lambda i: _indices(
            i["sparse_indices"].where(i["sparse_indices"] > 0, _PADDING)
        ),
        "first token of the list ignored": _without_first,
        "list of the next query": lambda i: _indices(shifted(i["sparse_indices"], 0)),
        "half of the list": lambda i: _indices(_half(i["sparse_indices"])),
        "next token's index": lambda i: _indices(_moved(i, 1)),
    }
    if page_size > 1:
        changes["next page's index"] = lambda i: _indices(_moved(i, page_size))
        changes["indices local instead of global"] = lambda i: _indices(
            torch.where(
                i["sparse_indices"] == _PADDING,
                _PADDING,
                i["sparse_indices"] % page_size,
            )
        )
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def _indices(indices: torch.Tensor) -> dict[str, Any]:
    return {"sparse_indices": indices}


def _leading(indices: torch.Tensor) -> torch.Tensor:
    """Return the entries before each row's first padding: bool, shaped as indices."""
    return (indices == _PADDING).cumsum(dim=1) == 0


def _without_first(inputs: Inputs) -> dict[str, Any]:
    indices = inputs["sparse_indices"].clone()
    indices[:, 0] = _PADDING
    return _indices(indices)


def _half(indices: torch.Tensor) -> torch.Tensor:
    cut = indices.clone()
    cut[:, indices.shape[1] // 2 :] = _PADDING
    return cut


def _moved(inputs: Inputs, by: int) -> torch.Tensor:
    """Return the indices of the tokens `by` slots later in the pool."""
    indices = inputs["sparse_indices"]
    slots = inputs["ckv_cache"].shape[0] * inputs["ckv_cache"].shape[1]
    return torch.where(indices == _PADDING, _PADDING, (indices + by) % slots)


LATENT = "q_nope q_pe ckv_cache kpe_cache head_dim_ckv head_dim_kpe num_qo_heads"
"""Names that the mutants of latent attention read."""
