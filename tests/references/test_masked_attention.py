"""Reference tests of op_type masked_attention.

Rendered: don't edit. `gen-tests --op-type masked_attention` renders this file anew.

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

from generator.ops.op_types.masked_attention.relations import attention_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.masked_attention.relations

_UNIT = 2.0**-8
_FLASH = (
    "kernels round weights to bfloat16 before the product, by 2^-8/sqrt(3) root mean "
    "square, of which an element that happens to be small is off by as much as its row's "
    "others: 7.5 deviations; both outputs are rounded, and three roundings make 7.5e-6 of "
    "the power; logits of 30 are off by 2^-24 of themselves"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=2e-5, nmse=1.6e-5),
        "float32 sums and one rounding to bfloat16: half an ulp is 2^-8 of a value at "
        "most; logits of 30 are off by 4e-6, and so are weights, relatively",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(
            rtol=3 * _UNIT,
            atol=2e-5,
            nmse=2e-5,
            of_row=round(7.5 * _UNIT / math.sqrt(3.0), 4),
        ),
        _FLASH,
    ),
)


def _axes(
    definition: Definition, sequences: int, rows: int, keys: int
) -> dict[str, int]:
    if "relative_bias" in definition.interface.inputs:
        return {"batch_size": sequences, "seq_len": max(rows, keys)}
    return {"batch_size": sequences, "q_len": rows, "kv_len": keys}


def cases(definition: Definition) -> list[Case]:
    """Return one key, lengths around a block, high logits, far distances."""
    shapes = {
        "one-key": ("small", 1, 1, 1, 1.0),
        "short": ("small", 2, 5, 9, 1.0),
        "around-a-block": ("small", 3, 33, 65, 1.0),
        "high-logits": ("small", 2, 7, 31, 4.0),
        "far-keys": ("medium", 1, 9, 300, 1.0),
        "past-limits": (LIMITS, 3, 1_043, 523, 1.0),
        "image": ("large", 2, 4_096, 300, 1.0),
    }
    return [
        Case(name, size, _axes(definition, *sizes), {"q_std": std})
        for name, (size, *sizes, std) in shapes.items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return q, k and v bfloat16, and a bfloat16 or bool mask, or a table of biases.

    The first sequence has all keys but the last, the second every other one from the
    first on, the third its first key alone.
    """
    lengths = {**definition.axes, **case.axes}
    is_scaled = "relative_bias" not in definition.interface.inputs
    deviation = case.params.get("q_std", 1.0)
    deviation *= 1.0 if is_scaled else lengths["head_dim"] ** -0.5
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        shape, drawn = shape_of(spec, lengths), stream.child(name)
        if name == "relative_bias":
            inputs[name] = drawn.values(shape, 2.0).to(torch.bfloat16)
        elif name != "mask":
            values = drawn.values(shape, deviation if name == "q" else 1.0)
            inputs[name] = values.to(torch.bfloat16)
        else:
            seen = _seen(lengths["batch_size"], lengths["kv_len"])
            inputs[name] = seen
            if spec.dtype != "bool":
                added = drawn.values(shape, 1.5).to(torch.bfloat16)
                inputs[name] = added.masked_fill(~seen[:, None], -torch.inf)
    return inputs


def _seen(sequences: int, keys: int) -> torch.Tensor:
    """Return which keys a sequence may see, bool [batch_size, kv_len]: one at least."""
    places = torch.arange(keys)
    kinds = (places < max(keys - 1, 1), places % 2 == 0, places == 0)
    return torch.stack([kinds[row % 3] for row in range(sequences)])


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the output, float64 [batch_size, rows, num_heads, head_dim], head by head."""
    q, k, v = (inputs[name].double().movedim(2, 1) for name in ("q", "k", "v"))
    added = _added(definition, inputs)
    scale = 1.0 if "relative_bias" in inputs else q.shape[-1] ** -0.5
    heads = []
    for head in range(q.shape[1]):
        logits = scale * torch.bmm(q[:, head], k[:, head].mT) + added[head]
        top = logits.amax(dim=2, keepdim=True)
        shares = torch.exp(logits - torch.where(top.isneginf(), 0.0, top))
        total = shares.sum(dim=2, keepdim=True)
        heads.append(torch.bmm(shares, v[:, head]) / torch.where(total > 0, total, 1.0))
    return torch.stack(heads, dim=2)


def _added(definition: Definition, inputs: dict[str, Any]) -> list[torch.Tensor]:
    """Return what is added to each head's logits: float64, as [batch_size, rows, keys]."""
    heads = definition.axes["num_heads"]
    if "relative_bias" in inputs:
        buckets = _buckets(inputs["q"].shape[1]).to(inputs["q"].device)
        table = inputs["relative_bias"].double()
        return [table[:, head][buckets] for head in range(heads)]
    mask = inputs["mask"]
    if mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, -torch.inf)[:, None]
    return [mask.double()] * heads


