"""mla_ragged: multi-head latent attention before compression, over contiguous keys.

Every query head has its own key and value head. Keys have a rotary part, values have
none and are shorter. The causal mask is aligned bottom-right; LSE is base 2.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.attention.cases import ragged_cases, ragged_inputs
from generator.ops.attention.flashinfer import FA2, FA3, ragged_prefill
from generator.ops.attention.oracle import oracle_ragged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.tolerances import LSE_OF_MANY_KEYS, attention_tolerances
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (*attention_tolerances(products=192, total=740), LSE_OF_MANY_KEYS)


def cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over contiguous keys."""
    return ragged_cases(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `ragged_inputs` for their shapes."""
    axes = definition.axes
    return ragged_inputs(definition, case, stream, axes["qk_dim"], axes["vo_dim"])


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention in float64.

    output [total_q, num_qo_heads, vo_dim], LSE [total_q, num_qo_heads].
    """
    return oracle_ragged(inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, both generations of the prefill kernel."""
    return (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's ragged prefill."""
    axes = definition.axes
    return ragged_prefill(definition, inputs, backend, axes["qk_dim"], axes["vo_dim"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
