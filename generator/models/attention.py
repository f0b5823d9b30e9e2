"""What attention, and what stands in its place, needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.models.config import Config
from generator.models.need import Need, Projections, norm
from generator.models.parallel import KV_DTYPES, Deployment
from generator.problems.messages import show

Norms = Mapping[str, Any]


def needs(config: Config, deployment: Deployment, norms: Norms) -> Iterator[Need]:
    """Yield what the mixers of all kinds of layers need. Raises Failure as figures do."""
    mixer = config.architecture.mixer
    if mixer in ("mla", "dsa"):
        yield from _latent(config, deployment, norms)
        return
    if mixer == "gdn":
        yield from _delta_net(config, deployment, norms)
    if mixer == "mamba":
        yield from _mamba(config, deployment, norms)
    yield from _grouped_query(config, deployment, norms)


def _grouped_query(
    config: Config, deployment: Deployment, norms: Norms
) -> Iterator[Need]:
    architecture = config.architecture
    hidden = config.size("hidden_size")
    whole = config.size("num_attention_heads")
    query, kv = deployment.heads(config)
    dim = config.get("head_dim") and config.size("head_dim")
    if dim is None:
        what = "num_attention_heads ="
        dim = config.divided("hidden_size", hidden, whole, what)
    linear = Projections(config).linear
    gate = query if architecture.mixer == "gdn" else 0
    if architecture.fused:
        shared = " (KV heads replicated)" if deployment.replicates(config) else ""
        module = f"query, key and value projection{shared}"
        yield from linear(module, (query + gate + 2 * kv) * dim, hidden)
    else:
        yield from linear("query projection", query * dim, hidden)
        yield from linear("key or value projection", kv * dim, hidden)
    if architecture.head_norm == "head":
        yield norm("query and key norm", dim, norms)
    elif architecture.head_norm == "all":
        every = config.size("num_key_value_heads", default=whole)
        yield norm("query norm", whole * dim, norms)
        yield norm("key norm", every * dim, norms)
    if architecture.rope:
        yield Need(
            "RoPE", "rope", f"{architecture.rope}_d{dim}_rd{_rotary(config, dim)}"
        )
    page_size = deployment.page_size
    append = f"append_paged_kv_cache_kv{kv}_d{dim}_ps{page_size}"
    yield Need("append to the cache", "page_append", append)
    heads = f"h{query}_kv{kv}_d{dim}"
    cache = _cache_word(deployment)
    for words, kind in _kinds(config):
        paged = f"{cache}{words}{heads}_ps{page_size}"
        yield Need(f"decode{kind}", "gqa_paged", f"gqa_paged_decode_{paged}")
        yield Need(
            f"prefill, paged{kind}", "gqa_paged", f"gqa_paged_prefill_causal_{paged}"
        )
        # Whatever the cache holds, this is attention over the keys and values that the
        # layer has just computed, in bfloat16: SGLang's FlashInfer backend calls the
        # ragged kernel on these, then writes them to the cache, where its dtype and
        # scales apply.
        ragged = f"gqa_ragged_prefill_causal_{words}{heads}"
        yield Need(f"prefill, ragged{kind}", "gqa_ragged", ragged)
    yield from linear("output projection", hidden, query * dim)
    if architecture.sandwich:
        yield norm("norms behind attention and MLP", hidden, norms)


def _rotary(config: Config, dim: int) -> int:
    rotary = config.get("rotary_dim")
    if rotary is not None:
        return config.size("rotary_dim")
    part = config.get("partial_rotary_factor")
    if part is None:
        return dim
    if not isinstance(part, (int, float)) or not 0 < part <= 1:
        config.refuse(
            "partial_rotary_factor", f"is {show(part)}, not above 0 and at most 1"
        )
    return int(dim * part)


def _cache_word(deployment: Deployment) -> str:
    """Return the word of a name for a cache in 8 bits, empty for one in 16."""
    return "" if deployment.kv_dtype == KV_DTYPES[0] else "kve4m3_"


def _kinds(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the words of a name, and what tells them apart, of each kind of layer."""
    first = "sink_" if config.architecture.sinks else ""
    cap = config.get("attn_logit_softcapping")
    if cap:
        first += f"cap{cap:g}_"
    for window in _windows(config):
        if window:
            yield f"{first}w{window - 1}_", f", window of {window}"
        else:
            yield first, ""


def _windows(config: Config) -> list[int]:
    """Return the windows of the layers, in keys that a query sees; 0 is none.

    A config's window counts the query's own key.
    """
    window = config.count("sliding_window")
    if not window or config.get("use_sliding_window") is False:
        return [0]
    layers = config.get("layer_types")
    if isinstance(layers, list) and layers:
        windows = [window] * ("sliding_attention" in layers)
        return [0] * ("full_attention" in layers) + windows
    # Mistral's layers all have it; gemma and gpt-oss alternate
    if config.architecture.sandwich or config.architecture.sinks:
        return [0, window]
    return [window]


