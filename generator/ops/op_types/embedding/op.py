"""embedding: the row of each token in a vocabulary, or in a shard of it, 0 for others.

Gemma multiplies by the root of hidden_size, which it rounds to bfloat16 first.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.embedding.relations import embedding_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.lazy_weights import Tiled, base_length, fresh
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=0.0, nmse=1.6e-5),
        "a product of two bfloat16 numbers, rounded once to bfloat16: half an ulp is "
        "2^-8 of a value at most, and 2^-16 = 1.53e-5 its square",
        source="oracle",
        constant="scaled",
    ),
    Override("output", EXACT, "rows are copied, or multiplied and rounded once"),
)
# of the table, at a time
_TABLES = 2


def cases(definition: Definition) -> list[Case]:
    """Return batches of tokens at a shard's edges, inside of it, and outside.

    The shard of many tokens is one of ids beyond 262,144; a whole vocabulary is shard 0.
    """
    if "vocab_start" not in definition.interface.inputs:
        return [
            Case("one-token", "small", {"num_tokens": 1}, {"shard": 0}),
            Case("edges-and-repeated", "small", {"num_tokens": 9}, {"shard": 0}),
            Case("batch", "medium", {"num_tokens": 67}, {"shard": 0}),
            past_limits("num_tokens", 2_075, {"shard": 0}),
            Case("long-batch", "large", {"num_tokens": 8192}, {"shard": 0}),
        ]
    shard = (1 << 18) // definition.axes["vocab_size"] + 1
    return [
        Case("one-token", "small", {"num_tokens": 1}, {"shard": 0}),
        Case("edges-of-a-shard", "small", {"num_tokens": 9}, {"shard": 2}),
        Case("batch", "medium", {"num_tokens": 67}, {"shard": 1}),
        past_limits("num_tokens", 2_075, {"shard": shard}),
        Case("long-batch", "large", {"num_tokens": 8192}, {"shard": 0}),
    ]


def peak_bytes(definition: Definition, case: Case) -> int:
    """Return an upper bound of the bytes that run() or a kernel needs for a case.

    The table is made when a callee asks for it, once, and of a relation or for a kernel
    once more.
    """
    axes = definition.axes
    table: int = 2 * axes["vocab_size"] * axes["hidden_size"]
    rest = tensor_bytes(definition, case) - table
    return _TABLES * table + COPIES * rest


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return input_ids int64 [num_tokens], weight bfloat16, vocab_start.

    The weight, [vocab_size, hidden_size], is lazy (`Tiled`). The first tokens are the last and the first of the shard, then those before and
    behind it; three in four of the others lie in the shard. Of a whole vocabulary all
    tokens are its own, and of the first four two are its edges.
    """
    count, shard = case.axes["num_tokens"], case.params["shard"]
    rows, columns = (definition.axes[axis] for axis in ("vocab_size", "hidden_size"))
    start = shard * rows
    edges = [start + rows - 1, start, start + rows, max(start - 1, 0)]
    drawn = stream.child("tokens").integers(0, 4 * rows, count)
    ids = [start + n % rows if n < 3 * rows else n for n in drawn]
    base = stream.child("weight").values((base_length((rows, columns)),))
    tokens = torch.tensor((edges + ids)[:count])
    weight = Tiled(base.to(torch.bfloat16), (rows, columns))
    if "vocab_start" not in definition.interface.inputs:
        return {"input_ids": tokens % rows, "weight": weight}
    return {"input_ids": tokens, "weight": weight, "vocab_start": start}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [num_tokens, hidden_size], looked up one by one."""
    weight, start = inputs["weight"], inputs.get("vocab_start", 0)
    factor = 1.0
    if definition.constants.get("scaled"):
        root = math.sqrt(definition.axes["hidden_size"])
        factor = torch.tensor(root, dtype=torch.bfloat16).item()
    output = torch.zeros(len(inputs["input_ids"]), weight.shape[1], dtype=torch.float64)
    output = output.to(weight.device)
    for place, token in enumerate(inputs["input_ids"].tolist()):
        if start <= token < start + len(weight):
            output[place] = factor * weight[token - start].double()
    return output


_LOOKED_UP = (
    "outputs rewritten: the adapter looks rows up by what the kernel masks, and scales "
    "and masks them"
)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's kernel of shards, and its PyTorch code, which masks tokens alone.

    Of Gemma's rows it has no kernel that multiplies.
    """
    if "vocab_start" not in definition.interface.inputs:
        return ()
    native = Backend("native", needs_cuda=False, rewrites=_LOOKED_UP)
    if definition.constants.get("scaled"):
        return (native,)
    return (Backend("triton", needs=("triton",)), native)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the rows of a shard as SGLang's layer makes them before the all-reduce."""
    tokens, start = inputs["input_ids"], inputs["vocab_start"]
    weight = fresh(inputs["weight"], tokens.device)
    end = start + len(weight)
    # no rows of padding, no words added behind the vocabulary
    shard = (start, end, 0, end, end)
    if backend == "triton":
        from sglang.kernels.ops.embeddings.vocab_parallel_embedding import (
            vocab_parallel_embedding,
        )

        rows: torch.Tensor = vocab_parallel_embedding(tokens, weight, *shard)
        return rows
    from sglang.srt.layers.vocab_parallel_embedding import get_masked_input_and_mask

    # the function is compiled for its speed, which would take a C++ compiler here
    with torch.compiler.set_stance("force_eager"):
        places, foreign = get_masked_input_and_mask(tokens, *shard)
    output = torch.nn.functional.embedding(places.long(), weight)
    if definition.constants.get("scaled"):
        root = definition.axes["hidden_size"] ** 0.5
        output = output * torch.tensor(root, dtype=output.dtype)
    return output.masked_fill_(foreign.unsqueeze(-1), 0)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the CUDA kernel of a whole vocabulary: of Gemma's rows, that of bags."""
    if "vocab_start" in definition.interface.inputs:
        return ()
    scaled = definition.constants.get("scaled")
    return (Backend("embedding_bag" if scaled else "embedding"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the rows as models look them up.

    Gemma's come of bags of one token each, weighed by the factor, which is bfloat16: in
    one kernel what models do in two.
    """
    tokens, weight = inputs["input_ids"], inputs["weight"]
    if backend == "embedding":
        return torch.nn.functional.embedding(tokens, weight)
    root = definition.axes["hidden_size"] ** 0.5
    factor = torch.tensor(root, dtype=weight.dtype, device=weight.device)
    bags = tokens.unsqueeze(1)
    return torch.nn.functional.embedding_bag(
        bags, weight, mode="sum", per_sample_weights=factor.expand(bags.shape)
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    peak_bytes=peak_bytes,
    relations=embedding_relations,
    tolerances=TOLERANCES,
    kernels={
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
