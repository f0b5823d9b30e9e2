"""Domain mutants of attention over contiguous keys."""

from __future__ import annotations

from generator.ops.attention.mutants import ATTENTION, gqa_mutants
from generator.ops.attention.variant_mutants import mutants as variant_mutants
from generator.ops.mutants import MutantGroup

_NEEDS = f"{ATTENTION} q k v num_kv_heads"

MUTANTS = (MutantGroup(gqa_mutants, _NEEDS), MutantGroup(variant_mutants, _NEEDS))
