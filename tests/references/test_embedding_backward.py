"""Reference tests of op_type embedding_backward.

Rendered: don't edit. `gen-tests --op-type embedding_backward` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.embedding_backward.relations import table_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.embedding_backward.relations

_UNIT = 2.0**-8
# of 2^20 elements one is beyond so many deviations with a probability of 10^-6
_DEVIATIONS = 7.5
_CHUNK = 32


def _places(definition: Definition, case: Case) -> float:
    """Return how many gradients are summed at most."""
    return float(case.axes["num_tokens"])


def _in_chunks(places: int) -> Override:
    """Return the bounds of the kernel where so many places, in several chunks, are summed.

    The model and its constants are those of `kernel_judge.bounds`, row by row.
    """
    chunks = places // _CHUNK
    of_sum = _DEVIATIONS * _UNIT
    return Override(
        "grad_weight",
        Tolerance(
            rtol=round(3 * _UNIT + of_sum * math.sqrt(chunks) / 3.0, 4),
            atol=3e-7,
            nmse=round(2.5e-6 * (2.5 + chunks / 2.0), 7),
            of_row=round(of_sum * math.sqrt(chunks / 6.0 + 1.0 / 3.0), 4),
        ),
        f"the kernel rounds the sums of {_CHUNK} places to bfloat16 and adds these in "
        f"bfloat16, {chunks} at most: off by 2^-8/sqrt(3), root mean square, of each and "
        f"by 2^-8·sqrt({chunks}/6) in all, of which an element that happens to be small is "
        f"off by as much as its row's others, and by 2^-8·sqrt({chunks})/3 of itself: 7.5 "
        "deviations; and both outputs are rounded. A rounding makes 2.5e-6 of the power "
        "(2^-8/sqrt(3)/1.44, squared); those of growing sums half that",
        source="pytorch",
        growth=_places,
        where=lambda axes: _CHUNK < axes["num_tokens"] <= places,
    )


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
    *(_in_chunks(chunks * _CHUNK) for chunks in (4, 16, 96)),
    Override(
        "grad_weight",
        Tolerance(rtol=2 * _UNIT, atol=3e-7, nmse=1.6e-5),
        "two sums in float32, each rounded to bfloat16, to neighbours at most: 2^-7",
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


# ---- the interfaces

INTERFACE_EMBEDDING_BACKWARD = Interface(
    inputs={
        "grad_output": "bfloat16[num_tokens, hidden_size]",
        "input_ids": "int64[num_tokens]",
    },
    outputs={"grad_weight": "bfloat16[vocab_size, hidden_size]"},
)

# ---- the tests


class EmbeddingBackwardTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of embedding_backward share."""

    op_type = "embedding_backward"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) the kernel rounds the sums of 32 places to bfloat16 and adds these in bfloat16, 4
# at most.
# (3) the kernel rounds the sums of 32 places to bfloat16 and adds these in bfloat16, 16
# at most.
# (4) the kernel rounds the sums of 32 places to bfloat16 and adds these in bfloat16, 96
# at most.
# (5) two sums in float32, each rounded to bfloat16, to neighbours at most.


# Gradient of an embedding's table: each token's row gets the sum of the gradients of
# the places where the token stands, all other rows zeros. Summed in float32, rounded
# once to bfloat16.
# mode:training
# Tolerances:
#   output       source                 rtol     atol                      NMSE      reason
#   grad_weight  oracle                 0.004    3e-07*                    1.6e-05   (1)
#   grad_weight  pytorch of some sizes  0.0312   3e-07* + 0.029·row's RMS  1.13e-05  (2)
#   grad_weight  pytorch of some sizes  0.0508   3e-07* + 0.051·row's RMS  2.63e-05  (3)
#   grad_weight  pytorch of some sizes  0.107    3e-07* + 0.12·row's RMS   0.000126  (4)
#   grad_weight  pytorch                0.00781  3e-07*                    1.6e-05   (5)
def reference_embedding_backward():
    import torch

    VOCAB_SIZE = 50257


    @torch.no_grad()
    def run(grad_output: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        rows = grad_output.float()
        total = rows.new_zeros(VOCAB_SIZE, rows.shape[1])
        # Sums in one order on every device, as an atomic sum would not.
        total.index_put_((input_ids,), rows, accumulate=True)
        return total.to(grad_output.dtype)

    return run


class EmbeddingBackwardBase(EmbeddingBackwardTests):
    reference = staticmethod(reference_embedding_backward)
    interface = INTERFACE_EMBEDDING_BACKWARD
    axes = {"vocab_size": 50257}

class TestEmbeddingBackwardV50257H1600(EmbeddingBackwardBase):
    name = "embedding_backward_v50257_h1600"  # model:gpt2-xl
    axes = {"hidden_size": 1600}
    sha256 = "71ff7f6155e60079837cc7ea362bd811ac4ae9f0979d53557d75891e8f56bb50"

class TestEmbeddingBackwardV50257H768(EmbeddingBackwardBase):
    name = "embedding_backward_v50257_h768"  # model:gpt2
    axes = {"hidden_size": 768}
    sha256 = "df836b6de4cd19c730e1338976adc98ba6eedac6a16d6aa4f80f79f48e2c960f"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
