"""Attention of a chain: within one sequence, or over the pages of a cache."""

from __future__ import annotations

from typing import Any

import torch

from generator.parity.stage_context import Pages, StageContext
from generator.problems import Failure

Tensor = torch.Tensor
_GROUPED = ("append_key", "append_value", "k_cache", "v_cache")
_LATENT = ("append_ckv", "append_kpe", "ckv_cache", "kpe_cache")
"""Inputs of definitions: what is written to the two parts of a cache, and these."""


def attention(site: StageContext, q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """Attend within one sequence, or to the pages of a cache that keys are added to."""
    dim = site.attention.head_dim
    query, key, value = (part.reshape(len(part), -1, dim) for part in (q, k, v))
    if not site.page_size:
        return [_ragged(site, query, key, value)]
    pages = _append(site, key, value, _GROUPED)
    return [_paged(site, pages, _GROUPED, q=query)]


def whole_attention(
    site: StageContext, q: Tensor, k: Tensor, v: Tensor
) -> list[Tensor]:
    """Attend to all keys: of an image, of a source, or of what an encoder made.

    Keys of padding stand at the end, and are left out.
    """
    (module,) = site.modules
    dim = length_of(module)
    query, key, value = (part.reshape(len(part), -1, dim) for part in (q, k, v))
    seen = site.subject.senses.seen or len(key)
    key, value = key[:seen], value[:seen]
    call = site.call
    if call is None:
        heads = (part.transpose(0, 1)[None] for part in (query, key, value))
        attended = site.subject.attend(module, *heads, None, scaling=module.scaling)[0]
        return [attended[0].flatten(1)]
    outputs = call(
        q=query,
        k=key,
        v=value,
        qo_indptr=torch.tensor([0, len(query)], dtype=torch.int32),
        kv_indptr=torch.tensor([0, len(key)], dtype=torch.int32),
        sm_scale=module.scaling,
    )
    return [outputs["output"].flatten(1)]


def biased_attention(
    site: StageContext, q: Tensor, k: Tensor, v: Tensor
) -> list[Tensor]:
    """Attend with a bias of relative positions, by transformers' own functions.

    The first layer has the table of the bias; no definition adds one. In decoding keys
    and values of earlier tokens are kept.
    """
    (module,) = site.modules
    first = site.subject.layers[0].layer[0].SelfAttention
    keys, values = site.state("keys"), site.state("values")
    k = k if keys is None else torch.cat((keys, k))
    v = v if values is None else torch.cat((values, v))
    site.keep("keys", k)
    site.keep("values", v)
    bias = first.compute_bias(len(q), len(k), past_seen_tokens=len(k) - len(q))
    lowest = torch.finfo(q.dtype).min
    at = torch.arange(len(k))
    if site.subject.is_tower:
        hidden = (at >= site.subject.senses.seen)[None].expand(len(q), -1)
    else:
        hidden = at[None] > site.positions[:, None]
    mask = torch.zeros(hidden.shape, dtype=q.dtype).masked_fill(hidden, lowest)
    dim = length_of(module)
    heads = (p.reshape(len(p), -1, dim).transpose(0, 1)[None] for p in (q, k, v))
    attended = site.subject.attend(
        module, *heads, mask[None, None], scaling=module.scaling, position_bias=bias
    )[0]
    return [attended[0].flatten(1)]


def length_of(module: Any) -> int:
    """Return the length of a head."""
    length = getattr(module, "head_dim", None) or module.key_value_proj_dim
    return int(length)


def latent_attention(
    site: StageContext,
    q: Tensor,
    q_turned: Tensor,
    kv: Tensor,
    k_turned: Tensor,
    latent: Tensor,
) -> list[Tensor]:
    """Attend to keys and values made of a latent, or to the latents in a cache.

    Over a cache the products with the latent's weight are taken into the query and out
    of the output, where no definition stands.
    """
    module = site.attention
    nope, count = module.qk_nope_head_dim, module.num_heads
    query = q.reshape(len(q), count, -1)[..., :nope]
    # without RoPE the last columns are what they were
    shared_dim = module.qk_rope_head_dim
    turned = q_turned.reshape(len(q), count, -1)[..., -shared_dim:]
    k_turned = k_turned[:, -shared_dim:]
    if not site.page_size:
        keys, values = kv.reshape(len(q), count, -1).tensor_split([nope], dim=-1)
        shared = k_turned[:, None].expand(-1, count, -1)
        whole, key = torch.cat((query, turned), -1), torch.cat((keys, shared), -1)
        return [_ragged(site, whole, key, values)]
    pages = _append(site, latent, k_turned, _LATENT)
    weight = module.kv_b_proj.weight.view(count, -1, module.kv_lora_rank)
    absorbed = torch.einsum("thn,hnc->thc", query, weight[:, :nope])
    attended = _paged(site, pages, _LATENT, q_nope=absorbed, q_pe=turned)
    if site.role == "append":
        return [attended]
    latents = attended.reshape(len(q), count, -1)
    return [torch.einsum("thc,hvc->thv", latents, weight[:, nope:]).flatten(1)]


def _ragged(site: StageContext, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    call = site.calls.get("ragged")
    if call is None:
        return _own_attention(site, q, k, v)
    bounds = torch.tensor([0, len(q)], dtype=torch.int32)
    outputs = call(q=q, k=k, v=v, qo_indptr=bounds, kv_indptr=bounds, **_scale(site))
    return outputs["output"].flatten(1)


def _paged(
    site: StageContext, pages: Pages, names: tuple[str, ...], **queries: Tensor
) -> Tensor:
    """Return what a definition computes over pages; of the role `append`, the cache."""
    rows = len(next(iter(queries.values())))
    role = site.role or ("decode" if rows == 1 else "paged")
    if role == "append":
        return pages.read()
    name = f"{role}@{site.page_size}"
    if name not in site.calls:
        raise Failure(f"layer {site.layer}: no definition computes attention, {name}.")
    # many rows of decoding are sequences of their own, each as long as its place
    are_prefixes = role == "decode" and rows > 1
    cut = pages.prefixes if are_prefixes else pages.structure
    structure = cut(rows, site.chunk)
    cache = dict(zip(names[2:], (pages.keys, pages.values), strict=True))
    outputs = site.calls[name](**queries, **cache, **structure, **_scale(site))
    return outputs["output"].flatten(1)


def _scale(site: StageContext) -> dict[str, Any]:
    """Return the inputs that attention takes from its module."""
    scales: dict[str, Any] = {"sm_scale": site.attention.scaling}
    if getattr(site.attention, "sinks", None) is not None:
        scales["sinks"] = site.attention.sinks
    return scales


def _own_attention(site: StageContext, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return what transformers' attention computes: [tokens, heads * head_dim]."""
    at = site.positions
    hidden = at[None, :] > at[:, None]
    window = getattr(site.attention, "sliding_window", None)
    if window:
        hidden |= at[None, :] <= at[:, None] - window
    if site.chunk:
        hidden |= at[None, :] // site.chunk != at[:, None] // site.chunk
    lowest = torch.finfo(q.dtype).min
    mask = torch.zeros(hidden.shape, dtype=q.dtype).masked_fill(hidden, lowest)
    heads = (part.transpose(0, 1)[None] for part in (q, k, v))
    scaling = site.attention.scaling
    cap = getattr(site.attention, "attn_logit_softcapping", None)
    more = {"softcap": cap} if cap else {}
    attended: Tensor = site.subject.attend(
        site.attention, *heads, mask[None, None], scaling=scaling, **more
    )[0]
    return attended[0].flatten(1)


def _append(
    site: StageContext, first: Tensor, second: Tensor, names: tuple[str, ...]
) -> Pages:
    """Write rows into both parts of the layer's pages."""
    layer = site.layer or 0
    if layer not in site.pages:
        site.pages[layer] = Pages.empty(site.page_size, site.capacity, first, second)
    pages = site.pages[layer]
    start, pages.length = pages.length, pages.length + len(first)
    positions = torch.arange(start, pages.length, dtype=torch.int32)
    call = site.calls.get(f"append@{site.page_size}")
    if call is None:
        at = positions.long()
        slots = pages.table[at // pages.page_size].long(), at % pages.page_size
        pages.keys[slots], pages.values[slots] = first, second
        return pages
    arguments = (first, second, pages.keys, pages.values)
    outputs = call(
        **dict(zip(names, arguments, strict=True)),
        **pages.structure(len(first)),
        positions=positions,
        batch_indices=torch.zeros_like(positions),
    )
    pages.keys, pages.values = outputs.values()
    return pages
