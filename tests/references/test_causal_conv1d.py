"""Reference tests of op_type causal_conv1d.

Rendered: don't edit. `gen-tests --op-type causal_conv1d` renders this file anew.

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
from itertools import accumulate
from typing import Any

import torch

from generator.ops.op_types.causal_conv1d.relations import conv_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.causal_conv1d.relations

PAD_SLOT = -1
# exp(-x) of the sums overflows; inputs and weights have 4 bits each, so that a kernel
# that multiplies in bfloat16 makes no error that grows with them
_LARGE = 40.0
_CANCELLING = "four products, of 4 at most each, and a bias cancel"
_GATED = (
    "as without gates, of products of gates and inputs that bfloat16 rounds alike, times "
    "a gate up to 5.5: three sums up to 60 have errors of 2^-24 of that, times the gate"
)
_GATED_KERNEL = (
    f"{_GATED}; the kernel rounds the sum to bfloat16 as well, by 2^-8 at most, and both "
    "sides the product: 1.2e-2 in all"
)


def _size(definition: Definition, case: Case) -> float:
    """Return what a case multiplies inputs by, old and new: every product is as large.

    A bias is not multiplied: of sums of products that are, it is a smaller part. silu's
    slope is 1.1 at most, wherever a sum is.
    """
    return float(2.0 ** case.moved.get("x", 0.0))


TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=6e-5, nmse=1.6e-5),
        _GATED,
        source="oracle",
        constant="is_gated",
        growth=_size,
    ),
    Override(
        "output",
        Tolerance(rtol=1.2e-2, atol=6e-5, nmse=3e-5),
        _GATED_KERNEL,
        constant="is_gated",
        growth=_size,
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=4e-6, nmse=1.6e-5),
        "float32 sums and one rounding to bfloat16: half an ulp is 2^-8 of a value at "
        f"most, and 2^-16 its square; {_CANCELLING}: sums up to 16 have errors of 2^-24 "
        "of that, four times",
        source="oracle",
        growth=_size,
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=3e-2, nmse=2e-5),
        # acc += matrix_x * matrix_w, of which only acc is float32: causal_conv1d_triton.py,
        # lines 381 and 968 of SGLang 0.5.23
        "the kernel multiplies in bfloat16 and adds in float32: each product is rounded "
        f"by 2^-9 of itself; {_CANCELLING}, and leave 3.1e-2; most round as float32 does",
        source="sglang/triton",
        growth=_size,
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=8e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; {_CANCELLING}: sums up to 16 have errors of 2^-24 of that",
        growth=_size,
    ),
    Override(
        "new_conv_states",
        EXACT,
        "the state holds copies of inputs, or products that bfloat16 rounds once from all "
        "16 bits: both sides alike",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return sequences shorter and longer than a state, with one and without.

    For steps, shuffled slots and padding.
    """
    if "cu_seqlens" not in definition.interface.inputs:
        return [
            _step("one-sequence", "small", 1, 3),
            _step("shuffled-slots", "small", 3, 6),
            _step("padding", "small", 4, 6, (1, 3)),
            _step("large-values", "small", 2, 3, std=_LARGE),
            _step("batch", "medium", 33, 50, (3, 32)),
            _step("past-limits", LIMITS, 131, 150, (3, 32)),
            _step("large-batch", "large", 256, 300, (0, 255)),
        ]
    return [
        _prefill("one-token", "small", (1,), 2),
        _prefill("shorter-than-a-state", "small", (2, 1, 3), 5, (1,)),
        _prefill("new-sequences", "small", (5, 2), 3, (0, 1)),
        _prefill("large-values", "small", (4, 6), 3, (0,), _LARGE),
        _prefill("several", "medium", (9, 1, 40, 17), 7, (2,)),
        _prefill("past-limits", LIMITS, (2_060, *[90] * 70), 150, (2,)),
        _prefill("long", "large", (4096, 1000, 3), 5, (0,)),
    ]


def _step(
    name: str,
    size: str,
    batch_size: int,
    slots: int,
    padding: tuple[int, ...] = (),
    std: float = 1.0,
) -> Case:
    axes = {"batch_size": batch_size, "num_slots": slots}
    return Case(name, size, axes, {"padding": padding, "std": std})


