"""Domain mutants of sparse attention and its indexer."""

from __future__ import annotations

from generator.ops.attention import latent_mutants as latent
from generator.ops.mutants import MutantGroup
from generator.ops.op_types.dsa_paged import indexer_mutants as indexer

MUTANTS = (
    MutantGroup(latent.mutants, f"sm_scale output lse {latent.LATENT}"),
    MutantGroup(latent.sparse_mutants, "sparse_indices ckv_cache page_size"),
    MutantGroup(
        indexer.mutants,
        "q_index_fp8 k_index_cache_fp8 weights seq_lens block_table page_size",
    ),
)
