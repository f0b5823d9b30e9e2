"""embedding_backward: for each token of a table the sum of its places' gradients.

The production kernel is the one that PyTorch's embedding calls in its backward pass. It
adds chunks of 32 places in bfloat16: its bounds are those of the dtype.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.embedding_backward.relations import table_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _places(definition: Definition, case: Case) -> float:
    """Return how many gradients are summed at most."""
    return float(case.axes["num_tokens"])


TOLERANCES = (
    Override(
        "grad_weight",
        Tolerance(rtol=4e-3, atol=3e-7, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        "1.53e-5 its square; a float32 sum of n gradients of 5 is off by fewer than n "
        "roundings of 2^-24 of them",
        source="oracle",
        growth=_places,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, the table's edges, one token many times, and a text."""
    return [
        Case("one-token", "small", {"num_tokens": 1}, {"tokens": 1}),
        Case("edges-and-repeated", "small", {"num_tokens": 11}, {"tokens": 5}),
        Case("one-many-times", "small", {"num_tokens": 70}, {"tokens": 1}),
        Case("batch", "medium", {"num_tokens": 67}, {"tokens": 40}),
        Case("past-limits", LIMITS, {"num_tokens": 2_075}, {"tokens": 700}),
        Case("long-batch", "large", {"num_tokens": 8_192}, {"tokens": 4_000}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return grad_output bfloat16 [num_tokens, hidden_size] and input_ids int64.

    The tokens are among as many as the case says: the last, the first, and others.
    """
    count, size = case.axes["num_tokens"], definition.axes["vocab_size"]
    others = stream.child("vocabulary").integers(1, size - 1, case.params["tokens"])
    known = [size - 1, 0, *others][: case.params["tokens"]]
    places = stream.child("places").integers(0, len(known), count)
    ids = [*known, *(known[place] for place in places)][:count]
    shape = (count, definition.axes["hidden_size"])
    grad = 0.1 + stream.child("grad_output").values(shape)
    return {
        "grad_output": grad.to(torch.bfloat16),
        "input_ids": torch.tensor(ids),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the table's gradient, float64 [vocab_size, hidden_size], place by place."""
    rows = inputs["grad_output"].double()
    total: torch.Tensor = rows.new_zeros((definition.axes["vocab_size"], rows.shape[1]))
    for row, token in zip(rows, inputs["input_ids"].tolist(), strict=True):
        total[token] += row
    return total


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernel of the backward pass of torch.nn.functional.embedding."""
    return (Backend("embedding_dense_backward"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the table's gradient, with no token taken as padding."""
    size = definition.axes["vocab_size"]
    return torch.ops.aten.embedding_dense_backward(
        inputs["grad_output"], inputs["input_ids"], size, -1, False
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=table_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
