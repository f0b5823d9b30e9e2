"""Domain mutants of attention over contiguous keys."""

from __future__ import annotations

from generator.ops.attention.mutants import ATTENTION, gqa_mutants
from generator.ops.mutants import MutantGroup

MUTANTS = (MutantGroup(gqa_mutants, f"{ATTENTION} q k v num_kv_heads"),)
