"""Shards of heads and columns: a rank whose answer depends on the others' is found."""

from __future__ import annotations

import pytest

from generator.ops.op_types.block_sparse import op as block_sparse
from generator.ops.op_types.dsa_paged import op as dsa_paged
from generator.ops.op_types.gdn import op as gdn
from generator.ops.op_types.gemm_fp8 import op as gemm_fp8
from generator.ops.op_types.gqa_single import op as gqa_single
from generator.ops.op_types.kda import op as kda
from generator.ops.op_types.mamba_ssd import op as mamba_ssd
from generator.ops.op_types.mamba_ssu import op as mamba_ssu
from generator.ops.op_types.mla_paged import op as mla_paged
from tests.unit.ops.geometries import GDN, SPARSE, definition_and_run
from tests.unit.ops.related import red

LATENT = {"num_qo_heads": 4, "head_dim_ckv": 32, "head_dim_kpe": 8, "page_size": 8}
GROUPS = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 16}
STATES = {"nheads": 4, "ngroups": 2, "dstate": 8}
HEADS = "head-shards-concatenate"
SHARDED = [
    (mla_paged, "mla_paged_decode_h16_ckv512_kpe64_ps64", LATENT, HEADS),
    (dsa_paged, "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64", SPARSE, HEADS),
    (gqa_single, "gqa_single_decode_h32_kv8_d128", GROUPS, HEADS),
    (block_sparse, "block_sparse_run_r64_c64_h12_kv12_d128", GROUPS, HEADS),
    (gdn, "gdn_decode_qk4_v8_d128_k_last", GDN, HEADS),
    (kda, "kda_prefill_h8_d128", {"num_heads": 2, "head_dim": 16}, HEADS),
    (mamba_ssu, "mamba_ssu_decode_h64_d64_s128_ng4", STATES, HEADS),
    (mamba_ssd, "mamba_ssd_prefill_h64_d64_s128_ng4", STATES, HEADS),
    (
        gemm_fp8,
        "bmm_fp8_b64_n128_k512",
        {"batch_size": 2, "N": 8, "K": 256},
        "shards-concatenate",
    ),
]


@pytest.mark.parametrize(
    ("op", "name", "axes", "relation"), SHARDED, ids=[one[1] for one in SHARDED]
)
def test_what_all_shards_have_in_common_shows(op, name, axes, relation):
    definition, run = definition_and_run(name, axes)
    dim = -1 if op is gemm_fp8 else -2

    def centred(*given):
        found = run(*given)
        first, *others = found if isinstance(found, tuple) else (found,)
        first = first - first.mean(dim, keepdim=True)
        return (first, *others)

    assert red(op, definition, run) == set()
    assert relation in red(op, definition, centred)
