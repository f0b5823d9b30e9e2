"""Definitions needed by grouped-query attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.models.architectures import CHUNKED, FULL, SLIDING
from generator.models.config import Config
from generator.models.deployed import Deployed
from generator.models.need import Need, norm
from generator.models.parallel import KV_DTYPES, Deployment
from generator.models.projections import F16, model_dtype
from generator.problems.messages import show

_ROPE = ("rope_parameters", "rope_scaling")


def grouped_query(model: Deployed) -> Iterator[Need]:
    """Yield what layers with grouped-query attention need, in the order of a layer.

    Raises Failure as the figures of a config do.
    """
    config, deployment, norms = model.config, model.deployment, model.norms
    architecture = config.architecture
    hidden = config.size("hidden_size")
    whole = config.size("num_attention_heads")
    query, kv = deployment.heads(config)
    dim = head_size(config)
    of = model.projections(FULL, SLIDING, CHUNKED)
    is_gated = architecture.output_gate and config.flag(
        "attn_output_gate", default=True
    )
    parts = (query * dim * (2 if is_gated else 1), kv * dim, kv * dim)
    shared = " (KV heads replicated)" if deployment.replicates(config) else ""
    yield from of.linear(
        f"query, key and value projection{shared}",
        sum(parts),
        hidden,
        *_at("q_proj", "k_proj", "v_proj", "qkv_proj"),
        parts=parts,
        divided="n",
        bias=has_bias(config, "qkv"),
    )
    if not architecture.optional_norm or config.flag("use_qk_norm", default=True):
        every = config.size("num_key_value_heads", default=whole)
        yield from _head_norms(model, (whole, every), dim)
    if architecture.rope and any(layer.has_rope for layer in model.layers):
        yield from _rope(config, dim)
    if architecture.head_norm == "unit" and config.flag("use_qk_norm", default=True):
        name = f"rmsnorm_no_weight_h{dim}"
        module = "query and key to unit length, in layers with RoPE"
        yield Need(module, "rmsnorm", name, norms, at=("qk_norm",))
    yield from scaled_queries(model, query, dim)
    word = cache_word(deployment)
    append = f"append_paged_kv_cache_{word}kv{kv}_d{dim}_ps{deployment.page_size}"
    yield Need("append to the cache", "page_append", append)
    yield from _attention(model, f"h{query}_kv{kv}_d{dim}")
    if is_gated:
        gate = f"sigmoid_and_mul_i{query * dim}"
        yield Need("attention's output times its gate", "activation", gate)
    yield from of.linear(
        "output projection",
        hidden,
        query * dim,
        *_at("o_proj"),
        divided="k",
        bias=has_bias(config, "o"),
    )


def scaled_queries(model: Deployed, query: int, dim: int) -> Iterator[Need]:
    """Yield what multiplies queries by the logarithm of their position."""
    config = model.config
    constants = {"beta": _nested(config, config.get(*_ROPE), "llama_4_scaling_beta")}
    module = "queries times a function of their position"
    if CHUNKED in config.architecture.pattern:
        # Llama 4's layers without RoPE
        keys = ("attn_scale", "floor_scale")
        constants = {key: config.get(key) for key in keys}
        is_tuned = config.flag("attn_temperature_tuning")
        if not is_tuned or all(layer.has_rope for layer in model.layers):
            return
        module += ", in layers without RoPE"
    elif constants["beta"] is None:
        return
    name = f"scale_queries_by_position_h{query}_d{dim}"
    yield Need(module, "rope", name, constants)


def _at(*names: str) -> tuple[str, ...]:
    """Return where transformers has modules of attention."""
    return tuple(
        f"{owner}.{name}" for owner in ("self_attn", "mixer") for name in names
    )


def head_size(config: Config) -> int:
    """Return the length of a head: the hidden size divided among them if not stated."""
    kind = config.architecture.heads
    if kind != "hidden" and config.get("head_dim"):
        return config.size("head_dim")
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    if kind == "rounded":
        return hidden // heads
    return config.divided("hidden_size", hidden, heads, "num_attention_heads =")


def has_bias(config: Config, projection: str) -> bool:
    """Return whether a projection ("qkv", "o") has a bias."""
    architecture = config.architecture
    stated = config.flag(architecture.bias_key) if architecture.bias else False
    optional = architecture.bias.split() if stated else []
    if config.flag("attention_out_bias"):
        optional.append("o")
    return projection in (*optional, *architecture.always_bias.split())


def cache_word(deployment: Deployment) -> str:
    """Return the word of a name for a cache in 8 bits, empty for one in 16."""
    return "" if deployment.kv_dtype == KV_DTYPES[0] else "kve4m3_"


def _head_norms(model: Deployed, heads: tuple[int, int], dim: int) -> Iterator[Need]:
    kind, tp = model.config.architecture.head_norm, model.deployment.tp
    norms = model.norms
    if kind == "head":
        ends = ("q_norm", "k_norm", "query_layernorm", "key_layernorm")
        yield norm("query and key norm", dim, norms, *ends)
    elif kind == "all":
        for module, count, at in zip(
            ("query norm", "key norm"), heads, ("q_norm", "k_norm"), strict=True
        ):
            if tp == 1:
                yield norm(module, count * dim, norms, at)
                continue
            # a mean over heads of all GPUs; SGLang's minimax_m2.py reduces the variance
            size = -(-count // tp) * dim
            name = f"allreduce_rmsnorm_tp{tp}_h{size}"
            yield Need(f"{module}, over GPUs", "comm", name, norms, at=(at,))


def _rope(config: Config, dim: int) -> Iterator[Need]:
    style = config.architecture.rope
    rotary = _rotary(config, dim)
    name = f"rope_with_cos_sin_cache_{style}_style_d{dim}_rd{rotary}"
    yield Need("RoPE", "rope", name)
    sections = _nested(config, config.get(*_ROPE), "mrope_section")
    if sections is None:
        return
    if not isinstance(sections, list) or len(sections) != len("tyx"):
        config.refuse("mrope_section", f"is {show(sections)}, no list of 3")
    kind = (
        "interleaved"
        if _nested(config, config.get(*_ROPE), "mrope_interleaved")
        else "sectioned"
    )
    axes = "_".join(f"{a}{n}" for a, n in zip("tyx", sections, strict=True))
    name = f"mrope_{kind}_{axes}_d{dim}_rd{rotary}"
    yield Need("RoPE of tokens of an image", "rope", name)


def _rotary(config: Config, dim: int) -> int:
    key = "partial_rotary_factor"
    if not config.architecture.turns_part:
        for part in (_nested(config, config.get(*_ROPE), key), config.get(key)):
            if part not in (None, 1):
                config.refuse(key, f"is {show(part)}: here RoPE turns whole heads")
        return dim
    if config.stated("rotary_dim") is not None:
        return config.size("rotary_dim")
    stated, defaults = config.stated(*_ROPE), config.get(*_ROPE)
    part = next(
        (
            value
            for value in (
                _nested(config, stated, key),
                config.stated(key),
                _nested(config, defaults, key),
                config.get(key),
            )
            if value is not None
        ),
        None,
    )
    if part is None:
        return dim
    if type(part) not in (int, float) or not 0 < part <= 1:
        config.refuse(
            "partial_rotary_factor", f"is {show(part)}, not above 0 and at most 1"
        )
    turned = int(dim * part)
    # pairs turn: of an odd number transformers turns one more
    return turned + turned % 2


def _nested(config: Config, parameters: Any, key: str) -> Any:
    """Return what parameters of RoPE say, once or for each kind of layer."""
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        config.refuse("rope_parameters", f"is {show(parameters)}, no object")
    by_kind = [v for v in parameters.values() if isinstance(v, dict)]
    for stated in (parameters, *by_kind):
        if stated.get(key) is not None:
            return stated[key]
    return None


def _attention(model: Deployed, heads: str) -> Iterator[Need]:
    config, deployment = model.config, model.deployment
    first = "fp16_" if model_dtype(config) == F16 else ""
    first += "sink_" if config.architecture.sinks else ""
    cap = config.get("attn_logit_softcapping")
    if cap is not None and (type(cap) not in (int, float) or cap <= 0):
        config.refuse("attn_logit_softcapping", f"is {show(cap)}, not above 0")
    first += f"cap{cap:g}_" if cap else ""
    kinds = dict.fromkeys(layer.mixer for layer in model.layers)
    page_size = deployment.page_size
    for kind in (FULL, SLIDING):
        if kind not in kinds:
            continue
        words, which = first, ""
        if kind == SLIDING:
            # a config's window counts the query's own key
            size = config.size("sliding_window")
            words, which = f"{first}w{size - 1}_", f", window of {size}"
        paged = f"{cache_word(deployment)}{words}{heads}_ps{page_size}"
        yield Need(f"decode{which}", "gqa_paged", f"gqa_paged_decode_{paged}")
        prefill = f"gqa_paged_prefill_causal_{paged}"
        yield Need(f"prefill, paged{which}", "gqa_paged", prefill)
        # Whatever the cache holds, this is attention over the keys and values that the
        # layer has just computed, in 16 bits: SGLang's FlashInfer backend calls the
        # ragged kernel on these, then writes them to the cache, where its dtype and
        # scales apply.
        ragged = f"gqa_ragged_prefill_causal_{words}{heads}"
        yield Need(f"prefill, ragged{which}", "gqa_ragged", ragged)
    if CHUNKED in kinds:
        size = config.size("attention_chunk_size")
        of, op_type = f"{first}c{size}_{heads}", "chunked_attention"
        decode = f"{op_type}_decode_{cache_word(deployment)}{of}_ps{page_size}"
        yield Need("decode, within chunks", op_type, decode)
        prefill = f"{op_type}_prefill_{of}"
        yield Need("prefill, ragged, within chunks", op_type, prefill)