def _latent(config: Config, deployment: Deployment, norms: Norms) -> Iterator[Need]:
    hidden = config.size("hidden_size")
    whole = config.size("num_attention_heads")
    heads = config.divided("num_attention_heads", whole, deployment.tp, "--tp")
    ckv, kpe = config.size("kv_lora_rank"), config.size("qk_rope_head_dim")
    nope, value = config.size("qk_nope_head_dim"), config.size("v_head_dim")
    linear = Projections(config).linear
    rank = config.count("q_lora_rank")
    if rank:
        yield from linear("query compression", rank, hidden)
        yield norm("norm of the query", rank, norms)
    yield from linear("query projection", heads * (nope + kpe), rank or hidden)
    yield from linear("key and value compression", ckv + kpe, hidden)
    yield norm("norm of the latent", ckv, norms)
    yield Need("RoPE", "rope", f"{config.architecture.rope}_d{kpe}_rd{kpe}")
    append = f"append_paged_mla_kv_cache_ckv{ckv}_kpe{kpe}"
    yield Need("append to the cache", "page_append", append)
    yield from linear("key and value projection", heads * (nope + value), ckv)
    ends = f"h{heads}_ckv{ckv}_kpe{kpe}"
    paged = f"{_cache_word(deployment)}{ends}_ps{deployment.page_size}"
    if config.architecture.mixer == "dsa":
        top = config.size("index_topk")
        length = config.size("index_head_dim")
        # no config has this eps: it is the default of the model's code
        name, eps = f"layernorm_h{length}", {"eps": 1e-6}
        yield Need("indexer, norm of the keys", "layernorm", name, eps)
        index = f"h{config.size('index_n_heads')}_d{length}"
        last = f"topk{top}_ps{deployment.page_size}"
        indexer = f"dsa_topk_indexer_fp8_{index}_{last}"
        yield Need("indexer", "dsa_paged", indexer)
        sparse = f"dsa_sparse_attention_{ends}_{last}"
        yield Need("sparse attention", "dsa_paged", sparse)
    yield Need("decode", "mla_paged", f"mla_paged_decode_{paged}")
    yield Need("prefill, paged", "mla_paged", f"mla_paged_prefill_causal_{paged}")
    ragged = f"mla_ragged_prefill_causal_h{heads}_qk{nope + kpe}_vo{value}"
    yield Need("prefill, ragged", "mla_ragged", ragged)
    yield from linear("output projection", hidden, heads * value)


def _delta_net(config: Config, deployment: Deployment, norms: Norms) -> Iterator[Need]:
    hidden = config.size("hidden_size")
    counts = []
    for key in ("linear_num_key_heads", "linear_num_value_heads"):
        counts.append(deployment.share(config, key, config.size(key)))
    keys, values = counts
    key_dim = config.size("linear_key_head_dim")
    value_dim = config.size("linear_value_head_dim")
    channels = 2 * keys * key_dim + values * value_dim
    linear = Projections(config).linear
    yield from linear("delta net, input", channels + values * value_dim, hidden)
    yield from linear("delta net, gates", 2 * values, hidden)
    yield from _convolution(
        "delta net", channels, config.size("linear_conv_kernel_dim", default=4)
    )
    shape = f"qk{keys}_v{values}_d{key_dim}_k_last"
    for stage in ("decode", "prefill"):
        yield Need(f"delta net, {stage}", "gdn", f"gdn_{stage}_{shape}")
    name = f"gated_rmsnorm_h{value_dim}"
    eps = {"eps": norms["eps"]}
    yield Need("delta net, gated norm", "gated_rmsnorm", name, eps)
    yield from linear("delta net, output", hidden, values * value_dim)


def _mamba(config: Config, deployment: Deployment, norms: Norms) -> Iterator[Need]:
    hidden = config.size("hidden_size")
    key = "mamba_num_heads"
    heads = deployment.share(config, key, config.size(key))
    dim, state = config.size("mamba_head_dim"), config.size("ssm_state_size")
    groups = deployment.share(config, "n_groups", config.size("n_groups"))
    inner = heads * dim
    channels = inner + 2 * groups * state
    linear = Projections(config).linear
    yield from linear("Mamba, input", inner + channels + heads, hidden)
    # Nemotron-H's default
    bias = "" if config.get("use_conv_bias") is False else "bias_"
    width = config.size("conv_kernel", default=4)
    yield from _convolution("Mamba", channels, width, bias)
    shape = f"h{heads}_d{dim}_s{state}_ng{groups}"
    yield Need("Mamba, decode", "mamba_ssu", f"mamba_ssu_decode_{shape}")
    yield Need("Mamba, prefill", "mamba_ssd", f"mamba_ssd_prefill_{shape}")
    name = f"gated_group_rmsnorm_h{inner}_ng{groups}"
    yield Need("Mamba, gated norm", "gated_rmsnorm", name, {"eps": norms["eps"]})
    yield from linear("Mamba, output", hidden, inner)


def _convolution(
    module: str, channels: int, width: int, bias: str = ""
) -> Iterator[Need]:
    for stage in ("fwd", "update"):
        name = f"causal_conv1d_{stage}_{bias}d{channels}_w{width}"
        yield Need(f"{module}, convolution ({stage})", "causal_conv1d", name)
