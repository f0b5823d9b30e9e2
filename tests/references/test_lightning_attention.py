"""Reference tests of op_type lightning_attention.

Rendered: don't edit. `gen-tests --op-type lightning_attention` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
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

from generator.ops.op_types.lightning_attention.relations import state_relations
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
# relations: generator.ops.op_types.lightning_attention.relations

_SUMS = (
    "float32 sums of 128 products, as large as a row's outputs together, are off by 2^-24 "
    "of a partial sum in each step: 11 times that, and states by as much a token"
)
# a case of decode in which states decay, and no product is added
_DECAYS = "keys-of-zero"
TOLERANCES = (
    Override(
        "new_state",
        Tolerance(rtol=4e-6, atol=1e-7, nmse=1e-11, bias=2.0**-19),
        "float32's exp(-slope) is off by some ulps, 2^-22, for all of a head alike, and "
        "its product with the state by 2^-24",
        case=_DECAYS,
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1.5e-3, nmse=1.6e-5),
        "one rounding to bfloat16; states are off by 3.2e-5 root mean square, see below, and "
        "128 of them times queries of 1 by 11 times that: four deviations, as of larger "
        "outputs, which are most, a rounding is more (7.3e-4 after 972 tokens on an H100)",
        source="oracle",
        where=lambda axes: "seq_len" in axes,
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-6, nmse=1.6e-5, of_row=1e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_SUMS}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1.7e-2, nmse=1.6e-5),
        "the kernel multiplies keys and values in bfloat16, which rounds each product by "
        "2^-8/sqrt(3) root mean square: of 128 of them with queries of 1, of keys of 1/11, "
        "2.3e-3 of 1 is left, 7.5 deviations; and both sides round once",
    ),
    Override(
        "new_state",
        Tolerance(rtol=2e-6, atol=4e-6, nmse=1e-12),
        "a product of two bfloat16 numbers is exact in float32; the decayed state and the "
        "sum, 5 at most, round by 2^-24 each: 7e-15 of the power where they are 1",
        source="oracle",
        where=lambda axes: "seq_len" not in axes,
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-5, atol=2.1e-4, nmse=1e-10, bias=2.0**-16),
        "CUDA's exp(-slope) is off by an ulp, 2^-24, once for each token since a product "
        "was added: of slopes s of 0.00207 and products of 0.088 that is 2^-24 0.088 "
        "sqrt(2 / (2s)^3), 2.8e-5, and of the first state of 1.5 another 1.6e-5: together "
        "3.2e-5, of which 6.5 deviations are reached by one of 10^10 (1e-4 on an H100)",
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=4e-6, atol=2e-3, nmse=1e-5, bias=8e-5),
        "the kernel multiplies keys and values in bfloat16: half an ulp of numbers below 1 "
        "is 2^-9. Products of 16 bits that are rounded to 8 are smaller by 3.8e-5 on the "
        "whole, and an outer product's share their factors' bits: 7e-6 of deviation for "
        "40 of 128 keys and values (4.3e-5 on an H100)",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, prompts around a block of 256, and states of zeros."""
    is_decode = "seq_len" not in (definition.interface.input_specs["q"].shape or ())
    sizes: dict[str, tuple[str, int, int]] = {
        "one-token": ("small", 1, 1),
        "three-sequences": ("small", 3, 7),
        "no-history": ("small", 2, 5),
        "block-and-more": ("medium", 1 if not is_decode else 9, 259),
        "past-limits": (LIMITS, 3 if not is_decode else 67, 531),
        "long": ("large", 2 if not is_decode else 64, 1_024),
    }
    if is_decode:
        sizes[_DECAYS] = ("small", 3, 1)
    return [
        Case(
            name,
            size,
            {"batch_size": rows, **({} if is_decode else {"seq_len": length})},
            {"is_new": name == "no-history", "decays": name == _DECAYS},
        )
        for name, (size, rows, length) in sizes.items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return q, k, v bfloat16, states float32, and slopes as ALiBi's, of a middle layer.

    With `decays` keys are zeros.
    """
    lengths = {**definition.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        shape, drawn = shape_of(spec, lengths), stream.child(name)
        if name == "slopes":
            heads = torch.arange(1.0, shape[0] + 1.0, dtype=torch.float64)
            inputs[name] = (0.53 * 2.0 ** (-8.0 * heads / shape[0])).float()
        elif name == "state":
            values = drawn.values(shape, 1.5)
            inputs[name] = (
                torch.zeros_like(values) if case.params.get("is_new") else values
            )
        else:
            std = lengths["head_dim"] ** -0.5 if name == "k" else 1.0
            inputs[name] = drawn.values(shape, std).to(torch.bfloat16)
            if name == "k" and case.params.get("decays"):
                inputs[name].zero_()
    return inputs


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and states in float64."""
    q, k, v = (inputs[name].double() for name in ("q", "k", "v"))
    is_decode = q.dim() == 3
    if is_decode:
        q, k, v = (x.unsqueeze(2) for x in (q, k, v))
    state, slopes = inputs["state"].double(), inputs["slopes"].double()
    places = torch.arange(q.shape[2], dtype=torch.float64, device=q.device)
    back = places[:, None] - places[None]
    output, ends = torch.empty_like(q), torch.empty_like(state)
    for head, slope in enumerate(slopes):
        left = torch.where(back >= 0, torch.exp(-slope * back.clamp_min(0)), 0.0)
        weights = q[:, head] @ k[:, head].mT * left
        history = torch.exp(-slope * (places + 1.0))[:, None] * (
            q[:, head] @ state[:, head]
        )
        output[:, head] = weights @ v[:, head] + history
        sums = (k[:, head] * left[-1][:, None]).mT @ v[:, head]
        ends[:, head] = sums + torch.exp(-slope * q.shape[2]) * state[:, head]
    return (output.squeeze(2) if is_decode else output), ends


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernel of decode; that of prefill did not compile (H100)."""
    limit = "its prefill does not compile for bfloat16 rows with Triton 3.6"
    is_decode = "seq_len" not in (definition.interface.input_specs["q"].shape or ())
    needs = ("triton", "einops")
    return (Backend("triton", needs=needs, limit="" if is_decode else limit),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and states; the kernel writes to the states that it is handed."""
    from sglang.kernels.ops.attention.linear import lightning_attn

    q, k, v, state, slopes = inputs.values()
    slots = torch.arange(len(q), device=q.device)
    rows = lightning_attn.linear_decode_forward_triton(
        q.unsqueeze(2), k.unsqueeze(2), v.unsqueeze(2), state, slopes, slots
    )
    return rows.view(q.shape), state


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=state_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_LIGHTNING_DECODE = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_heads, head_dim]",
        "k": "bfloat16[batch_size, num_heads, head_dim]",
        "v": "bfloat16[batch_size, num_heads, head_dim]",
        "state": "float32[batch_size, num_heads, head_dim, head_dim]",
        "slopes": "float32[num_heads]",
    },
    outputs={
        "output": "bfloat16[batch_size, num_heads, head_dim]",
        "new_state": "float32[batch_size, num_heads, head_dim, head_dim]",
    },
)
INTERFACE_LIGHTNING_PREFILL = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_heads, seq_len, head_dim]",
        "k": "bfloat16[batch_size, num_heads, seq_len, head_dim]",
        "v": "bfloat16[batch_size, num_heads, seq_len, head_dim]",
        "state": "float32[batch_size, num_heads, head_dim, head_dim]",
        "slopes": "float32[num_heads]",
    },
    outputs={
        "output": "bfloat16[batch_size, num_heads, seq_len, head_dim]",
        "new_state": "float32[batch_size, num_heads, head_dim, head_dim]",
    },
)