def _buckets(length: int) -> torch.Tensor:
    """Return T5's buckets, int64 [queries, keys]: 8 · 2^(j / 2) and more are beyond 8 + j."""
    places = torch.arange(length)
    behind = places[None] - places[:, None]
    square = behind * behind
    far = sum((square >= 64 * 2**j).long() for j in range(1, 8))
    near = behind.abs()
    return torch.where(near < 8, near, 8 + far) + 16 * (behind > 0)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's attention with a mask."""
    if "relative_bias" not in definition.interface.inputs:
        return (Backend("sdpa"),)
    looked_up = (
        "inputs rewritten: the bias of each pair is looked up in T5's table before"
    )
    return (Backend("sdpa", rewrites=looked_up),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.nn.functional.scaled_dot_product_attention of heads first."""
    q, k, v = (inputs[name].transpose(1, 2) for name in ("q", "k", "v"))
    attention = torch.nn.functional.scaled_dot_product_attention
    if "relative_bias" in inputs:
        buckets = _buckets(q.shape[2]).to(q.device)
        bias = inputs["relative_bias"][buckets].permute(2, 0, 1)[None]
        return attention(q, k, v, attn_mask=bias, scale=1.0).transpose(1, 2)
    mask = inputs["mask"]
    mask = mask[:, None, None] if mask.dtype == torch.bool else mask[:, None]
    return attention(q, k, v, attn_mask=mask).transpose(1, 2)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_ATTENTION_FLOAT_MASK = Interface(
    inputs={
        "q": "bfloat16[batch_size, q_len, num_heads, head_dim]",
        "k": "bfloat16[batch_size, kv_len, num_heads, head_dim]",
        "v": "bfloat16[batch_size, kv_len, num_heads, head_dim]",
        "mask": "bfloat16[batch_size, q_len, kv_len]",
    },
    outputs={"output": "bfloat16[batch_size, q_len, num_heads, head_dim]"},
)
INTERFACE_CROSS_ATTENTION_PADDING = INTERFACE_ATTENTION_FLOAT_MASK.but(
    inputs={"mask": "bool[batch_size, kv_len]"},
)
INTERFACE_T5_ATTENTION = Interface(
    inputs={
        "q": "bfloat16[batch_size, seq_len, num_heads, head_dim]",
        "k": "bfloat16[batch_size, seq_len, num_heads, head_dim]",
        "v": "bfloat16[batch_size, seq_len, num_heads, head_dim]",
        "relative_bias": "bfloat16[num_buckets, num_heads]",
    },
    outputs={"output": "bfloat16[batch_size, seq_len, num_heads, head_dim]"},
    constraints=("num_buckets == 32",),
)

# ---- the tests


class MaskedAttentionTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of masked_attention share."""

    op_type = "masked_attention"
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
# (1) float32 sums and one rounding to bfloat16.
# (2) kernels round weights to bfloat16 before the product, by 2^-8/sqrt(3) root mean
# square, of which an element that happens to be small is off by as much as its row's
# others.


# Attention of all queries to all keys of their sequence, with a number added to each
# pair's logit: minus infinity, or a large negative number, where a query may not see a
# key. Logits are products of q and k over the root of head_dim. In float32, rounded
# once to bfloat16.
# Tolerances:
#   output  source   rtol    atol                     NMSE     reason
#   output  oracle   0.004   2e-05                    1.6e-05  (1)
#   output  pytorch  0.0117  2e-05 + 0.017·row's RMS  2e-05    (2)
def reference_attention_float_mask():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        logits = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float())
        logits = logits / math.sqrt(q.shape[-1]) + mask.unsqueeze(1)
        weights = torch.softmax(logits, dim=-1)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v.float()).to(q.dtype)

    return run


class AttentionFloatMaskBase(MaskedAttentionTests):
    reference = staticmethod(reference_attention_float_mask)
    interface = INTERFACE_ATTENTION_FLOAT_MASK

class TestAttentionFloatMaskH12D64(AttentionFloatMaskBase):
    name = "attention_float_mask_h12_d64"  # model:bert-base-uncased
    axes = {"num_heads": 12, "head_dim": 64}
    sha256 = "4a9583ab8271ac25b390a8abaa61bd31ff35b454b234d0f9b425b51cf422f7ee"

class TestAttentionFloatMaskH16D64(AttentionFloatMaskBase):
    name = "attention_float_mask_h16_d64"  # model:bge-large-en-v1.5
    axes = {"num_heads": 16, "head_dim": 64}
    sha256 = "f45d4224abd5e59b2976a32ab154f3581c48dc3f95b87936ab1d761bf4cf28d0"

