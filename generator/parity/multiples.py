"""Stages that multiply by a number of the config: no definition does it alone."""

from __future__ import annotations

import torch

from generator.parity.stage_context import StageContext

Tensor = torch.Tensor


def embedding_multiple(site: StageContext, h: Tensor) -> list[Tensor]:
    """Multiply embeddings, as Granite does."""
    return [h * site.subject.config.embedding_multiplier]


def add_multiple(site: StageContext, residual: Tensor, branch: Tensor) -> list[Tensor]:
    """Add a multiple of a branch to the residual, as Granite does."""
    return [residual + branch * site.subject.config.residual_multiplier]


def logits_fraction(site: StageContext, logits: Tensor) -> list[Tensor]:
    """Divide the last logits, as Granite does."""
    return [logits / site.subject.config.logits_scaling]


def latent_growth(site: StageContext, q: Tensor, turned: Tensor) -> list[Tensor]:
    """Make queries of latent attention longer with their position, both their parts."""
    module = site.attention
    heads, ends = (x.reshape(len(x), module.num_heads, -1) for x in (q, turned))
    whole = torch.cat((heads[..., : module.qk_nope_head_dim], ends), dim=-1)
    return query_growth(site, whole.flatten(1))


def query_growth(site: StageContext, q: Tensor) -> list[Tensor]:
    """Make queries longer with their position, as Ministral 3 does."""
    rope = site.subject.config.rope_parameters
    steps = torch.floor(site.positions / rope["original_max_position_embeddings"])
    scales = 1 + rope["llama_4_scaling_beta"] * torch.log(1 + steps)
    return [q * scales[:, None].to(q.dtype)]