# ---- the tests


class LightningAttentionTests(
    GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of lightning_attention share."""

    op_type = "lightning_attention"
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
# (2) the kernel multiplies keys and values in bfloat16, which rounds each product by
# 2^-8/sqrt(3) root mean square.
# (3) float32's exp(-slope) is off by some ulps, 2^-22, for all of a head alike, and its
# product with the state by 2^-24.
# (4) a factor or an offset of 1.9e-06 is allowed.
# (5) a product of two bfloat16 numbers is exact in float32.
# (6) CUDA's exp(-slope) is off by an ulp, 2^-24, once for each token since a product
# was added.
# (7) a factor or an offset of 1.5e-05 is allowed.
# (8) the kernel multiplies keys and values in bfloat16.
# (9) a factor or an offset of 8e-05 is allowed.


# Lightning attention, one token of each sequence: for each token state = exp(-slope) *
# state + k v^T, and output = q state, with a slope of each head. Nothing is scaled. In
# float32, the output rounded once to bfloat16.
# Tolerances:
#   output     source                          rtol   atol                     NMSE     reason
#   output     oracle of some sizes            0.004  0.0015                   1.6e-05  (1)
#   output     oracle                          0.004  1e-06 + 1e-05·row's RMS  1.6e-05  (1)
#   output     sglang                          0.008  0.017                    1.6e-05  (2)
#   new_state  oracle, sglang in keys-of-zero  4e-06  1e-07                    1e-11    (3) (4)
#   new_state  oracle of some sizes            2e-06  4e-06                    1e-12    (5)
#   new_state  oracle                          1e-05  0.00021                  1e-10    (6) (7)
#   new_state  sglang                          4e-06  0.002                    1e-05    (8) (9)
def reference_lightning_decode():
    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        state: torch.Tensor,
        slopes: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        decay = torch.exp(-slopes).view(1, -1, 1, 1)
        added = k.float().unsqueeze(-1) * v.float().unsqueeze(-2)
        new_state = decay * state + added
        output = (q.float().unsqueeze(-1) * new_state).sum(dim=-2)
        return output.to(q.dtype), new_state

    return run


class LightningDecodeBase(LightningAttentionTests):
    reference = staticmethod(reference_lightning_decode)
    interface = INTERFACE_LIGHTNING_DECODE
    axes = {"head_dim": 128}

class TestLightningDecodeH16D128(LightningDecodeBase):
    name = "lightning_decode_h16_d128"  # model:ring-mini-linear-2.0
    axes = {"num_heads": 16}
    sha256 = "bfd9658b0b57e3dd9829d1d6c2380dfac0684ca144d70720649fa3509072d90b"

class TestLightningDecodeH64D128(LightningDecodeBase):
    name = "lightning_decode_h64_d128"  # model:minimax-m1, model:minimax-text-01
    axes = {"num_heads": 64}
    sha256 = "504650cc3b4bb1669b15c1e871ab796ce80e4b2b65bc0072d78905aa325ced6a"

class TestLightningDecodeH8D128(LightningDecodeBase):
    name = "lightning_decode_h8_d128"  # model:minimax-m1, model:minimax-text-01, tp:8
    axes = {"num_heads": 8}
    sha256 = "93482b2fdc5dfa31e68d2683339e6608fdf1a9db7147bd779c5edf7058ff1dcd"


# Lightning attention, whole prompts: for each token state = exp(-slope) * state + k
# v^T, and output = q state, with a slope of each head. Nothing is scaled. In float32,
# the output rounded once to bfloat16.
# Tolerances: those of reference_lightning_decode.
def reference_lightning_prefill():
    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        state: torch.Tensor,
        slopes: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        decay = torch.exp(-slopes).view(1, -1, 1, 1)
        new_state = state
        reads = []
        for t in range(q.shape[2]):
            added = k[:, :, t].float().unsqueeze(-1) * v[:, :, t].float().unsqueeze(-2)
            new_state = decay * new_state + added
            reads.append(torch.einsum("bhk,bhkv->bhv", q[:, :, t].float(), new_state))
        return torch.stack(reads, dim=2).to(q.dtype), new_state

    return run


class LightningPrefillBase(LightningAttentionTests):
    reference = staticmethod(reference_lightning_prefill)
    interface = INTERFACE_LIGHTNING_PREFILL
    axes = {"head_dim": 128}

class TestLightningPrefillH16D128(LightningPrefillBase):
    name = "lightning_prefill_h16_d128"  # model:ring-mini-linear-2.0
    axes = {"num_heads": 16}
    sha256 = "96d143193cea3ab2e0cf424af3d64224029774a3a6bfd7ba55711621a125c081"

class TestLightningPrefillH64D128(LightningPrefillBase):
    name = "lightning_prefill_h64_d128"  # model:minimax-m1, model:minimax-text-01
    axes = {"num_heads": 64}
    sha256 = "21b464e5c142e932c8559aa94b200be9d8359c51b925ddbbc5c5ef7fbaeb6b1d"

class TestLightningPrefillH8D128(LightningPrefillBase):
    name = "lightning_prefill_h8_d128"  # model:minimax-m1, model:minimax-text-01, tp:8
    axes = {"num_heads": 8}
    sha256 = "39c1e58ddf594e8529ec9670ff994dced3758a580b0728c44726f7dab3696ed8"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
