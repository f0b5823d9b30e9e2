"""Conversions between the values of a chain and the inputs of definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import torch
from torch.nn import functional

from generator.parity import multiples, recurrent, tiles
from generator.parity.attention import (
    attention,
    biased_attention,
    latent_attention,
    whole_attention,
)
from generator.parity.capture import chosen_keys, dense
from generator.parity.senses import IMAGE_AT
from generator.parity.stage_context import StageContext
from generator.problems import Failure

Tensor = torch.Tensor


def embedding(site: StageContext, tokens: Tensor) -> list[Tensor]:
    """Look rows of the weight up."""
    (module,) = site.modules
    if site.call is None:
        return [module(tokens)]
    outputs = site.call(input_ids=tokens, weight=module.weight, vocab_start=0)
    return [outputs["output"]]


def norm(site: StageContext, x: Tensor) -> list[Tensor]:
    """Normalise rows, each head by itself where the weight has a head's length."""
    (module,) = site.modules
    rows = x.reshape(-1, module.weight.numel())
    if site.call is None:
        return [module(rows).reshape(x.shape)]
    outputs = site.call(hidden_states=rows, weight=module.weight)
    return [outputs["output"].reshape(x.shape)]


def add_norm(site: StageContext, branch: Tensor, residual: Tensor) -> list[Tensor]:
    """Normalise the sum of a branch and the residual."""
    (module,) = site.modules
    if site.call is None:
        return [module(residual + branch)]
    outputs = site.call(hidden_states=branch, residual=residual, weight=module.weight)
    return [outputs["output"]]


def query_norm(site: StageContext, query_gate: Tensor) -> list[Tensor]:
    """Normalise the query of each head: a gate stands behind it."""
    dim = site.attention.head_dim
    heads = query_gate.view(len(query_gate), -1, 2, dim)[:, :, 0]
    return norm(site, heads.flatten(1))


def linear(site: StageContext, x: Tensor) -> list[Tensor]:
    """Multiply by the weights of one or several modules, fused by rows."""
    modules = site.modules
    # a convolution of patches is a product as well
    weights = [m.weight.flatten(1) for m in modules]
    rows, x = len(x), x.reshape(-1, weights[0].shape[1])
    if site.call is None:
        whole = [
            functional.linear(x, weight, m.bias)
            for weight, m in zip(weights, modules, strict=True)
        ]
        return _unpacked(site, [part.reshape(rows, -1) for part in whole])
    product = site.call(A=x, B=torch.cat(weights))["C"]
    parts = torch.split(product, [len(weight) for weight in weights], dim=1)
    biases = [getattr(m, "bias", None) for m in modules]
    whole = [
        part if bias is None else part + bias
        for part, bias in zip(parts, biases, strict=True)
    ]
    return _unpacked(site, [part.reshape(rows, -1) for part in whole])


def _unpacked(site: StageContext, products: list[Tensor]) -> list[Tensor]:
    """Return the parts of a product, where one module has several in its weight."""
    if len(products) > 1:
        return products
    return site.subject.unpacked(site.at, products[0])


def router(site: StageContext, x: Tensor) -> list[Tensor]:
    """Multiply by a router's weight; the logits stay as exact as they come."""
    return [part.float() for part in linear(site, x)]


def rope(site: StageContext, q: Tensor, k: Tensor) -> list[Tensor]:
    """Turn the heads of queries and keys by their positions."""
    dim = site.attention.head_dim
    query, key = (part.reshape(len(part), -1, dim) for part in (q, k))
    return [part.flatten(1) for part in _turned(site, query, key)]


