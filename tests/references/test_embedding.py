"""Reference tests of op_type embedding.

Rendered: don't edit. `gen-tests --op-type embedding` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.embedding.relations import embedding_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.lazy_weights import Tiled, base_length, fresh
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
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


# ---- the interfaces

INTERFACE_EMBEDDING = Interface(
    inputs={
        "input_ids": "int64[num_tokens]",
        "weight": "bfloat16[vocab_size, hidden_size]",
    },
    outputs={"output": "bfloat16[num_tokens, hidden_size]"},
)
INTERFACE_EMBEDDING_2 = Interface(
    inputs={
        "input_ids": "int64[num_tokens]",
        "weight": "bfloat16[vocab_size, hidden_size]",
        "vocab_start": "int64",
    },
    outputs={"output": "bfloat16[num_tokens, hidden_size]"},
)

# ---- the tests


class EmbeddingTests(
    GroundTruthsAgree, matches("sglang", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of embedding share."""

    op_type = "embedding"
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
# (1) rows are copied, or multiplied and rounded once.
# (2) a product of two bfloat16 numbers, rounded once to bfloat16.


# Embedding: each token's row of the table, which has all of the vocabulary.
# Tolerances:
#   output  source                   rtol   atol  NMSE  reason
#   output  oracle, sglang, pytorch  exact              (1)
def reference_embedding():
    import torch


    @torch.no_grad()
    def run(input_ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight[input_ids]

    return run


class EmbeddingBase(EmbeddingTests):
    reference = staticmethod(reference_embedding)
    interface = INTERFACE_EMBEDDING

class TestEmbeddingV100352H4096(EmbeddingBase):
    name = "embedding_v100352_h4096"  # model:granite-4.1-8b
    axes = {"vocab_size": 100352, "hidden_size": 4096}
    sha256 = "d054ee3c1958788aea741d5404fb8e904088b0c63d5b243c2022ad20041df0b7"

class TestEmbeddingV128256H2048(EmbeddingBase):
    name = "embedding_v128256_h2048"  # model:llama-3.2-1b
    axes = {"vocab_size": 128256, "hidden_size": 2048}
    sha256 = "765f5370a936a5c44ee1922f5c0e4e56448c38d7fa2e6027998f7e251231ebb1"

class TestEmbeddingV128256H3072(EmbeddingBase):
    name = "embedding_v128256_h3072"  # model:llama-3.2-3b
    axes = {"vocab_size": 128256, "hidden_size": 3072}
    sha256 = "0d523bb623204e697e98a33373574ebc9fc2c062dcd4bb80ba4cf7501aa70bdd"

class TestEmbeddingV128256H4096(EmbeddingBase):
    name = "embedding_v128256_h4096"  # model:llama-3.1-8b
    axes = {"vocab_size": 128256, "hidden_size": 4096}
    sha256 = "e1aff528469ac930e9c4de449d7e7245712dba60a6f7274ced413cba870b7b14"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestEmbeddingV129280H7168(EmbeddingBase):
    name = "embedding_v129280_h7168"
    axes = {"vocab_size": 129280, "hidden_size": 7168}
    sha256 = "16dad570e859d06aa19023100a785f7c99f06b2a50680ddcb37fe06cad924657"

class TestEmbeddingV151936H2048(EmbeddingBase):
    name = "embedding_v151936_h2048"  # model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
    axes = {"vocab_size": 151936, "hidden_size": 2048}
    sha256 = "b3235717c0630540611afb8984acafb407d505347a8afb8eb43be95763145734"

class TestEmbeddingV151936H4096(EmbeddingBase):
    name = "embedding_v151936_h4096"  # model:qwen3-8b, model:qwen3-235b-a22b
    axes = {"vocab_size": 151936, "hidden_size": 4096}
    sha256 = "9da6c71036b982bea5c1fc34fc8f8e72d561a70146b0c5702011e941075bc66f"

class TestEmbeddingV151936H5120(EmbeddingBase):
    name = "embedding_v151936_h5120"  # model:qwen3-14b, model:qwen3-32b
    axes = {"vocab_size": 151936, "hidden_size": 5120}
    sha256 = "48c5bbe01496d7f03436dbf601db410dd4c0d377b6d0a084854e759be1f7c848"

class TestEmbeddingV152064H3584(EmbeddingBase):
    name = "embedding_v152064_h3584"  # model:qwen2.5-7b
    axes = {"vocab_size": 152064, "hidden_size": 3584}
    sha256 = "8bd5fc7afad110421a9dce895b446f32684718157a7f3bf7655cb1a8f0d2f34b"

class TestEmbeddingV201088H2880(EmbeddingBase):
    name = "embedding_v201088_h2880"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088, "hidden_size": 2880}
    sha256 = "53898d1a8717bb3cc3d773b57f47c9e12cf0b452842e68f05d4a58eba6b95376"