def _prefill(
    name: str,
    size: str,
    lengths: tuple[int, ...],
    slots: int,
    fresh: tuple[int, ...] = (),
    std: float = 1.0,
) -> Case:
    axes = {
        "total_tokens": sum(lengths),
        "num_seqs": len(lengths),
        "len_cu_seqlens": len(lengths) + 1,
        "num_slots": slots,
    }
    return Case(name, size, axes, {"lengths": lengths, "fresh": fresh, "std": std})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs in the interface's order.

    x and gates bfloat16 [rows, dim]; conv_states bfloat16 [num_slots, dim, state_len]; weight
    bfloat16 [dim, width]; a bias bfloat16 [dim] where there is one; cu_seqlens and
    cache_indices int32; has_initial_state bool [num_seqs].
    """
    axes, params = {**definition.axes, **case.axes}, case.params
    lengths = params.get("lengths", ())
    rows = sum(lengths) or axes["batch_size"]
    slots = stream.child("slots").permutation(axes["num_slots"])
    slots = slots[: len(lengths) or rows].to(torch.int32)
    slots[list(params.get("padding", ()))] = PAD_SLOT
    pool = (axes["num_slots"], axes["dim"], axes["state_len"])
    shapes = {
        "x": ((rows, axes["dim"]), params["std"]),
        "conv_states": (pool, params["std"]),
        "weight": ((axes["dim"], axes["width"]), 0.5),
        "bias": ((axes["dim"],), 0.5),
    }
    inputs: dict[str, Any] = {
        name: stream.child(name).values(shape, std, torch.bfloat16)
        for name, (shape, std) in shapes.items()
    }
    for name in ("b_gate", "c_gate"):
        inputs[name] = stream.child(name).values(
            (rows, axes["dim"]), 1.0, torch.bfloat16
        )
    if params["std"] == _LARGE:
        for name in ("x", "conv_states", "weight"):
            inputs[name] = inputs[name].to(torch.float8_e4m3fn).to(torch.bfloat16)
    inputs["cu_seqlens"] = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
    inputs["cache_indices"] = slots
    old = [place not in params.get("fresh", ()) for place in range(len(lengths))]
    inputs["has_initial_state"] = torch.tensor(old, dtype=torch.bool)
    return {name: inputs[name] for name in definition.interface.inputs}


def is_gated(definition: Definition) -> bool:
    """Return whether gates are multiplied with what is convolved, and what comes of it."""
    return "is_gated" in definition.constants


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows, shaped as x, and the pool, in float64: a tap after the other."""
    x, weight = inputs["x"].double(), inputs["weight"].double()
    if is_gated(definition):
        x = (inputs["b_gate"].double() * x).bfloat16().double()
    pool, output = inputs["conv_states"].double(), torch.zeros_like(x)
    steps = range(len(x) + 1)
    ends = inputs["cu_seqlens"].tolist() if "cu_seqlens" in inputs else steps
    for place, slot in enumerate(inputs["cache_indices"].tolist()):
        if slot == PAD_SLOT:
            continue
        if "has_initial_state" in inputs and not inputs["has_initial_state"][place]:
            pool[slot] = 0.0
        for token in range(ends[place], ends[place + 1]):
            seen = torch.cat((pool[slot], x[token, :, None]), dim=1)
            total = (
                inputs["bias"].double() if "bias" in inputs else torch.zeros_like(x[0])
            )
            for tap in range(weight.shape[1]):
                total = total + weight[:, tap] * seen[:, tap]
            output[token] = total
            if is_gated(definition):
                output[token] *= inputs["c_gate"][token].double()
            elif "is_linear" not in definition.constants:
                # silu by exp(-log(1 + exp(-x)))
                softplus = torch.logaddexp(torch.zeros_like(total), -total)
                output[token] *= torch.exp(-softplus)
            pool[slot] = seen[:, 1:]
    return output, pool


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows that are not padding: bool [batch_size], or of all tokens.

    For padding the kernels leave a row as it was allocated.
    """
    if "cu_seqlens" in inputs:
        return torch.ones(len(inputs["x"]), dtype=torch.bool)
    rows: torch.Tensor = inputs["cache_indices"] != PAD_SLOT
    return rows


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernels; that of gates is for compute capability 9.0."""
    if is_gated(definition):
        needs = ("triton", "sglang.kernels.ops.mamba.lfm_short_conv")
        return (Backend("triton-gated", min_sm=90, max_sm=90, needs=needs),)
    return (Backend("triton", needs=("triton",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return rows and pool; the kernels write the pool, and want channels last."""
    if is_gated(definition):
        return _gated(inputs)
    from sglang.kernels.ops.mamba import causal_conv1d_triton as triton

    x, bias, slots = inputs["x"], inputs.get("bias"), inputs["cache_indices"]
    # [num_slots, dim, state_len] of which a token's channels lie side by side
    pool = inputs["conv_states"].transpose(1, 2).contiguous().transpose(1, 2)
    activation = None if "is_linear" in definition.constants else "silu"
    if "cu_seqlens" not in inputs:
        output = triton.causal_conv1d_update(
            x,
            pool,
            inputs["weight"],
            bias,
            activation,
            conv_state_indices=slots,
            pad_slot_id=PAD_SLOT,
        )
        return output, pool
    output = triton.causal_conv1d_fn(
        x.T,
        inputs["weight"],
        bias,
        pool,
        inputs["cu_seqlens"],
        inputs["cu_seqlens"].diff().tolist(),
        cache_indices=slots,
        has_initial_state=inputs["has_initial_state"],
        activation=activation,
        pad_slot_id=PAD_SLOT,
    )
    return output.T, pool


def _gated(inputs: dict[str, Any]) -> Any:
    """Return rows and pool of the kernels that multiply with the gates."""
    from sglang.kernels.ops.mamba import lfm_short_conv

    names = ("b_gate", "c_gate", "x", "weight", "conv_states")
    tensors, slots = [inputs[name] for name in names], inputs["cache_indices"]
    if "cu_seqlens" not in inputs:
        output = lfm_short_conv.fused_lfm_short_conv_decode(*tensors, slots)
    else:
        ends, goes_on = inputs["cu_seqlens"], inputs["has_initial_state"]
        longest = int(ends.diff().max())
        output = lfm_short_conv.fused_lfm_short_conv_prefill(
            *tensors, ends, slots, goes_on, longest
        )
    return output, inputs["conv_states"]


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=conv_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_CAUSAL_CONV1D_FWD_BIAS = Interface(
    inputs={
        "x": "bfloat16[total_tokens, dim]",
        "conv_states": "bfloat16[num_slots, dim, state_len]",
        "weight": "bfloat16[dim, width]",
        "bias": "bfloat16[dim]",
        "cu_seqlens": "int32[len_cu_seqlens]",
        "cache_indices": "int32[num_seqs]",
        "has_initial_state": "bool[num_seqs]",
    },
    outputs={
        "output": "bfloat16[total_tokens, dim]",
        "new_conv_states": "bfloat16[num_slots, dim, state_len]",
    },
    constraints=(
        "state_len == width - 1",
        "len_cu_seqlens == num_seqs + 1",
        "total_tokens == cu_seqlens[-1].item()",
        "cache_indices.min() >= 0",
    ),
)
INTERFACE_CAUSAL_CONV1D_FWD = INTERFACE_CAUSAL_CONV1D_FWD_BIAS.but(
    without=("bias",),
)
INTERFACE_CAUSAL_CONV1D_FWD_GATED = INTERFACE_CAUSAL_CONV1D_FWD.but(
    inputs={
        "b_gate": "bfloat16[total_tokens, dim]",
        "c_gate": "bfloat16[total_tokens, dim]",
    },
)
INTERFACE_CAUSAL_CONV1D_UPDATE_BIAS = Interface(
    inputs={
        "x": "bfloat16[batch_size, dim]",
        "conv_states": "bfloat16[num_slots, dim, state_len]",
        "weight": "bfloat16[dim, width]",
        "bias": "bfloat16[dim]",
        "cache_indices": "int32[batch_size]",
    },
    outputs={
        "output": "bfloat16[batch_size, dim]",
        "new_conv_states": "bfloat16[num_slots, dim, state_len]",
    },
    constraints=("state_len == width - 1", "num_slots >= batch_size"),
)
INTERFACE_CAUSAL_CONV1D_UPDATE = INTERFACE_CAUSAL_CONV1D_UPDATE_BIAS.but(
    without=("bias",),
)
INTERFACE_CAUSAL_CONV1D_UPDATE_GATED = INTERFACE_CAUSAL_CONV1D_UPDATE.but(
    inputs={
        "b_gate": "bfloat16[batch_size, dim]",
        "c_gate": "bfloat16[batch_size, dim]",
    },
)

# ---- the tests


class CausalConv1dTests(
    GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of causal_conv1d share."""

    op_type = "causal_conv1d"
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
# (2) the kernel multiplies in bfloat16 and adds in float32.
# (3) both sides round nearly the same float32 value once.
# (4) the state holds copies of inputs, or products that bfloat16 rounds once from all
# 16 bits.
# (5) as without gates, of products of gates and inputs that bfloat16 rounds alike,
# times a gate up to 5.5.


# Causal convolution of each channel, then silu(x) = x * sigmoid(x): bias + the sum over
# j of weight[j] * x[t - 3 + j]. A sequence's state is its last 3 inputs, in a slot of a
# pool: the oldest first, before silu. Several sequences, whose tokens stand one after
# another; before the first token of one without an initial state are zeros. Every
# sequence has a slot: of one with slot -1, which kernels skip, nothing is defined.
# stage:prefill, model:nemotron-h-8b, tp:1
# Tolerances:
#   output           source          rtol   atol    NMSE     reason
#   output           oracle          0.004  4e-06*  1.6e-05  (1)
#   output           sglang/triton   0.008  0.03*   2e-05    (2)
#   output           sglang          0.008  8e-06*  1.6e-05  (3)
#   new_conv_states  oracle, sglang  exact                   (4)
def reference_causal_conv1d_fwd_bias():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        cu_seqlens: torch.Tensor,
        cache_indices: torch.Tensor,
        has_initial_state: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state_len = conv_states.shape[2]
        output = torch.empty_like(x)
        new_conv_states = conv_states.clone()
        for i, slot in enumerate(cache_indices.tolist()):
            start, end = cu_seqlens[i : i + 2].tolist()
            before = conv_states[slot].T
            if not has_initial_state[i]:
                before = torch.zeros_like(before)
            seen = torch.cat((before, x[start:end]))  # [state_len + tokens, dim]

            # [tokens, dim, width]: what each output sees, the oldest input first
            windows = seen.float().unfold(0, weight.shape[1], 1)
            convolved = bias.float() + (windows * weight.float()).sum(dim=-1)
            output[start:end] = torch.nn.functional.silu(convolved).to(x.dtype)
            new_conv_states[slot] = seen[-state_len:].T
        return output, new_conv_states

    return run


class TestCausalConv1dFwdBiasD10240W4(CausalConv1dTests):
    name = "causal_conv1d_fwd_bias_d10240_w4"
    reference = staticmethod(reference_causal_conv1d_fwd_bias)
    interface = INTERFACE_CAUSAL_CONV1D_FWD_BIAS
    axes = {"dim": 10240, "width": 4, "state_len": 3}
    sha256 = "3d9f8f04cd773cdd8ce0beeff7c055c148816ffaf3c0e98388b31f5e980c1893"


# Causal convolution of each channel, then silu(x) = x * sigmoid(x): the sum over j of
# weight[j] * x[t - 3 + j]. A sequence's state is its last 3 inputs, in a slot of a
# pool: the oldest first, before silu. Several sequences, whose tokens stand one after
# another; before the first token of one without an initial state are zeros. Every
# sequence has a slot: of one with slot -1, which kernels skip, nothing is defined.
# stage:prefill, tp:1
# Tolerances: those of reference_causal_conv1d_fwd_bias.
def reference_causal_conv1d_fwd():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        cu_seqlens: torch.Tensor,
        cache_indices: torch.Tensor,
        has_initial_state: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state_len = conv_states.shape[2]
        output = torch.empty_like(x)
        new_conv_states = conv_states.clone()
        for i, slot in enumerate(cache_indices.tolist()):
            start, end = cu_seqlens[i : i + 2].tolist()
            before = conv_states[slot].T
            if not has_initial_state[i]:
                before = torch.zeros_like(before)
            seen = torch.cat((before, x[start:end]))  # [state_len + tokens, dim]

            # [tokens, dim, width]: what each output sees, the oldest input first
            windows = seen.float().unfold(0, weight.shape[1], 1)
            convolved = (windows * weight.float()).sum(dim=-1)
            output[start:end] = torch.nn.functional.silu(convolved).to(x.dtype)
            new_conv_states[slot] = seen[-state_len:].T
        return output, new_conv_states

    return run


class CausalConv1dFwdBase(CausalConv1dTests):
    reference = staticmethod(reference_causal_conv1d_fwd)
    interface = INTERFACE_CAUSAL_CONV1D_FWD
    axes = {"width": 4, "state_len": 3}

class TestCausalConv1dFwdD4096W4(CausalConv1dFwdBase):
    name = "causal_conv1d_fwd_d4096_w4"  # model:kimi-linear-48b-a3b
    axes = {"dim": 4096}
    sha256 = "8033eb53e903af7971e6a13f161709e41e7a16798127574f70a978c94a1a54d5"

class TestCausalConv1dFwdD8192W4(CausalConv1dFwdBase):
    name = "causal_conv1d_fwd_d8192_w4"  # model:qwen3-next-80b-a3b
    axes = {"dim": 8192}
    sha256 = "cd519aff256f0fdcb7392a5b1137fa3557fe05f27a8144b92a298002a7582fdf"


# Causal convolution of each channel of u = b_gate * x, rounded to bfloat16, then times
# c_gate: the sum over j of weight[j] * u[t - 2 + j]. A sequence's state is its last 2
# inputs, in a slot of a pool: the oldest first. Several sequences, whose tokens stand
# one after another; before the first token of one without an initial state are zeros.
# Every sequence has a slot: of one with slot -1, which kernels skip, nothing is
# defined.
# stage:prefill, tp:1
# Tolerances:
#   output           source          rtol   atol    NMSE     reason
#   output           oracle          0.004  6e-05*  1.6e-05  (5)
#   output           sglang          0.012  6e-05*  3e-05    (5)
#   new_conv_states  oracle, sglang  exact                   (4)
def reference_causal_conv1d_fwd_gated():
    import torch


    @torch.no_grad()
    def run(
        b_gate: torch.Tensor,
        c_gate: torch.Tensor,
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        cu_seqlens: torch.Tensor,
        cache_indices: torch.Tensor,
        has_initial_state: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state_len = conv_states.shape[2]
        # What is convolved, and kept as a state, is rounded to bfloat16.
        x = (b_gate.float() * x.float()).to(x.dtype)
        output = torch.empty_like(x)
        new_conv_states = conv_states.clone()
        for i, slot in enumerate(cache_indices.tolist()):
            start, end = cu_seqlens[i : i + 2].tolist()
            before = conv_states[slot].T
            if not has_initial_state[i]:
                before = torch.zeros_like(before)
            seen = torch.cat((before, x[start:end]))  # [state_len + tokens, dim]

            # [tokens, dim, width]: what each output sees, the oldest input first
            windows = seen.float().unfold(0, weight.shape[1], 1)
            convolved = (windows * weight.float()).sum(dim=-1)
            output[start:end] = (c_gate[start:end].float() * convolved).to(x.dtype)
            new_conv_states[slot] = seen[-state_len:].T
        return output, new_conv_states

    return run


class CausalConv1dFwdGatedBase(CausalConv1dTests):
    reference = staticmethod(reference_causal_conv1d_fwd_gated)
    interface = INTERFACE_CAUSAL_CONV1D_FWD_GATED
    axes = {"width": 3, "state_len": 2}
    constants = ("is_gated",)
    IS_GATED = True  # "gated" in the name

class TestCausalConv1dFwdGatedD1024W3(CausalConv1dFwdGatedBase):
    name = "causal_conv1d_fwd_gated_d1024_w3"  # model:lfm2-350m
    axes = {"dim": 1024}
    sha256 = "a87cd934e23518150db97b29a335850bf7a18882a63d42b5c214e040fc2be36e"

class TestCausalConv1dFwdGatedD1536W3(CausalConv1dFwdGatedBase):
    name = "causal_conv1d_fwd_gated_d1536_w3"  # model:lfm2-700m
    axes = {"dim": 1536}
    sha256 = "a1064e77e34feeb55736b08bfa70a0f7b83f4d1674207fb192154db907863a89"

# model:lfm2-1.2b, model:lfm2-2.6b, model:lfm2-8b-a1b
class TestCausalConv1dFwdGatedD2048W3(CausalConv1dFwdGatedBase):
    name = "causal_conv1d_fwd_gated_d2048_w3"
    axes = {"dim": 2048}
    sha256 = "559ffd193074807675e79e96902748ac001d70dcdf3b7f93d78fca8d61fe4998"


# Causal convolution of each channel and no activation behind it: the sum over j of
# weight[j] * x[t - 2 + j]. A sequence's state is its last 2 inputs, in a slot of a
# pool: the oldest first. Several sequences, whose tokens stand one after another;
# before the first token of one without an initial state are zeros. Every sequence has a
# slot: of one with slot -1, which kernels skip, nothing is defined.
# stage:prefill, tp:1
# Tolerances: those of reference_causal_conv1d_fwd_bias.
def reference_causal_conv1d_fwd_linear():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        cu_seqlens: torch.Tensor,
        cache_indices: torch.Tensor,
        has_initial_state: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        state_len = conv_states.shape[2]
        output = torch.empty_like(x)
        new_conv_states = conv_states.clone()
        for i, slot in enumerate(cache_indices.tolist()):
            start, end = cu_seqlens[i : i + 2].tolist()
            before = conv_states[slot].T
            if not has_initial_state[i]:
                before = torch.zeros_like(before)
            seen = torch.cat((before, x[start:end]))  # [state_len + tokens, dim]

            # [tokens, dim, width]: what each output sees, the oldest input first
            windows = seen.float().unfold(0, weight.shape[1], 1)
            convolved = (windows * weight.float()).sum(dim=-1)
            output[start:end] = convolved.to(x.dtype)
            new_conv_states[slot] = seen[-state_len:].T
        return output, new_conv_states

    return run


class CausalConv1dFwdLinearBase(CausalConv1dTests):
    reference = staticmethod(reference_causal_conv1d_fwd_linear)
    interface = INTERFACE_CAUSAL_CONV1D_FWD
    axes = {"width": 3, "state_len": 2}
    constants = ("is_linear",)
    IS_LINEAR = True  # "linear" in the name

class TestCausalConv1dFwdLinearD1024W3(CausalConv1dFwdLinearBase):
    name = "causal_conv1d_fwd_linear_d1024_w3"  # model:lfm2-350m
    axes = {"dim": 1024}
    sha256 = "48236fa0ff67469830218c35dc6f5a1970c605a76d5d16b7ad87d4ac4cdc14e0"

class TestCausalConv1dFwdLinearD1536W3(CausalConv1dFwdLinearBase):
    name = "causal_conv1d_fwd_linear_d1536_w3"  # model:lfm2-700m
    axes = {"dim": 1536}
    sha256 = "9036bb58d0781f4ba27feb97c0ed9385e05872d012386545fd88c3448d28ec34"

# model:lfm2-1.2b, model:lfm2-2.6b, model:lfm2-8b-a1b
class TestCausalConv1dFwdLinearD2048W3(CausalConv1dFwdLinearBase):
    name = "causal_conv1d_fwd_linear_d2048_w3"
    axes = {"dim": 2048}
    sha256 = "6198bc224c8bd475f55400f2029ce3fb3df51522d1eaddc47dfa5794f830741c"


# Causal convolution of each channel, then silu(x) = x * sigmoid(x): bias + the sum over
# j of weight[j] * x[t - 3 + j]. A sequence's state is its last 3 inputs, in a slot of a
# pool: the oldest first, before silu. One token a sequence. A row of slot -1 is
# padding: no state is written, and its output is 0.
# stage:decode, model:nemotron-h-8b, tp:1
# Tolerances: those of reference_causal_conv1d_fwd_bias.
def reference_causal_conv1d_update_bias():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        cache_indices: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Slot -1 marks padding: such a row returns 0 and writes no state.
        rows = (cache_indices >= 0).nonzero().squeeze(1)
        slots = cache_indices[rows].long()
        seen = torch.cat((conv_states[slots], x[rows].unsqueeze(2)), dim=2)

        convolved = bias.float() + (seen.float() * weight.float()).sum(dim=-1)
        output = torch.zeros_like(x)
        output[rows] = torch.nn.functional.silu(convolved).to(x.dtype)
        new_conv_states = conv_states.clone()
        new_conv_states[slots] = seen[:, :, 1:]
        return output, new_conv_states

    return run


class TestCausalConv1dUpdateBiasD10240W4(CausalConv1dTests):
    name = "causal_conv1d_update_bias_d10240_w4"
    reference = staticmethod(reference_causal_conv1d_update_bias)
    interface = INTERFACE_CAUSAL_CONV1D_UPDATE_BIAS
    axes = {"dim": 10240, "width": 4, "state_len": 3}
    sha256 = "554232f2140caeade8d61f9d09f9926188fbd49ac88417cacde5d7e41517c1f1"


# Causal convolution of each channel, then silu(x) = x * sigmoid(x): the sum over j of
# weight[j] * x[t - 3 + j]. A sequence's state is its last 3 inputs, in a slot of a
# pool: the oldest first, before silu. One token a sequence. A row of slot -1 is
# padding: no state is written, and its output is 0.
# stage:decode, tp:1
# Tolerances: those of reference_causal_conv1d_fwd_bias.
def reference_causal_conv1d_update():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        cache_indices: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Slot -1 marks padding: such a row returns 0 and writes no state.
        rows = (cache_indices >= 0).nonzero().squeeze(1)
        slots = cache_indices[rows].long()
        seen = torch.cat((conv_states[slots], x[rows].unsqueeze(2)), dim=2)

        convolved = (seen.float() * weight.float()).sum(dim=-1)
        output = torch.zeros_like(x)
        output[rows] = torch.nn.functional.silu(convolved).to(x.dtype)
        new_conv_states = conv_states.clone()
        new_conv_states[slots] = seen[:, :, 1:]
        return output, new_conv_states

    return run


class CausalConv1dUpdateBase(CausalConv1dTests):
    reference = staticmethod(reference_causal_conv1d_update)
    interface = INTERFACE_CAUSAL_CONV1D_UPDATE
    axes = {"width": 4, "state_len": 3}

class TestCausalConv1dUpdateD4096W4(CausalConv1dUpdateBase):
    name = "causal_conv1d_update_d4096_w4"  # model:kimi-linear-48b-a3b
    axes = {"dim": 4096}
    sha256 = "9b0b755d3c5edd0e4aba88b67a3bf8913605c382dc38310c69638723c0bc7b16"

class TestCausalConv1dUpdateD8192W4(CausalConv1dUpdateBase):
    name = "causal_conv1d_update_d8192_w4"  # model:qwen3-next-80b-a3b
    axes = {"dim": 8192}
    sha256 = "6cd7ae9753a5b5f522ca43cc6a82a9091aaea8a67074861b2f24de387cb249f1"


# Causal convolution of each channel of u = b_gate * x, rounded to bfloat16, then times
# c_gate: the sum over j of weight[j] * u[t - 2 + j]. A sequence's state is its last 2
# inputs, in a slot of a pool: the oldest first. One token a sequence. A row of slot -1
# is padding: no state is written, and its output is 0.
# stage:decode, tp:1
# Tolerances: those of reference_causal_conv1d_fwd_gated.
def reference_causal_conv1d_update_gated():
    import torch


    @torch.no_grad()
    def run(
        b_gate: torch.Tensor,
        c_gate: torch.Tensor,
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        cache_indices: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Slot -1 marks padding: such a row returns 0 and writes no state.
        rows = (cache_indices >= 0).nonzero().squeeze(1)
        slots = cache_indices[rows].long()
        # What is convolved, and kept as a state, is rounded to bfloat16.
        x = (b_gate.float() * x.float()).to(x.dtype)
        seen = torch.cat((conv_states[slots], x[rows].unsqueeze(2)), dim=2)

        convolved = (seen.float() * weight.float()).sum(dim=-1)
        output = torch.zeros_like(x)
        output[rows] = (c_gate[rows].float() * convolved).to(x.dtype)
        new_conv_states = conv_states.clone()
        new_conv_states[slots] = seen[:, :, 1:]
        return output, new_conv_states

    return run


class CausalConv1dUpdateGatedBase(CausalConv1dTests):
    reference = staticmethod(reference_causal_conv1d_update_gated)
    interface = INTERFACE_CAUSAL_CONV1D_UPDATE_GATED
    axes = {"width": 3, "state_len": 2}
    constants = ("is_gated",)
    IS_GATED = True  # "gated" in the name

class TestCausalConv1dUpdateGatedD1024W3(CausalConv1dUpdateGatedBase):
    name = "causal_conv1d_update_gated_d1024_w3"  # model:lfm2-350m
    axes = {"dim": 1024}
    sha256 = "4c64431670b9e66c6cce306ff19f46d1498eaa0ba423e747d264ed53e2ddee09"

class TestCausalConv1dUpdateGatedD1536W3(CausalConv1dUpdateGatedBase):
    name = "causal_conv1d_update_gated_d1536_w3"  # model:lfm2-700m
    axes = {"dim": 1536}
    sha256 = "415d2ac52b26b457fcc5efd1ec1d2a4a2f5203ee9151ff064780b5e99a303971"

# model:lfm2-1.2b, model:lfm2-2.6b, model:lfm2-8b-a1b
class TestCausalConv1dUpdateGatedD2048W3(CausalConv1dUpdateGatedBase):
    name = "causal_conv1d_update_gated_d2048_w3"
    axes = {"dim": 2048}
    sha256 = "813f9e51249b980e38964735d099e07eef116812fc6621282ee47b904b95968c"


# Causal convolution of each channel and no activation behind it: the sum over j of
# weight[j] * x[t - 2 + j]. A sequence's state is its last 2 inputs, in a slot of a
# pool: the oldest first. One token a sequence. A row of slot -1 is padding: no state is
# written, and its output is 0.
# stage:decode, tp:1
# Tolerances: those of reference_causal_conv1d_fwd_bias.
def reference_causal_conv1d_update_linear():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        conv_states: torch.Tensor,
        weight: torch.Tensor,
        cache_indices: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Slot -1 marks padding: such a row returns 0 and writes no state.
        rows = (cache_indices >= 0).nonzero().squeeze(1)
        slots = cache_indices[rows].long()
        seen = torch.cat((conv_states[slots], x[rows].unsqueeze(2)), dim=2)

        convolved = (seen.float() * weight.float()).sum(dim=-1)
        output = torch.zeros_like(x)
        output[rows] = convolved.to(x.dtype)
        new_conv_states = conv_states.clone()
        new_conv_states[slots] = seen[:, :, 1:]
        return output, new_conv_states

    return run


class CausalConv1dUpdateLinearBase(CausalConv1dTests):
    reference = staticmethod(reference_causal_conv1d_update_linear)
    interface = INTERFACE_CAUSAL_CONV1D_UPDATE
    axes = {"width": 3, "state_len": 2}
    constants = ("is_linear",)
    IS_LINEAR = True  # "linear" in the name

class TestCausalConv1dUpdateLinearD1024W3(CausalConv1dUpdateLinearBase):
    name = "causal_conv1d_update_linear_d1024_w3"  # model:lfm2-350m
    axes = {"dim": 1024}
    sha256 = "d1dcb0cb2cc38494074949c027dd14869010def56fe518846ace73d28a857f1d"

class TestCausalConv1dUpdateLinearD1536W3(CausalConv1dUpdateLinearBase):
    name = "causal_conv1d_update_linear_d1536_w3"  # model:lfm2-700m
    axes = {"dim": 1536}
    sha256 = "d8241327cc2cb96a24fdd60ff94d66474f4a0569ed0b1dd1714dfdef9dc7d90d"

# model:lfm2-1.2b, model:lfm2-2.6b, model:lfm2-8b-a1b
class TestCausalConv1dUpdateLinearD2048W3(CausalConv1dUpdateLinearBase):
    name = "causal_conv1d_update_linear_d2048_w3"
    axes = {"dim": 2048}
    sha256 = "27be2c6f23806cffbf2beb58d57272163529f25484e650470c47cac02800fa40"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
