"""Definitions needed by latent attention, and by DeepSeek's sparse attention."""

from __future__ import annotations

from collections.abc import Iterator

from generator.models.architectures import FULL
from generator.models.attention import cache_word, has_bias, scaled_queries
from generator.models.config import Config
from generator.models.deployed import Deployed
from generator.models.need import Need, norm
from generator.models.parallel import Deployment
from generator.models.projections import (
    FP8_BLOCK,
    Projections,
    quantisation,
    quantised,
)

_INDEXER_EPS = 1e-6
"""No config has it: it is the default of the model's code."""


def latent(model: Deployed) -> Iterator[Need]:
    """Yield what layers with latent attention need. Raises Failure as figures do."""
    config, deployment, norms = model.config, model.deployment, model.norms
    hidden = config.size("hidden_size")
    heads = deployment.share(
        config, "num_attention_heads", config.size("num_attention_heads")
    )
    # each head has its own keys, made of the latent, of the lengths below; what RoPE
    # has beside them is in the cache of cosines and in sm_scale
    config.get("num_key_value_heads", "head_dim", "rope_parameters", "rope_scaling")
    ckv, kpe = config.size("kv_lora_rank"), config.size("qk_rope_head_dim")
    nope, value = config.size("qk_nope_head_dim"), config.size("v_head_dim")
    of = model.projections(FULL)
    bias = has_bias(config, "qkv")
    kv_a = "self_attn.kv_a_proj_with_mqa"
    rank = config.count("q_lora_rank")
    query = (heads * (nope + kpe), rank or hidden)
    if rank:
        # SGLang multiplies once by both
        compressed = "query, key and value compression"
        size = rank + ckv + kpe
        yield from of.linear(
            compressed, size, hidden, "self_attn.q_a_proj", kv_a, bias=bias
        )
        yield norm("norm of the query", rank, norms, "q_a_layernorm")
        yield from of.linear(
            "query projection", *query, "self_attn.q_b_proj", divided="n"
        )
    else:
        yield from of.linear(
            "query projection", *query, "self_attn.q_proj", divided="n"
        )
        module = "key and value compression"
        yield from of.linear(module, ckv + kpe, hidden, kv_a, bias=bias)
    yield norm("norm of the latent", ckv, norms, "kv_a_layernorm")
    style = config.architecture.rope
    if not style and not config.flag("mla_use_nope", default=True):
        config.refuse("mla_use_nope", "is false: here no RoPE turns")
    turns_neighbours = config.flag("rope_interleave", default=style == "gptj")
    if style:
        style = "gptj" if turns_neighbours else "neox"
        rope = f"rope_with_cos_sin_cache_{style}_style_d{kpe}_rd{kpe}"
        yield Need("RoPE", "rope", rope)
    # YaRN is in the cache of cosines and sines, and in the input sm_scale
    yield from scaled_queries(model, heads, nope + kpe)
    append = f"append_paged_mla_kv_cache_{cache_word(deployment)}ckv{ckv}_kpe{kpe}"
    yield Need("append to the cache", "page_append", append)
    if config.architecture.mixer == "dsa":
        yield from _indexer(config, deployment, of, rank)
    # decoding stays in the latent space: two products by parts of kv_b_proj's weight
    yield _absorbed(config, "queries into the latent space", heads, ckv, nope)
    ends = f"h{heads}_ckv{ckv}_kpe{kpe}"
    paged = f"{cache_word(deployment)}{ends}_ps{deployment.page_size}"
    if config.architecture.mixer == "dsa":
        last = f"topk{config.size('index_topk')}_ps{deployment.page_size}"
        sparse = f"dsa_sparse_attention_{cache_word(deployment)}{ends}_{last}"
        yield Need("sparse attention", "dsa_paged", sparse)
    else:
        yield Need("decode", "mla_paged", f"mla_paged_decode_{paged}")
        prefill = f"mla_paged_prefill_causal_{paged}"
        yield Need("prefill, paged", "mla_paged", prefill)
    yield _absorbed(config, "outputs from the latent space", heads, value, ckv)
    module = "key and value projection"
    size = heads * (nope + value)
    yield from of.linear(module, size, ckv, "self_attn.kv_b_proj", divided="n")
    # of V3.2 where a sequence is no longer than what the indexer chooses
    ragged = f"mla_ragged_prefill_causal_h{heads}_qk{nope + kpe}_vo{value}"
    yield Need("prefill, ragged", "mla_ragged", ragged)
    yield from of.linear(
        "output projection",
        hidden,
        heads * value,
        "self_attn.o_proj",
        divided="k",
        bias=has_bias(config, "o"),
    )


def _absorbed(config: Config, module: str, heads: int, n: int, k: int) -> Need:
    """Return one product a head; of block-scaled weights SGLang makes one scale."""
    if quantisation(config) == FP8_BLOCK:
        return Need(module, "gemm_fp8", f"bmm_fp8_b{heads}_n{n}_k{k}")
    return Need(module, "gemm", f"bmm_bf16_b{heads}_n{n}_k{k}")


def _indexer(
    config: Config, deployment: Deployment, of: Projections, rank: int
) -> Iterator[Need]:
    """Yield what chooses the keys that a query sees (SGLang's dsa_indexer.py)."""
    hidden, page_size = config.size("hidden_size"), deployment.page_size
    # layers that are "shared" take the choice of one before: they need nothing more
    config.get("indexer_types")
    heads, length = config.size("index_n_heads"), config.size("index_head_dim")
    kpe, top = config.size("qk_rope_head_dim"), config.size("index_topk")
    source = rank or hidden
    yield from of.linear("indexer, queries", heads * length, source, "indexer.wq_b")
    yield from of.linear("indexer, keys", length, hidden, "indexer.wk")
    name, eps = f"layernorm_eps_1em6_h{length}", {"eps": _INDEXER_EPS}
    yield Need(
        "indexer, norm of the keys",
        "layernorm",
        name,
        eps,
        also=(f"layernorm_h{length}",),
        at=("indexer.k_norm",),
    )
    style = config.architecture.indexer_rope
    name = f"rope_with_cos_sin_cache_{style}_style_d{length}_rd{kpe}"
    yield Need("indexer, RoPE", "rope", name)
    name = f"hadamard_transform_d{length}"
    yield Need("indexer, Hadamard", "quantization", name)
    yield quantised("indexer, queries to 8 bits", length)
    name = f"append_paged_index_k_cache_fp8_d{length}_ps{page_size}"
    yield Need("indexer, keys to 8 bits and to the cache", "page_append", name)
    yield of.plain("indexer, weights of heads", heads, hidden, "indexer.weights_proj")
    last = f"topk{top}_ps{page_size}"
    name = f"dsa_topk_indexer_fp8_h{heads}_d{length}_{last}"
    yield Need("indexer", "dsa_paged", name)
    name = f"top_k_page_table_transform_k{top}_ps{page_size}"
    yield Need("indexer, places in the cache", "topk_transform", name)
    name = f"top_k_ragged_transform_k{top}"
    yield Need("indexer, places in a prefill", "topk_transform", name)
