"""Domain mutants: the defects that references of each op family are known to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generator.support.definition import Definition

from . import attention, common, gemm, latent, norm, paged, rope
from .mutant import DomainMutant

Mutants = Callable[[Definition], tuple[DomainMutant, ...]]


def _of_dsa(definition: Definition) -> tuple[DomainMutant, ...]:
    if "sparse_indices" in definition.interface.inputs:
        return (*latent.mutants(definition), *latent.sparse_mutants(definition))
    return ()


_FAMILIES: Mapping[str, tuple[Mutants, ...]] = {
    "gqa_paged": (attention.gqa_mutants, paged.mutants),
    "gqa_ragged": (attention.gqa_mutants,),
    "mla_ragged": (attention.gqa_mutants,),
    "mla_paged": (latent.mutants, paged.mutants),
    "dsa_paged": (_of_dsa,),
    "rmsnorm": (norm.mutants,),
    "gemm": (gemm.mutants,),
    "rope": (rope.mutants,),
}


def domain_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects that a definition's reference could have, named uniquely.

    An op_type without a family gets those of its outputs alone.
    """
    families = (common.mutants, *_FAMILIES.get(definition.op_type, ()))
    return tuple(mutant for family in families for mutant in family(definition))
