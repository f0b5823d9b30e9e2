"""gqa_ragged: grouped-query attention over contiguous keys and values.

`qo_indptr` delimits each sequence's queries, `kv_indptr` its keys and values. The causal
mask is aligned bottom-right; LSE is base 2. A name may state a sliding window (`w127`),
a soft cap (`cap50`), sinks, or that there is no mask (`noncausal`).
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.attention.cases import ragged_cases, ragged_inputs
from generator.ops.attention.flashinfer import prefill_backends, ragged_prefill
from generator.ops.attention.oracle import oracle_ragged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.tolerances import LSE_OF_MANY_KEYS, attention_tolerances
from generator.ops.attention.variant import variant_of
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (*attention_tolerances(products=256, total=800), LSE_OF_MANY_KEYS)


def cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over contiguous keys."""
    return ragged_cases(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `ragged_inputs` for their shapes."""
    axes = definition.axes
    return ragged_inputs(definition, case, stream, axes["head_dim"], axes["head_dim"])


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [total_q, num_qo_heads], in float64."""
    return oracle_ragged(inputs, variant_of(definition))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs, variant=variant_of(definition))


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's ragged prefill."""
    axes = definition.axes
    return ragged_prefill(
        definition, inputs, backend, axes["head_dim"], axes["head_dim"]
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(prefill_backends, flashinfer_ground_truth)},
)