class TestAttentionFloatMaskH16D72(AttentionFloatMaskBase):
    name = "attention_float_mask_h16_d72"  # model:siglip2-so400m-patch16-naflex
    axes = {"num_heads": 16, "head_dim": 72}
    sha256 = "cd914a5d4e9b65f49a28f0ac096f7dba5e53b728a935fae993e5082d5c9a7957"

class TestAttentionFloatMaskH24D128(AttentionFloatMaskBase):
    name = "attention_float_mask_h24_d128"  # model:hunyuan-video
    axes = {"num_heads": 24, "head_dim": 128}
    sha256 = "b6e1da7ca202c58b250a5d89a0dcee927f6242f4c1ab624650405ade284ffe85"


# Attention of the patches of an image to the tokens of a text that were not padded:
# keys whose mask is false are not seen. Logits are products of q and k over the root of
# head_dim; of a sequence without a key the output is 0. In float32, rounded once to
# bfloat16.
# Tolerances: those of reference_attention_float_mask.
def reference_cross_attention_padding():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        logits = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float())
        logits = logits / math.sqrt(q.shape[-1])
        logits = logits.masked_fill(~mask[:, None, None, :], -torch.inf)
        weights = torch.softmax(logits, dim=-1)
        # Without a key a softmax has no value.
        weights = torch.where(mask.any(dim=1)[:, None, None, None], weights, 0.0)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v.float()).to(q.dtype)

    return run


class CrossAttentionPaddingBase(MaskedAttentionTests):
    reference = staticmethod(reference_cross_attention_padding)
    interface = INTERFACE_CROSS_ATTENTION_PADDING

class TestCrossAttentionPaddingH16D72(CrossAttentionPaddingBase):
    name = "cross_attention_padding_h16_d72"  # model:pixart-sigma-xl
    axes = {"num_heads": 16, "head_dim": 72}
    sha256 = "5fa8785f46fa9e6ba8bb1eba69f6996e9a799921c2615009ebd2afc3eddfb316"

class TestCrossAttentionPaddingH32D64(CrossAttentionPaddingBase):
    name = "cross_attention_padding_h32_d64"  # model:ltx-video
    axes = {"num_heads": 32, "head_dim": 64}
    sha256 = "dbc4724083e32ea65ff6f18d0964d42e427ef7fb8cadfe55e8067e3f19fcaf30"


# Attention of T5's encoder: logits are products of q and k, not scaled, plus a number
# for each head and bucket of key position less query position. Of 32 buckets, the upper
# 16 are of keys behind the query. Of each 16, 8 are of distances 0 to 7, and 8 of ones
# that grow as the logarithm up to 128, the last of all beyond. In float32, rounded once
# to bfloat16.
# Tolerances: those of reference_attention_float_mask.
def reference_t5_attention():
    import math

    import torch

    MAX_DISTANCE = 128


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, relative_bias: torch.Tensor
    ) -> torch.Tensor:
        half = relative_bias.shape[0] // 2
        exact = half // 2
        positions = torch.arange(q.shape[1], device=q.device)
        distances = positions[None, :] - positions[:, None]
        behind = torch.where(distances > 0, half, 0)
        distances = distances.abs()
        # Farther than `exact`, buckets are as wide as their logarithm.
        share = torch.log(distances.clamp_min(1).double() / exact)
        share = share / math.log(MAX_DISTANCE / exact)
        far = exact + (share * (half - exact) + 1e-9).long()
        buckets = behind + torch.where(
            distances < exact, distances, far.clamp_max(half - 1)
        )

        logits = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float())
        logits = logits + relative_bias.float()[buckets].permute(2, 0, 1)
        weights = torch.softmax(logits, dim=-1)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v.float()).to(q.dtype)

    return run


class T5AttentionBase(MaskedAttentionTests):
    reference = staticmethod(reference_t5_attention)
    interface = INTERFACE_T5_ATTENTION
    axes = {"head_dim": 64, "num_buckets": 32}

class TestT5AttentionH12D64(T5AttentionBase):
    name = "t5_attention_h12_d64"  # model:t5-base
    axes = {"num_heads": 12}
    sha256 = "06ac3cb5d3a4daddd95c84822822f41d5a2f7d5c8ec4919a5e544ab9922f1f8c"

class TestT5AttentionH32D64(T5AttentionBase):
    name = "t5_attention_h32_d64"  # model:t5-v1_1-xl
    axes = {"num_heads": 32}
    sha256 = "10765de30c7c22f342453318c82270bf2da24ee6753ab71a6b1e6039f0fb4b6f"

class TestT5AttentionH64D64(T5AttentionBase):
    name = "t5_attention_h64_d64"  # model:t5-v1_1-xxl, model:umt5-xxl
    axes = {"num_heads": 64}
    sha256 = "1c183098247b7c0599145cc630942468c22ef90c78ccdb900585ea85a0aaeb6e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
