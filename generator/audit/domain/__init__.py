"""Domain mutants: the defects that references of each op family are known to have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from generator.support.definition import Definition

from . import (
    attention,
    common,
    gdn,
    gemm,
    indexer,
    latent,
    mamba,
    moe,
    norm,
    paged,
    rope,
    sampling,
)
from .mutant import DomainMutant

Mutants = Callable[[Definition], tuple[DomainMutant, ...]]


@dataclass(frozen=True)
class _Family:
    """Say which definitions of an op_type have some mutants.

    `needs` are names that the mutants read: of inputs, outputs, axes and constants. A
    definition that lacks one has another interface, and none of the family's defects.
    """

    op_type: str
    mutants: Mutants
    needs: str

    def has(self, definition: Definition) -> bool:
        """Return whether a definition is of the family."""
        interface = definition.interface
        known = {*interface.inputs, *interface.outputs}
        known |= {*definition.axes, *definition.constants}
        return definition.op_type == self.op_type and known.issuperset(
            self.needs.split()
        )


_ATTENTION = "kv_indptr sm_scale output lse num_qo_heads"
_PAGES = "kv_indptr kv_indices page_size"
_LATENT = "q_nope q_pe ckv_cache kpe_cache head_dim_ckv head_dim_kpe num_qo_heads"
_GATED = "q k v A_log a dt_bias b scale output head_size num_k_heads num_v_heads"
_DRAFTS = "initial_state initial_state_indices intermediate_states_buffer final_state"
_PRECISE = {
    "rope": "q k cos_sin_cache",
    "gdn": _GATED,
    "mamba_ssu": "state x dt A",
    "sampling": "probs samples",
}
_FAMILIES = (
    _Family(
        "gqa_paged",
        attention.gqa_mutants,
        f"{_ATTENTION} {_PAGES} q k_cache v_cache num_kv_heads",
    ),
    _Family("gqa_paged", paged.mutants, _PAGES),
    _Family("gqa_ragged", attention.gqa_mutants, f"{_ATTENTION} q k v num_kv_heads"),
    _Family("mla_ragged", attention.gqa_mutants, f"{_ATTENTION} q k v num_kv_heads"),
    _Family("mla_paged", latent.mutants, f"{_ATTENTION} {_PAGES} {_LATENT}"),
    _Family("mla_paged", paged.mutants, _PAGES),
    _Family("dsa_paged", latent.mutants, f"sm_scale output lse {_LATENT}"),
    _Family("dsa_paged", latent.sparse_mutants, "sparse_indices ckv_cache page_size"),
    _Family(
        "dsa_paged",
        indexer.mutants,
        "q_index_fp8 k_index_cache_fp8 weights seq_lens block_table page_size",
    ),
    _Family(
        "rmsnorm", norm.mutants, "hidden_states weight hidden_size eps unit_offset"
    ),
    _Family("gemm", gemm.mutants, "A B N K"),
    _Family(
        "rope",
        rope.mutants,
        "q k cos_sin_cache positions head_size rotary_dim is_neox",
    ),
    _Family("gdn", gdn.mutants, f"{_GATED} state new_state"),
    _Family("gdn", gdn.mutants, f"{_GATED} {_DRAFTS}"),
    _Family(
        "mamba_ssu",
        mamba.mutants,
        "state x dt A B C D dt_bias state_batch_indices nheads ngroups",
    ),
    _Family("sampling", sampling.mutants, "probs samples"),
    # MoE has its own; the indexer's bounds are as wide
    *(
        _Family(op_type, common.rounded_inputs, needs)
        for op_type, needs in _PRECISE.items()
    ),
    _Family("moe", moe.mutants, "hidden_states gemm1_weights gemm2_weights top_k"),
)


def domain_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects that a definition's reference could have, named uniquely.

    What could not differ is left out: a head mapping of one KV head, a last page of one
    token. An op_type or interface without a family has the defects of any outputs.
    """
    families = [family for family in _FAMILIES if family.has(definition)]
    found = list(common.mutants(definition))
    for family in families:
        found += family.mutants(definition)
    return tuple(found)