class TestEmbeddingV32000H4096(EmbeddingBase):
    name = "embedding_v32000_h4096"  # model:mistral-7b-v0.1
    axes = {"vocab_size": 32000, "hidden_size": 4096}
    sha256 = "d273edeec6ad5275e21cbd8a677ea14665b0c2c11c51b5d781cc14cc481d3b3d"

class TestEmbeddingV32768H6144(EmbeddingBase):
    name = "embedding_v32768_h6144"  # model:mixtral-8x22b
    axes = {"vocab_size": 32768, "hidden_size": 6144}
    sha256 = "d4ea2f7a6a3b167ec9742b26303c8ca9ee2341a1dd359fca9ac56c4b4dc7bf85"


# Embedding: each token's row of the table. The table is one GPU's part of the
# vocabulary, tokens vocab_start to vocab_start + vocab_size - 1; a token of another
# part gives zeros, so that the parts add up.
# Tolerances: those of reference_embedding.
def reference_embedding_2():
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


class Embedding2Base(EmbeddingTests):
    reference = staticmethod(reference_embedding_2)
    interface = INTERFACE_EMBEDDING_2

class TestEmbeddingV16032H2048(Embedding2Base):
    name = "embedding_v16032_h2048"  # model:llama-3.2-1b, tp:8
    axes = {"vocab_size": 16032, "hidden_size": 2048}
    sha256 = "da5dcc0366ead259db873b50f480b0fb85ba796b9e1317b3eb66f3d9a8b7909d"

class TestEmbeddingV16032H4096(Embedding2Base):
    name = "embedding_v16032_h4096"  # model:llama-3.1-8b, tp:8
    axes = {"vocab_size": 16032, "hidden_size": 4096}
    sha256 = "dc6222046e1701e56db5726551cc3423e4cb0156727e3b0d79edc5a2d1b87516"

class TestEmbeddingV16032H8192(Embedding2Base):
    name = "embedding_v16032_h8192"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"vocab_size": 16032, "hidden_size": 8192}
    sha256 = "3c3f829e36615a348d9aac76c648b08d8c0733508398014f00044a48d197ec17"

class TestEmbeddingV16384H4096(Embedding2Base):
    name = "embedding_v16384_h4096"  # model:nemotron-h-8b, tp:8
    axes = {"vocab_size": 16384, "hidden_size": 4096}
    sha256 = "72d6d5f4af1138a5a4f785070beb8268ee9832d3068f8062b71d2569b9fc752a"

# model:qwen3-30b-a3b, model:qwen3-next-80b-a3b, tp:8
class TestEmbeddingV18992H2048(Embedding2Base):
    name = "embedding_v18992_h2048"
    axes = {"vocab_size": 18992, "hidden_size": 2048}
    sha256 = "4c135e18981fb579ed1fe1957e80b226e01ff98469e3f1db3db827ce7ab07b2f"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:8
class TestEmbeddingV18992H4096(Embedding2Base):
    name = "embedding_v18992_h4096"
    axes = {"vocab_size": 18992, "hidden_size": 4096}
    sha256 = "fbb3e22fc9c23aa36a09206c7eb36bb162f2452e5a4e6e27d1ccbf620cae79f2"