def _turned(site: StageContext, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    cache = site.subject.rope_cache(site.layer or 0)
    if site.call is None:
        query, key = site.subject.turned(q, k, cache, site.positions)
        return query, key
    at = site.positions
    axes = None if site.subject.is_tower else site.subject.axes
    at = at if axes is None else axes[:, at]
    outputs = site.call(q=q, k=k, cos_sin_cache=cache, positions=at)
    turned = outputs["q_out"], outputs["k_out"]
    if not site.subject.pairs_neighbours:
        return turned
    # transformers leaves the even dimensions before the odd ones
    query, key = (torch.cat((p[..., 0::2], p[..., 1::2]), dim=-1) for p in turned)
    return query, key


def activation(site: StageContext, gate: Tensor, up: Tensor) -> list[Tensor]:
    """Activate the gate and multiply it by the up projection."""
    (module,) = site.modules
    if site.call is None:
        return [_activated(module, gate) * up]
    return [*site.call(input=torch.cat((gate, up), dim=1)).values()]


def _activated(module: Any, x: Tensor) -> Tensor:
    """Return what the activation of an MLP makes of values."""
    names = ("act_fn", "activation_fn", "act")
    function = next(getattr(module, of) for of in names if hasattr(module, of))
    activated: Tensor = function(x)
    return activated


def ungated(site: StageContext, up: Tensor) -> list[Tensor]:
    """Activate the up projection of an MLP without a gate."""
    (module,) = site.modules
    if site.call is None:
        return [_activated(module, up)]
    return [*site.call(input=up).values()]


def latent_norm(site: StageContext, x: Tensor) -> list[Tensor]:
    """Normalise the first columns: the latent, without the key's rotary part."""
    return norm(site, x[:, : site.modules[0].weight.numel()].contiguous())


def latent_rope(site: StageContext, q: Tensor, kv: Tensor) -> list[Tensor]:
    """Turn the last dimensions of each query head, and of the latent."""
    turning = site.attention.qk_rope_head_dim
    heads = q.reshape(len(q), -1, site.attention.qk_head_dim)
    query, key = heads[..., -turning:], kv[:, None, -turning:]
    return [part.flatten(1) for part in _turned(site, query, key)]


def routing(site: StageContext, logits: Tensor, y: Tensor) -> list[Tensor]:
    """Choose experts: weights by expert, 0 for those that are not chosen."""
    (module,) = site.modules
    bias = getattr(module, "e_score_correction_bias", None)
    if bias is None:
        # MiniMax's stands beside its router
        block = site.subject.module(site.at.rpartition(".")[0], site.layer)
        bias = getattr(block, "e_score_correction_bias", None)
    if site.call is None:
        # of these logits, so that gradients pass through them
        with mock.patch.object(functional, "linear", return_value=logits):
            _, weights, experts = module(y)
    else:
        # Hunyuan 3 calls it otherwise
        factors = ("routed_scaling_factor", "router_scaling_factor")
        factor = next(
            (getattr(module, of) for of in factors if hasattr(module, of)), 1.0
        )
        outputs = site.call(
            router_logits=logits, bias=bias, routed_scaling_factor=factor
        )
        weights, experts = outputs.values()
    return [dense(weights.to(y.dtype), experts, logits.shape[1])]


def experts(site: StageContext, y: Tensor, choice: Tensor) -> list[Tensor]:
    """Sum what the chosen experts make of each token, by their weights."""
    (module,) = site.modules
    top_k = int((choice != 0).sum(dim=1).max())
    chosen = choice.topk(top_k, dim=1)
    if site.call is None:
        return [module(y, chosen.indices, chosen.values)]
    outputs = site.call(
        hidden_states=y,
        topk_ids=chosen.indices.int(),
        topk_weights=chosen.values,
        w13=module.gate_up_proj,
        w2=module.down_proj,
    )
    return [next(iter(outputs.values()))]


def add(site: StageContext, residual: Tensor, branch: Tensor) -> list[Tensor]:
    """Add a branch to the residual: what stands between definitions."""
    return [residual + branch]


def unit_norm(site: StageContext, q: Tensor, k: Tensor) -> list[Tensor]:
    """Normalise heads without a weight; no definition does it."""
    (module,) = site.modules
    dim = site.attention.head_dim
    return [module(part.reshape(-1, dim)).reshape(part.shape) for part in (q, k)]


def temperature(site: StageContext, q: Tensor) -> list[Tensor]:
    """Make queries of layers without RoPE longer with their position, as Llama 4 does."""
    module = site.attention
    steps = torch.floor((site.positions.float() + 1.0) / module.floor_scale)
    scales = torch.log1p(steps) * module.attn_scale + 1.0
    return [(q * scales[:, None]).to(q.dtype)]


def scaled_experts(site: StageContext, y: Tensor, choice: Tensor) -> list[Tensor]:
    """Sum what the chosen experts make of each token, scaled before they see it."""
    (module,) = site.modules
    top_k = int((choice != 0).sum(dim=1).max())
    chosen = choice.topk(top_k, dim=1)
    if site.call is None:
        scaled = y.repeat(choice.shape[1], 1) * choice.T.reshape(-1, 1)
        return [module(scaled).reshape(choice.shape[1], *y.shape).sum(dim=0)]
    outputs = site.call(
        hidden_states=y,
        topk_ids=chosen.indices.int(),
        topk_weights=chosen.values,
        # transformers has inputs before outputs
        w13=module.gate_up_proj.transpose(1, 2).contiguous(),
        w2=module.down_proj.transpose(1, 2).contiguous(),
    )
    return [next(iter(outputs.values()))]


def layer_norm(site: StageContext, x: Tensor) -> list[Tensor]:
    """Normalise rows about their mean, with a scale and a bias."""
    (module,) = site.modules
    rows = x.reshape(-1, module.weight.numel())
    if site.call is None:
        return [module(rows).reshape(x.shape)]
    weight, bias = module.weight.float(), module.bias.float()
    outputs = site.call(hidden_states=rows, weight=weight, bias=bias)
    return [outputs["output"].reshape(x.shape)]


def plain_activation(site: StageContext, x: Tensor) -> list[Tensor]:
    """Activate values by transformers' own function."""
    (module,) = site.modules or [site.subject.layers[site.layer or 0]]
    return [_activated(module, x)]


def image_places(site: StageContext, patches: Tensor) -> list[Tensor]:
    """Add what an image's patches get by their place, which no definition makes."""
    return [patches + site.subject.senses.places(site.subject.base).to(patches.dtype)]


def join(site: StageContext, h: Tensor, image: Tensor) -> list[Tensor]:
    """Put an image's rows in the place of the tokens that stand for it."""
    here, rows = _image_rows(site, h, image)
    return [torch.where(here[:, None], rows, h)]


def join_add(site: StageContext, h: Tensor, image: Tensor) -> list[Tensor]:
    """Add an image's rows to those of the tokens that stand for it."""
    here, rows = _image_rows(site, h, image)
    return [torch.where(here[:, None], h + rows, h)]


def _image_rows(site: StageContext, h: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """Return which tokens stand for an image, and a row of it for every token."""
    rows = image.reshape(-1, h.shape[1])
    at = site.positions - IMAGE_AT
    here = (at >= 0) & (at < len(rows))
    return here, rows[at.clamp(0, len(rows) - 1)]


def speech_embedding(site: StageContext, features: Tensor) -> list[Tensor]:
    """Convolve features twice and add positions, by transformers' own modules."""
    first, second, places = site.modules
    x = functional.gelu(first(features[None]))
    x = functional.gelu(second(x))[0].T
    return [x + places.weight]


def add_places(site: StageContext, h: Tensor) -> list[Tensor]:
    """Add a row of a table to each token, by its position."""
    (module,) = site.modules
    return [h + module.weight[site.positions]]


def indexer(site: StageContext, x: Tensor, query: Tensor) -> list[Tensor]:
    """Choose keys by transformers' own module: the dataset's indexers take float8.

    Raises Failure where there are more than it keeps: no recipe attends to a part.
    """
    (module,) = site.modules
    x = _with_earlier(site, "index_x", x)
    query = _with_earlier(site, "index_q", query)
    count = len(x)
    if count > module.index_topk:
        raise Failure(f"{count} tokens: the recipe is for {module.index_topk} at most.")
    at = torch.arange(count)
    later = torch.zeros(count, count).masked_fill(at[None] > at[:, None], -math.inf)
    pair = site.subject.base.rotary_emb(x, at[None])
    keys = module(x[None], query[None], pair, later[None].to(x.dtype), at[None])[0]
    chosen = chosen_keys(keys, site.subject.config, 0)
    return [chosen[-len(site.positions) :]]


def _with_earlier(site: StageContext, name: str, rows: Tensor) -> Tensor:
    """Return rows behind those of earlier tokens, which are kept in decoding."""
    earlier = site.state(name)
    every = rows if earlier is None else torch.cat((earlier, rows))
    site.keep(name, every)
    return every


def softcap(site: StageContext, logits: Tensor) -> list[Tensor]:
    """Bound the last logits smoothly; no definition does it alone."""
    cap = site.subject.config.final_logit_softcapping
    return [torch.tanh(logits / cap) * cap]


KINDS: Mapping[str, Callable[..., list[Tensor]]] = {
    "embedding": embedding,
    "norm": norm,
    "add_norm": add_norm,
    "linear": linear,
    "rope": rope,
    "attention": attention,
    "activation": activation,
    "add": add,
    "softcap": softcap,
    "embedding_multiple": multiples.embedding_multiple,
    "add_multiple": multiples.add_multiple,
    "logits_fraction": multiples.logits_fraction,
    "query_growth": multiples.query_growth,
    "latent_growth": multiples.latent_growth,
    "indexer": indexer,
    "layer_norm": layer_norm,
    "plain_activation": plain_activation,
    "image_places": image_places,
    "join": join,
    "join_add": join_add,
    "speech_embedding": speech_embedding,
    "add_places": add_places,
    "whole_attention": whole_attention,
    "biased_attention": biased_attention,
    "tile_places": tiles.tile_places,
    "tile_places_behind": tiles.tile_places_behind,
    "padded_rows": tiles.padded_rows,
    "padded_attention": tiles.padded_attention,
    "gathered": tiles.gathered,
    "gated_add": tiles.gated_add,
    "unchanged": tiles.unchanged,
    "unit_norm": unit_norm,
    "temperature": temperature,
    "scaled_experts": scaled_experts,
    "latent_norm": latent_norm,
    "latent_rope": latent_rope,
    "latent_attention": latent_attention,
    "router": router,
    "routing": routing,
    "experts": experts,
    "query_norm": query_norm,
    "ungated": ungated,
    "delta_convolution": recurrent.delta_convolution,
    "mamba_convolution": recurrent.mamba_convolution,
    "delta_rule": recurrent.delta_rule,
    "kimi_rule": recurrent.kimi_rule,
    "state_space": recurrent.state_space,
    "gated_norm": recurrent.gated_norm,
    "group_norm": recurrent.group_norm,
    "output_gate": recurrent.output_gate,
    "gated_sum": recurrent.gated_sum,
}
