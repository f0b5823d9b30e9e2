"""Domain mutants of attention within chunks: those of attention, and other chunks."""

from __future__ import annotations

from collections.abc import Callable

import torch

from generator.ops.attention.mutants import ATTENTION, gqa_mutants
from generator.ops.attention.oracle import oracle_ragged
from generator.ops.attention.variant import Variant
from generator.ops.mutants import DomainMutant, Inputs, MutantGroup, Outputs, on_outputs
from generator.ops.op_types.chunked_attention.chunks import chunk_of, chunked_attention
from kernel_judge.definition import Definition

# inputs → output and LSE in float64
Wrong = Callable[[Inputs], tuple[torch.Tensor, torch.Tensor]]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects that a length of chunks allows."""
    chunk = chunk_of(definition)
    wrongs: dict[str, Wrong] = {
        "chunks missing": oracle_ragged,
        "chunks one key too long": lambda i: chunked_attention(i, chunk + 1),
        "chunks one key too short": lambda i: chunked_attention(i, chunk - 1),
        "chunks of half the length": lambda i: chunked_attention(i, chunk // 2),
        "sliding window for chunks": lambda i: oracle_ragged(
            i, Variant(window_left=chunk - 1)
        ),
    }
    defects = [_of_both(definition, name, wrong) for name, wrong in wrongs.items()]
    for place, name in enumerate(("output", "LSE")):
        missing = f"chunks missing in the {name}"
        defects.append(_of_both(definition, missing, oracle_ragged, place))
    return tuple(defects)


def _of_both(
    definition: Definition, name: str, wrong: Wrong, only: int | None = None
) -> DomainMutant:
    """Return the mutant whose outputs, or one of them, are others."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        wrongs = wrong(inputs)
        return tuple(
            right if only is not None and place != only else other.to(right.dtype)
            for place, (right, other) in enumerate(zip(outputs, wrongs, strict=True))
        )

    return on_outputs(definition, name, spoil)


_NEEDS = f"{ATTENTION} q k v num_kv_heads"
MUTANTS = (
    MutantGroup(gqa_mutants, _NEEDS),
    MutantGroup(mutants, f"{_NEEDS} attention_chunk_size"),
)
