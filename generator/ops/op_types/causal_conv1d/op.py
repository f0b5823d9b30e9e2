"""causal_conv1d: a convolution of each channel with its last inputs, then silu.

output[t] = silu(bias + Σ_j weight[j] · x[t - width + 1 + j]), of LFM2 without silu; gated
it is c_gate[t] times that of b_gate · x, rounded to bfloat16. The last width - 1 inputs
of a sequence are its state, in a slot of a pool. A prefill has several sequences, of
which some go on from their state; a step has one token a sequence, and slot -1 is padding.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch

from generator.ops.op_types.causal_conv1d.relations import conv_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
