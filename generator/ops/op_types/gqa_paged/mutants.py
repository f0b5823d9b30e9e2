"""Domain mutants of grouped-query attention over pages."""

from __future__ import annotations

from generator.ops.attention import paged_mutants as paged
from generator.ops.attention.mutants import ATTENTION, gqa_mutants
from generator.ops.attention.variant_mutants import mutants as variant_mutants
from generator.ops.mutants import MutantGroup

MUTANTS = (
    MutantGroup(
        gqa_mutants, f"{ATTENTION} {paged.PAGES} q k_cache v_cache num_kv_heads"
    ),
    MutantGroup(paged.mutants, paged.PAGES),
    MutantGroup(variant_mutants, f"{ATTENTION} q k_cache v_cache num_kv_heads"),
)
