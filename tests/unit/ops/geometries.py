"""Small geometries that stand for all of an interface: the same defects, in less time."""

from __future__ import annotations

from tests.builders import known, loaded, replaced, run_of, sized

GQA = {"num_qo_heads": 6, "num_kv_heads": 2, "head_dim": 16}
ONE_KV_HEAD = {"num_qo_heads": 3, "num_kv_heads": 1, "head_dim": 16}
TWO_HEADS = {"num_qo_heads": 2}
SPARSE = {"num_qo_heads": 2, "topk": 256}
GDN = {"num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 4, "head_size": 16}
EXPERTS = {"hidden_size": 256, "intermediate_size": 128, "gemm1_out_size": 256}
BLOCKS = {
    "num_hidden_blocks": 2,
    "num_intermediate_blocks": 1,
    "num_gemm1_out_blocks": 2,
}
# w2 has a matrix of block scales too
WIDE_EXPERTS = {"hidden_size": 256, "intermediate_size": 256, "gemm1_out_size": 512}
WIDE_BLOCKS = {
    "num_hidden_blocks": 2,
    "num_intermediate_blocks": 2,
    "num_gemm1_out_blocks": 4,
}
VOCABULARY = {"vocab_size": 2048}

# one definition of every op family, and of every kind of geometry that it has
REPRESENTATIVES = (
    ("rmsnorm_h128", {}),
    ("rmsnorm_h5376", {}),
    ("fused_add_rmsnorm_h2048", {}),
    ("fused_add_rmsnorm_h5376", {}),
    ("gemm_n128_k2048", {}),
    ("gemm_n3584_k3584", {"N": 1024, "K": 1024}),
    ("gqa_paged_decode_h24_kv8_d128_ps1", GQA),
    ("gqa_paged_decode_h24_kv8_d128_ps64", GQA),
    ("gqa_paged_decode_h32_kv8_d128_ps64", GQA | {"page_size": 4}),
    ("gqa_paged_decode_h5_kv1_d128_ps1", ONE_KV_HEAD),
    ("gqa_paged_decode_h6_kv1_d128_ps64", ONE_KV_HEAD),
    ("gqa_paged_prefill_causal_h24_kv8_d128_ps1", GQA),
    ("gqa_paged_prefill_causal_h24_kv8_d128_ps64", GQA),
    ("gqa_paged_prefill_causal_h5_kv1_d128_ps64", ONE_KV_HEAD),
    ("gqa_ragged_prefill_causal_h24_kv8_d128", GQA),
    ("gqa_ragged_prefill_causal_h8_kv1_d256", ONE_KV_HEAD),
    ("mla_paged_decode_h16_ckv512_kpe64_ps64", TWO_HEADS),
    ("mla_paged_decode_h8_ckv512_kpe64_ps1", TWO_HEADS),
    ("mla_paged_prefill_causal_h16_ckv512_kpe64_ps64", TWO_HEADS),
    ("mla_paged_prefill_causal_h8_ckv512_kpe64_ps1", TWO_HEADS),
    (
        "mla_ragged_prefill_causal_h16_qk192_vo128",
        {"num_qo_heads": 3, "num_kv_heads": 3, "qk_dim": 24, "vo_dim": 16},
    ),
    ("dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps1", SPARSE),
    ("dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64", SPARSE),
    (
        "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64",
        {"num_index_heads": 8, "topk": 128, "page_size": 16},
    ),
    ("rope_with_cos_sin_cache_neox_style_d128_rd64", {}),
    ("gdn_decode_qk4_v8_d128_k_last", GDN),
    ("gdn_mtp_qk4_v8_d128_k_last", GDN),
    ("gdn_prefill_qk4_v8_d128_k_last", GDN),
    (
        "mamba_ssu_decode_h128_d64_s128_ng8",
        {"nheads": 8, "head_dim": 4, "dstate": 16, "ngroups": 2},
    ),
    ("top_k_sampling_from_probs_v128256", VOCABULARY),
    ("top_p_sampling_from_probs_v128256", VOCABULARY),
    ("top_k_top_p_sampling_from_probs_v128256", VOCABULARY),
    (
        "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048",
        WIDE_EXPERTS | WIDE_BLOCKS,
    ),
    (
        "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e48_h7168_i2048",
        EXPERTS | BLOCKS,
    ),
    (
        "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512",
        WIDE_EXPERTS | WIDE_BLOCKS,
    ),
    ("trtllm_fp4_block_scale_moe_topk8_e128_h2048_i768", EXPERTS),
    ("trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192", EXPERTS),
    ("trtllm_fp4_block_scale_routed_moe_topk8_e64_h4096_i1536", EXPERTS),
    ("trtllm_fp4_block_scale_routed_moe_topk1_e16_h5120_i8192", EXPERTS),
    ("trtllm_fp8_per_tensor_scale_moe_topk8_e128_h2048_i768", EXPERTS),
    ("trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192", EXPERTS),
)


def reference_of(name, axes):
    """Return a reference's text, its constants as the axes are."""
    text = loaded(name).reference
    if axes.get("topk") and "TOPK = " in text:
        text = replaced(text, "TOPK = 2048", f"TOPK = {axes['topk']}")
    return text


def definition_and_run(name, axes):
    """Return a definition of other axes, and its reference's run() for these."""
    return sized(name, **axes), run_of(reference_of(name, axes))


def reduced(name):
    """Return the axes in which a definition is tried where its own take too long.

    The numbers of heads, of experts and of groups stay: they are what mutants mix up.
    """
    definition = known(name)
    axes = definition.axes
    if definition.op_type == "gemm":
        square = axes["N"] == axes["K"]
        return {"N": min(axes["N"], 1024), "K": 1024 if square else 1536}
    if definition.op_type == "moe":
        return WIDE_EXPERTS | (WIDE_BLOCKS if name.startswith("moe_fp8_block") else {})
    return {
        "sampling": VOCABULARY,
        "gdn": {"head_size": 16},
        "mamba_ssu": {"head_dim": 4, "dstate": 16},
    }.get(definition.op_type, {})
