"""Reference tests of op_type head_layout.

Rendered: don't edit. `gen-tests --op-type head_layout` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
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

import sys
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.head_layout.relations import layout_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.head_layout.relations

TOLERANCES = tuple(
    Override(output, EXACT, "bits are copied, none is computed")
    for output in ("q", "k", "v", "output")
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, an odd number, as many as there are heads, and many."""
    heads = definition.axes.get("num_heads", 8)
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("odd-tokens", "small", {"num_tokens": 7}),
        Case("as-many-as-heads", "small", {"num_tokens": min(heads, 128)}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return each input bfloat16, of the shape that the definition declares."""
    lengths = {**definition.axes, **case.axes}
    return {
        name: stream.child(name).values(shape_of(spec, lengths)).to(torch.bfloat16)
        for name, spec in definition.interface.input_specs.items()
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the moved heads, float64, one head at a time."""
    if "qkv" in inputs:
        return _parts(definition, inputs["qkv"].double())
    if "k_nope" in inputs:
        nope, rope = inputs["k_nope"].double(), inputs["k_rope"].double()
        keys = nope.new_empty((*nope.shape[:2], nope.shape[2] + rope.shape[1]))
        for head in range(nope.shape[1]):
            keys[:, head, : nope.shape[2]] = nope[:, head]
            keys[:, head, nope.shape[2] :] = rope
        return keys
    x = inputs["x"].double()
    return torch.stack([x[:, place] for place in range(x.shape[1])])


def _parts(definition: Definition, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return q, k and v of float64 rows, by the first column of each head."""
    heads, kv_heads, dim = (
        definition.axes[axis] for axis in ("num_qo_heads", "num_kv_heads", "head_dim")
    )
    first = {"q": 0, "k": heads * dim, "v": (heads + kv_heads) * dim}
    counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    return tuple(
        torch.stack(
            [rows[:, at + dim * n : at + dim * (n + 1)] for n in range(counts[name])], 1
        )
        for name, at in first.items()
    )


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernel for keys, which is compiled for 128 heads of 128 and 64."""
    if "k_nope" not in definition.interface.inputs:
        return ()
    sizes = [definition.axes[a] for a in ("num_heads", "nope_dim", "rope_dim")]
    limit = (
        "" if sizes == [128, 128, 64] else "it is compiled for 128 heads of 128 + 64"
    )
    return (Backend("", limit=limit),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the buffer that flashinfer.concat_ops.concat_mla_k fills."""
    from flashinfer import concat_ops

    nope, rope = inputs["k_nope"], inputs["k_rope"]
    keys = nope.new_empty((*nope.shape[:2], nope.shape[2] + rope.shape[1]))
    concat_ops.concat_mla_k(keys, nope, rope.unsqueeze(1))
    return keys


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's copies, which engines call."""
    name = "cat" if "k_nope" in definition.interface.inputs else "copy"
    return (Backend("split" if "qkv" in definition.interface.inputs else name),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return what PyTorch's split, transposed copy or concatenation gives."""
    if backend == "split":
        heads, kv_heads, dim = (
            definition.axes[a] for a in ("num_qo_heads", "num_kv_heads", "head_dim")
        )
        sizes = [heads * dim, kv_heads * dim, kv_heads * dim]
        split: Any = torch.split_with_sizes_copy
        parts = split(inputs["qkv"], sizes, dim=1)
        return tuple(part.unflatten(1, (-1, dim)) for part in parts)
    if backend == "cat":
        nope, rope = inputs["k_nope"], inputs["k_rope"]
        return torch.cat([nope, rope[:, None].expand(-1, nope.shape[1], -1)], dim=-1)
    return inputs["x"].transpose(0, 1).contiguous()


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=layout_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
    only_moves=True,
)


# ---- the interfaces

INTERFACE_CONCAT_MLA_K = Interface(
    inputs={
        "k_nope": "bfloat16[num_tokens, num_heads, nope_dim]",
        "k_rope": "bfloat16[num_tokens, rope_dim]",
    },
    outputs={"k": "bfloat16[num_tokens, num_heads, key_dim]"},
    constraints=("key_dim == nope_dim + rope_dim",),
)
INTERFACE_HEADS_FIRST = Interface(
    inputs={"x": "bfloat16[num_tokens, num_heads, head_dim]"},
    outputs={"output": "bfloat16[num_heads, num_tokens, head_dim]"},
)
INTERFACE_SPLIT_QKV = Interface(
    inputs={"qkv": "bfloat16[num_tokens, qkv_size]"},
    outputs={
        "q": "bfloat16[num_tokens, num_qo_heads, head_dim]",
        "k": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_dim]",
    },
    constraints=("qkv_size == (num_qo_heads + 2 * num_kv_heads) * head_dim",),
)
INTERFACE_TOKENS_FIRST = Interface(
    inputs={"x": "bfloat16[num_heads, num_tokens, head_dim]"},
    outputs={"output": "bfloat16[num_tokens, num_heads, head_dim]"},
)

# ---- the tests


class HeadLayoutTests(
    GroundTruthsAgree, matches("flashinfer", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of head_layout share."""

    op_type = "head_layout"
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
# (1) bits are copied, none is computed.


# Keys of latent attention before compression: each head's own part, then the rotary
# part, which all heads of a token share. Bits are copied, none is computed.
# fi_api:flashinfer.concat_ops.concat_mla_k
# Tolerances:
#   output  source                       rtol   atol  NMSE  reason
#   k       oracle, flashinfer, pytorch  exact              (1)
def reference_concat_mla_k():
    import torch


    @torch.no_grad()
    def run(k_nope: torch.Tensor, k_rope: torch.Tensor) -> torch.Tensor:
        shared = k_rope.unsqueeze(1).expand(-1, k_nope.shape[1], -1)
        return torch.cat((k_nope, shared), dim=2)

    return run


class ConcatMlaKBase(HeadLayoutTests):
    reference = staticmethod(reference_concat_mla_k)
    interface = INTERFACE_CONCAT_MLA_K
    axes = {"nope_dim": 128, "rope_dim": 64, "key_dim": 192}

class TestConcatMlaKH128Nope128Rope64(ConcatMlaKBase):
    name = "concat_mla_k_h128_nope128_rope64"  # model:deepseek-v3, model:deepseek-r1
    axes = {"num_heads": 128}
    sha256 = "afad307de5e4b2d1de8e25a6c2bd6d3a9602de0ed8b673e464257a462ee28a4f"

class TestConcatMlaKH64Nope128Rope64(ConcatMlaKBase):
    name = "concat_mla_k_h64_nope128_rope64"  # model:kimi-k2
    axes = {"num_heads": 64}
    sha256 = "f1aab83d8804f000f9ee3c74b99b90704edb5f87061d430e3b44a13592c937bc"


# Bits are copied, none is computed.
# Tolerances:
#   output  source                       rtol   atol  NMSE  reason
#   output  oracle, flashinfer, pytorch  exact              (1)
def reference_first():
    import torch


    @torch.no_grad()
    def run(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, 1).contiguous()

    return run


class FirstBase(HeadLayoutTests):
    reference = staticmethod(reference_first)
    axes = {"head_dim": 128}

# The next 2: Heads before tokens, as the batched products of latent attention with each
# head's weight want the queries: out[h, t] = x[t, h].
class TestHeadsFirstH128D128(FirstBase):
    name = "heads_first_h128_d128"  # model:deepseek-v3, model:deepseek-r1
    interface = INTERFACE_HEADS_FIRST
    axes = {"num_heads": 128}
    sha256 = "959e684bb1ab59f3fa2b5d00eff4bb562980a51b3839647e4d91764e9ec78f23"

class TestHeadsFirstH64D128(FirstBase):
    name = "heads_first_h64_d128"  # model:kimi-k2
    interface = INTERFACE_HEADS_FIRST
    axes = {"num_heads": 64}
    sha256 = "5743f7dfca45e82a4e792105bdb17a23be5d1bce8d789770dc73e6e1c29387b9"

# The next 2: Tokens before heads, as the output projection of latent attention wants
# what the batched products gave: out[t, h] = x[h, t].
class TestTokensFirstH128D128(FirstBase):
    name = "tokens_first_h128_d128"  # model:deepseek-v3, model:deepseek-r1
    interface = INTERFACE_TOKENS_FIRST
    axes = {"num_heads": 128}
    sha256 = "cb8af2f87e140a39ce45f43a94ce551d6fecc23eb8510192fa476c11088b461e"

class TestTokensFirstH64D128(FirstBase):
    name = "tokens_first_h64_d128"  # model:kimi-k2
    interface = INTERFACE_TOKENS_FIRST
    axes = {"num_heads": 64}
    sha256 = "f1efc2a983b56906059be934d9d24513821f83061b9443af636a38e08bc5640a"


# Queries, keys and values of the rows of a fused projection, each contiguous. A row has
# all query heads, then all key heads, then all value heads. Bits are copied, none is
# computed.
# model:qwen2.5-7b
# Tolerances:
#   output  source                       rtol   atol  NMSE  reason
#   q       oracle, flashinfer, pytorch  exact              (1)
#   k       oracle, flashinfer, pytorch  exact              (1)
#   v       oracle, flashinfer, pytorch  exact              (1)
def reference_split_qkv_h28_kv4_d128():
    import torch

    NUM_QO_HEADS = 28
    NUM_KV_HEADS = 4


    @torch.no_grad()
    def run(qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row has all query heads, then all key heads, then all value heads.
        first_value = NUM_QO_HEADS + NUM_KV_HEADS
        heads = qkv.view(qkv.shape[0], first_value + NUM_KV_HEADS, -1)
        q = heads[:, :NUM_QO_HEADS]
        k = heads[:, NUM_QO_HEADS:first_value]
        v = heads[:, first_value:]
        return q.contiguous(), k.contiguous(), v.contiguous()

    return run


class TestSplitQkvH28Kv4D128(HeadLayoutTests):
    name = "split_qkv_h28_kv4_d128"
    reference = staticmethod(reference_split_qkv_h28_kv4_d128)
    interface = INTERFACE_SPLIT_QKV
    axes = {"num_qo_heads": 28, "num_kv_heads": 4, "head_dim": 128, "qkv_size": 4608}
    sha256 = "a235ec6faf23b0b1fc2849ab0f1537298071d43dd1d94193376f3de63d61adff"


# Queries, keys and values of the rows of a fused projection, each contiguous. A row has
# all query heads, then all key heads, then all value heads. Bits are copied, none is
# computed.
# model:qwen3-30b-a3b
# Tolerances: those of reference_split_qkv_h28_kv4_d128.
def reference_split_qkv_h32_kv4_d128():
    import torch

    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4


    @torch.no_grad()
    def run(qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row has all query heads, then all key heads, then all value heads.
        first_value = NUM_QO_HEADS + NUM_KV_HEADS
        heads = qkv.view(qkv.shape[0], first_value + NUM_KV_HEADS, -1)
        q = heads[:, :NUM_QO_HEADS]
        k = heads[:, NUM_QO_HEADS:first_value]
        v = heads[:, first_value:]
        return q.contiguous(), k.contiguous(), v.contiguous()

    return run


class TestSplitQkvH32Kv4D128(HeadLayoutTests):
    name = "split_qkv_h32_kv4_d128"
    reference = staticmethod(reference_split_qkv_h32_kv4_d128)
    interface = INTERFACE_SPLIT_QKV
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128, "qkv_size": 5120}
    sha256 = "d179ec0600c96f1e4b48f9a65d7ba6178acdef6d0310dfe7d5a789e91df452f8"


# Queries, keys and values of the rows of a fused projection, each contiguous. A row has
# all query heads, then all key heads, then all value heads. Bits are copied, none is
# computed.
# model:llama-3.1-8b, model:qwen3-8b
# Tolerances: those of reference_split_qkv_h28_kv4_d128.
def reference_split_qkv_h32_kv8_d128():
    import torch

    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8


    @torch.no_grad()
    def run(qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row has all query heads, then all key heads, then all value heads.
        first_value = NUM_QO_HEADS + NUM_KV_HEADS
        heads = qkv.view(qkv.shape[0], first_value + NUM_KV_HEADS, -1)
        q = heads[:, :NUM_QO_HEADS]
        k = heads[:, NUM_QO_HEADS:first_value]
        v = heads[:, first_value:]
        return q.contiguous(), k.contiguous(), v.contiguous()

    return run


class TestSplitQkvH32Kv8D128(HeadLayoutTests):
    name = "split_qkv_h32_kv8_d128"
    reference = staticmethod(reference_split_qkv_h32_kv8_d128)
    interface = INTERFACE_SPLIT_QKV
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128, "qkv_size": 6144}
    sha256 = "8200a3b4fa6a8eae9a136e0e033d32caf01ce48e297833982330750e304cd780"


# Queries, keys and values of the rows of a fused projection, each contiguous. A row has
# all query heads, then all key heads, then all value heads. Bits are copied, none is
# computed.
# model:gpt-oss-120b, model:gpt-oss-20b
# Tolerances: those of reference_split_qkv_h28_kv4_d128.
def reference_split_qkv_h64_kv8_d64():
    import torch

    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8


    @torch.no_grad()
    def run(qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row has all query heads, then all key heads, then all value heads.
        first_value = NUM_QO_HEADS + NUM_KV_HEADS
        heads = qkv.view(qkv.shape[0], first_value + NUM_KV_HEADS, -1)
        q = heads[:, :NUM_QO_HEADS]
        k = heads[:, NUM_QO_HEADS:first_value]
        v = heads[:, first_value:]
        return q.contiguous(), k.contiguous(), v.contiguous()

    return run


class TestSplitQkvH64Kv8D64(HeadLayoutTests):
    name = "split_qkv_h64_kv8_d64"
    reference = staticmethod(reference_split_qkv_h64_kv8_d64)
    interface = INTERFACE_SPLIT_QKV
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_dim": 64, "qkv_size": 5120}
    sha256 = "de84ad954a6362b0f31a5c41e8764a13d5d398680fdd033655da83884a0d1b4c"


# Queries, keys and values of the rows of a fused projection, each contiguous. A row has
# all query heads, then all key heads, then all value heads. Bits are copied, none is
# computed.
# model:llama-3.1-70b, model:llama-3.3-70b, tp:8
# Tolerances: those of reference_split_qkv_h28_kv4_d128.
def reference_split_qkv_h8_kv1_d128():
    import torch

    NUM_QO_HEADS = 8
    NUM_KV_HEADS = 1


    @torch.no_grad()
    def run(qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # A row has all query heads, then all key heads, then all value heads.
        first_value = NUM_QO_HEADS + NUM_KV_HEADS
        heads = qkv.view(qkv.shape[0], first_value + NUM_KV_HEADS, -1)
        q = heads[:, :NUM_QO_HEADS]
        k = heads[:, NUM_QO_HEADS:first_value]
        v = heads[:, first_value:]
        return q.contiguous(), k.contiguous(), v.contiguous()

    return run


class TestSplitQkvH8Kv1D128(HeadLayoutTests):
    name = "split_qkv_h8_kv1_d128"
    reference = staticmethod(reference_split_qkv_h8_kv1_d128)
    interface = INTERFACE_SPLIT_QKV
    axes = {"num_qo_heads": 8, "num_kv_heads": 1, "head_dim": 128, "qkv_size": 1280}
    sha256 = "459b9e8dc11e7fc9949fa8e5917c725678bd84221530eb329e6d31d9c7d0f423"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
