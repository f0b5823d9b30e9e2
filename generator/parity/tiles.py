"""Stages of an image in tiles, and of layers that attend to it behind a gate."""

from __future__ import annotations

import torch
from torch.nn import functional

from generator.parity.attention import length_of
from generator.parity.senses import ASPECT
from generator.parity.stage_context import StageContext

Tensor = torch.Tensor


def tile_places(site: StageContext, patches: Tensor) -> list[Tensor]:
    """Add a tile's place, a row for its class, and the places of its patches."""
    tower, aspect = site.subject.base, torch.tensor([[ASPECT]])
    placed = tower.pre_tile_positional_embedding(patches[None, None], aspect)
    classed = tower.apply_class_embedding(placed[0])
    return [tower.gated_positional_embedding(classed[None], aspect)[0, 0]]


def padded_rows(site: StageContext, x: Tensor) -> list[Tensor]:
    """Add rows of zeros, up to a multiple of 8."""
    return [functional.pad(x, (0, 0, 0, site.subject.senses.rows - len(x)))]


def padded_attention(
    site: StageContext, q: Tensor, k: Tensor, v: Tensor
) -> list[Tensor]:
    """Attend to all rows; rows of padding attend to those of the image alone."""
    (module,) = site.modules
    dim, count = length_of(module), site.subject.base.num_patches
    query, key, value = (part.reshape(len(part), -1, dim) for part in (q, k, v))
    if site.call is None:
        parts = ((query[:count], len(key)), (query[count:], count))
        attended = [
            site.subject.attend(
                module,
                *(p.transpose(0, 1)[None] for p in (rows, key[:seen], value[:seen])),
                None,
                scaling=module.scaling,
            )[0][0].flatten(1)
            for rows, seen in parts
        ]
        return [torch.cat(attended)]
    returned = site.call(
        q=query,
        k=torch.cat((key, key[:count])),
        v=torch.cat((value, value[:count])),
        qo_indptr=torch.tensor([0, count, len(query)], dtype=torch.int32),
        kv_indptr=torch.tensor([0, len(key), len(key) + count], dtype=torch.int32),
        sm_scale=module.scaling,
    )
    return [returned["output"].flatten(1)]


def tile_places_behind(site: StageContext, x: Tensor) -> list[Tensor]:
    """Add a tile's place behind the first layers."""
    tower, aspect = site.subject.base, torch.tensor([[ASPECT]])
    return [tower.post_tile_positional_embedding(x[None, None], aspect)[0, 0]]


def gathered(site: StageContext, last: Tensor, *inner: Tensor) -> list[Tensor]:
    """Put what inner layers gave behind the last one's, column by column of each."""
    count = site.subject.base.num_patches
    columns = torch.stack(inner, dim=-1).flatten(1)
    return [torch.cat((last, columns), dim=1)[:count]]


def gated_add(site: StageContext, residual: Tensor, branch: Tensor) -> list[Tensor]:
    """Add a branch times the tanh of the layer's gate of that name."""
    layer = site.subject.layers[site.layer or 0]
    return [residual + getattr(layer, site.at).tanh() * branch]


def unchanged(site: StageContext, h: Tensor) -> list[Tensor]:
    """Hand a layer's output on to the next one."""
    return [h]
