"""Domain mutants of latent attention over pages."""

from __future__ import annotations

from generator.ops.attention import latent_mutants as latent
from generator.ops.attention import paged_mutants as paged
from generator.ops.attention.mutants import ATTENTION
from generator.ops.attention.variant_mutants import mask_mutants
from generator.ops.mutants import MutantGroup

MUTANTS = (
    MutantGroup(latent.mutants, f"{ATTENTION} {paged.PAGES} {latent.LATENT}"),
    MutantGroup(paged.mutants, paged.PAGES),
    MutantGroup(mask_mutants, f"{paged.PAGES} {latent.LATENT}"),
    MutantGroup(
        latent.stored_mutants, "ckv_scale kpe_scale ckv_cache kpe_cache output"
    ),
)