class TestEmbeddingV25136H2880(Embedding2Base):
    name = "embedding_v25136_h2880"  # model:gpt-oss-120b, model:gpt-oss-20b, tp:8
    axes = {"vocab_size": 25136, "hidden_size": 2880}
    sha256 = "04886bf9c6012310c0b858ea1a5531681b68444ee8b07cd12dea21726d10bec6"

class TestEmbeddingV32064H8192(Embedding2Base):
    name = "embedding_v32064_h8192"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:4
    axes = {"vocab_size": 32064, "hidden_size": 8192}
    sha256 = "e7ecc679ab48464fa2f4e8eab48b8ee273ee644e012cfa7560b6c4025210e5b9"

# model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b, tp:4
class TestEmbeddingV37984H4096(Embedding2Base):
    name = "embedding_v37984_h4096"
    axes = {"vocab_size": 37984, "hidden_size": 4096}
    sha256 = "57a74db7d85d3691333e604afe1689c94801e39f59253cbd6500d48574f39469"

class TestEmbeddingV8080H7168(Embedding2Base):
    name = "embedding_v8080_h7168"  # model:deepseek-v3, model:deepseek-r1, tp:16
    axes = {"vocab_size": 8080, "hidden_size": 7168}
    sha256 = "c4180a6291dcb1c877df1908d9d3479fc0cc0084add9a2d5734f5319224ce809"


# Embedding: each token's row of the table. The table is one GPU's part of the
# vocabulary, tokens vocab_start to vocab_start + vocab_size - 1; a token of another
# part gives zeros, so that the parts add up. Rows are multiplied by the root of
# hidden_size, rounded to bfloat16 first.
# model:gemma-3-27b, tp:16
# Tolerances:
#   output  source           rtol   atol  NMSE     reason
#   output  oracle           0.004  0     1.6e-05  (2)
#   output  sglang, pytorch  exact                 (1)
def reference_gemma_embedding_v16388():
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
    reference = staticmethod(reference_gemma_embedding_v16388)
    interface = INTERFACE_EMBEDDING_2
    axes = {"vocab_size": 16388, "hidden_size": 5376}
    constants = ("scaled",)
    SCALED = True  # "gemma" in the name
    sha256 = "37cd1becf5ef42ecb0256f5c26b73887376a6582e7a34e89135031254c2cf6c1"


# Embedding: each token's row of the table, which has all of the vocabulary. Rows are
# multiplied by the root of hidden_size, rounded to bfloat16 first.
# Tolerances: those of reference_gemma_embedding_v16388.
def reference_gemma_embedding():
    import math

    import torch


    @torch.no_grad()
    def run(input_ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        # Gemma rounds the factor to bfloat16 before the product is rounded.
        factor = torch.tensor(math.sqrt(weight.shape[1]), device=weight.device)
        return weight[input_ids] * factor.to(weight.dtype)

    return run


class GemmaEmbeddingBase(EmbeddingTests):
    reference = staticmethod(reference_gemma_embedding)
    interface = INTERFACE_EMBEDDING
    constants = ("scaled",)
    SCALED = True  # "gemma" in the name

class TestGemmaEmbeddingV256000H3584(GemmaEmbeddingBase):
    name = "gemma_embedding_v256000_h3584"  # model:gemma-2-9b
    axes = {"vocab_size": 256000, "hidden_size": 3584}
    sha256 = "46e41e8f393279c197607b6c6ca385d004c2cfee5f8da946e052d9a028c86315"

class TestGemmaEmbeddingV262208H5376(GemmaEmbeddingBase):
    name = "gemma_embedding_v262208_h5376"  # model:gemma-3-27b
    axes = {"vocab_size": 262208, "hidden_size": 5376}
    sha256 = "b4cf04b73b23c38e7e1fc67677b4b442c282615cafb5a97b8b8f962420951a04"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
