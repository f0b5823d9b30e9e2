"""Reference tests of op_type embedding.

Rendered: don't edit. `gen-tests --op-type embedding` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances stand at each reference; the dtype's default is that of
kernel_judge/comparison/tolerance.py. A recorded output has the tolerance of its kernel.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.embedding.relations import embedding_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    MatchesSGLang,
    Metamorphic,
    main,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.lazy_weights import Tiled, base_length, fresh
from kernel_judge.inputs.repeated import past_limits
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.embedding.relations

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


def cases(definition: Definition) -> list[Case]:
    """Return batches of tokens at a shard's edges, inside of it, and outside.

    The shard of many tokens is one of ids beyond 131,072.
    """
    shard = (1 << 17) // definition.axes["vocab_size"] + 1
    return [
        Case("one-token", "small", {"num_tokens": 1}, {"shard": 0}),
        Case("edges-of-a-shard", "small", {"num_tokens": 9}, {"shard": 2}),
        Case("batch", "medium", {"num_tokens": 67}, {"shard": 1}),
        past_limits("num_tokens", 2_075, {"shard": shard}),
        Case("long-batch", "large", {"num_tokens": 8192}, {"shard": 0}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return input_ids int64 [num_tokens], weight bfloat16, vocab_start.

    The weight, [vocab_size, hidden_size], is lazy (`Tiled`). The first tokens are the last and the first of the shard, then those before and
    behind it; three in four of the others lie in the shard.
    """
    count, shard = case.axes["num_tokens"], case.params["shard"]
    rows, columns = (definition.axes[axis] for axis in ("vocab_size", "hidden_size"))
    start = shard * rows
    edges = [start + rows - 1, start, start + rows, max(start - 1, 0)]
    drawn = stream.child("tokens").integers(0, 4 * rows, count)
    ids = [start + n % rows if n < 3 * rows else n for n in drawn]
    base = stream.child("weight").values((base_length((rows, columns)),))
    return {
        "input_ids": torch.tensor((edges + ids)[:count]),
        "weight": Tiled(base.to(torch.bfloat16), (rows, columns)),
        "vocab_start": start,
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [num_tokens, hidden_size], looked up one by one."""
    weight, start = inputs["weight"], inputs["vocab_start"]
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


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls with related tokens and shards."""
    return embedding_relations(definition)


_LOOKED_UP = (
    "outputs rewritten: the adapter looks rows up by what the kernel masks, and scales "
    "and masks them"
)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which runs anywhere; it masks tokens alone."""
    return (Backend("native", needs_cuda=False, rewrites=_LOOKED_UP),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Mask tokens, look rows up and scale them as SGLang's layers and Gemma 2 do."""
    from sglang.srt.layers.vocab_parallel_embedding import get_masked_input_and_mask

    tokens, start = inputs["input_ids"], inputs["vocab_start"]
    weight = fresh(inputs["weight"], tokens.device)
    end = start + len(weight)
    # the function is compiled for its speed, which would take a C++ compiler here
    with torch.compiler.set_stance("force_eager"):
        rows, foreign = get_masked_input_and_mask(tokens, start, end, 0, end, end)
    output = torch.nn.functional.embedding(rows.long(), weight)
    if definition.constants.get("scaled"):
        root = definition.axes["hidden_size"] ** 0.5
        output = output * torch.tensor(root, dtype=output.dtype)
    return output.masked_fill_(foreign.unsqueeze(-1), 0)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_EMBEDDING = Interface(
    inputs={
        "input_ids": "int64[num_tokens]",
        "weight": "bfloat16[vocab_size, hidden_size]",
        "vocab_start": "int64",
    },
    outputs={"output": "bfloat16[num_tokens, hidden_size]"},
)

# ---- the tests


class EmbeddingTests(GroundTruthsAgree, MatchesSGLang, MatchesRecorded, Metamorphic):
    """What the tests of embedding share."""

    op_type = "embedding"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference as its definitions have it, then a class for each definition.
# Tolerances: the first row that applies counts; an atol* grows with the values of a case.
# Reasons, each derived with its bound:
# (1) rows are copied, or multiplied and rounded once.
# (2) a product of two bfloat16 numbers, rounded once to bfloat16.


# Embedding: each token's row of the table. The table is one GPU's part of the
# vocabulary, tokens vocab_start to vocab_start + vocab_size - 1; a token of another
# part gives zeros, so that the parts add up.
# Tolerances:
#   output  source          rtol   atol  NMSE  reason
#   output  oracle, sglang  exact              (1)
def reference_embedding():
    import torch


    @torch.no_grad()
    def run(
        input_ids: torch.Tensor, weight: torch.Tensor, vocab_start: int
    ) -> torch.Tensor:
        rows = input_ids - vocab_start
        is_here = (rows >= 0) & (rows < weight.shape[0])
        found = weight[torch.where(is_here, rows, 0)]
        return torch.where(is_here.unsqueeze(1), found, 0.0)

    return run


class EmbeddingBase(EmbeddingTests):
    reference = staticmethod(reference_embedding)
    interface = INTERFACE_EMBEDDING

class TestEmbeddingV128256H4096(EmbeddingBase):
    name = "embedding_v128256_h4096"  # model:llama-3.1-8b, tp:1
    axes = {"vocab_size": 128256, "hidden_size": 4096}
    sha256 = "1074a4e36691e816ee78f86f9073c54ef9f9349182940721f3157ba4cdb12f7d"

# model:qwen3-30b-a3b, model:qwen3-next-80b-a3b, tp:1
class TestEmbeddingV151936H2048(EmbeddingBase):
    name = "embedding_v151936_h2048"
    axes = {"vocab_size": 151936, "hidden_size": 2048}
    sha256 = "c19eeb40a8ed4b3d5692e9bfc2bdce1dbd218d82b1e8947809c4b08e70a04cdc"

class TestEmbeddingV16032H2048(EmbeddingBase):
    name = "embedding_v16032_h2048"  # model:llama-3.2-1b, tp:8
    axes = {"vocab_size": 16032, "hidden_size": 2048}
    sha256 = "da5dcc0366ead259db873b50f480b0fb85ba796b9e1317b3eb66f3d9a8b7909d"

class TestEmbeddingV16032H4096(EmbeddingBase):
    name = "embedding_v16032_h4096"  # model:llama-3.1-8b, tp:8
    axes = {"vocab_size": 16032, "hidden_size": 4096}
    sha256 = "dc6222046e1701e56db5726551cc3423e4cb0156727e3b0d79edc5a2d1b87516"

class TestEmbeddingV16384H4096(EmbeddingBase):
    name = "embedding_v16384_h4096"  # model:nemotron-h-8b, tp:8
    axes = {"vocab_size": 16384, "hidden_size": 4096}
    sha256 = "72d6d5f4af1138a5a4f785070beb8268ee9832d3068f8062b71d2569b9fc752a"

# model:qwen3-30b-a3b, model:qwen3-next-80b-a3b, tp:8
class TestEmbeddingV18992H2048(EmbeddingBase):
    name = "embedding_v18992_h2048"
    axes = {"vocab_size": 18992, "hidden_size": 2048}
    sha256 = "4c135e18981fb579ed1fe1957e80b226e01ff98469e3f1db3db827ce7ab07b2f"

class TestEmbeddingV25136H2880(EmbeddingBase):
    name = "embedding_v25136_h2880"  # model:gpt-oss-120b, model:gpt-oss-20b, tp:8
    axes = {"vocab_size": 25136, "hidden_size": 2880}
    sha256 = "04886bf9c6012310c0b858ea1a5531681b68444ee8b07cd12dea21726d10bec6"

class TestEmbeddingV8080H7168(EmbeddingBase):
    name = "embedding_v8080_h7168"  # model:deepseek-v3, model:deepseek-r1, tp:16
    axes = {"vocab_size": 8080, "hidden_size": 7168}
    sha256 = "c4180a6291dcb1c877df1908d9d3479fc0cc0084add9a2d5734f5319224ce809"


# Embedding: each token's row of the table. The table is one GPU's part of the
# vocabulary, tokens vocab_start to vocab_start + vocab_size - 1; a token of another
# part gives zeros, so that the parts add up. Rows are multiplied by the root of
# hidden_size, rounded to bfloat16 first.
# model:gemma-3-27b, tp:16
# Tolerances:
#   output  source  rtol   atol  NMSE     reason
#   output  oracle  0.004  0     1.6e-05  (2)
#   output  sglang  exact                 (1)
def reference_gemma_embedding():
    import math

    import torch


    @torch.no_grad()
    def run(
        input_ids: torch.Tensor, weight: torch.Tensor, vocab_start: int
    ) -> torch.Tensor:
        rows = input_ids - vocab_start
        is_here = (rows >= 0) & (rows < weight.shape[0])
        found = weight[torch.where(is_here, rows, 0)]
        # Gemma rounds the factor to bfloat16 before the product is rounded.
        factor = torch.tensor(math.sqrt(weight.shape[1]), device=weight.device)
        scaled = found * factor.to(weight.dtype)
        return torch.where(is_here.unsqueeze(1), scaled, 0.0)

    return run


class TestGemmaEmbeddingV16388H5376(EmbeddingTests):
    name = "gemma_embedding_v16388_h5376"
    reference = staticmethod(reference_gemma_embedding)
    interface = INTERFACE_EMBEDDING
    axes = {"vocab_size": 16388, "hidden_size": 5376}
    constants = ("scaled",)
    SCALED = True  # "gemma" in the name
    sha256 = "37cd1becf5ef42ecb0256f5c26b73887376a6582e7a34e89135031254c2cf6c1"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
