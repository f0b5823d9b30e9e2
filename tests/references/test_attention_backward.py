"""Reference tests of op_type attention_backward.

Rendered: don't edit. `gen-tests --op-type attention_backward` renders this file anew.

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
from collections.abc import Callable
from typing import Any

import torch

from generator.ops.far_factors import with_factors
from generator.ops.op_types.attention_backward.relations import gradient_relations
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
# relations: generator.ops.op_types.attention_backward.relations

# what a gradient is multiplied by, beside the values that all have in common
_FACTORS = {"grad_q": ("sm_scale", "k"), "grad_k": ("sm_scale", "q"), "grad_v": ()}
_UNIT = 2.0**-8
# of 2^20 elements one is beyond so many deviations with a probability of 10^-6
_DEVIATIONS = 7.5


def _size(output: str) -> Callable[[Definition, Case], float]:
    """Return the growth of a gradient's terms: the case's deviation cubed, its factors.

    Where a weight is nearly 1 its gradient is the difference of two sums of head_dim
    products, each of the deviation squared, times a key or a query.
    """

    def growth(definition: Definition, case: Case) -> float:
        exponent = sum(case.moved.get(name, 0.0) for name in _FACTORS[output])
        return float(case.params.get("std", 1.0) ** 3 * 2.0**exponent)

    return growth


def _of_flash(output: str, rounded: int) -> Override:
    """Return the bounds of flash attention's backward pass: `rounded` times on the way.

    The model and its constants are those of `kernel_judge.bounds`, row by row.
    """
    return Override(
        output,
        Tolerance(
            rtol=(rounded + 2) * _UNIT,
            atol=2e-5,
            nmse=2e-5,
            of_row=round(_DEVIATIONS * _UNIT * math.sqrt(rounded / 3.0), 4),
        ),
        f"{_ROUNDED[output]}: by 2^-8 at most and by 2^-8/sqrt(3) root mean square, of a "
        "sum's terms as well as of the sum, of which an element that happens to be small "
        "is off by as much as its row's others: 7.5 deviations; both outputs are rounded, "
        f"and the {rounded + 2} roundings of 2^-8/sqrt(3)/1.44 make "
        f"{(rounded + 2) * 2.5e-6:.1g} of the power at most, taken twice or more. What "
        "float32 leaves is as against the oracle",
        source="pytorch",
        growth=_size(output),
    )


_ROUNDED = {
    "grad_q": "the kernel rounds the gradients of logits to bfloat16 before the product",
    "grad_k": "the kernel rounds the gradients of logits to bfloat16 before the product, "
    "and what each query head of a group has before the group's sum",
    "grad_v": "the kernel rounds the weights to bfloat16 before the product, and what "
    "each query head of a group has before the group's sum",
}
TOLERANCES = (
    *(
        Override(
            output,
            Tolerance(rtol=4e-3, atol=2e-5, nmse=1.6e-5),
            "float32 sums and one rounding to bfloat16: half an ulp is 2^-8 of a value at "
            "most, and 2^-16 = 1.53e-5 its square. Before it, a logit's gradient is the "
            "difference of two sums of up to 128 products, off by 0.4·2^-24·sqrt(128) = "
            "2.7e-7, root mean square, times a key of up to 5: with seven deviations "
            "1e-5, and twice that over a group's queries",
            source="oracle",
            growth=_size(output),
        )
        for output in _FACTORS
    ),
    _of_flash("grad_q", 1),
    _of_flash("grad_k", 2),
    _of_flash("grad_v", 2),
)


def cases(definition: Definition) -> list[Case]:
    """Return two tokens, odd lengths, several sequences, sharp weights, many tokens."""
    usual = [
        # of one token alone grad_q is a difference of equal sums: noise around 0
        Case("two-tokens", "small", {"batch_size": 1, "seq_len": 2}),
        Case("odd-length", "small", {"batch_size": 1, "seq_len": 13}),
        Case("two-sequences", "small", {"batch_size": 2, "seq_len": 8}),
        Case("sharp", "small", {"batch_size": 1, "seq_len": 9}, {"std": 3.0}),
        Case("batch", "medium", {"batch_size": 3, "seq_len": 33}),
        Case("past-limits", LIMITS, {"batch_size": 3, "seq_len": 259}),
        Case("long", "large", {"batch_size": 2, "seq_len": 1024}),
    ]
    # a case whose scale is far from the usual has the same logits, and outputs of usual size
    apart = {"sm_scale": 20.0, "q": -10.0, "k": -10.0}
    other = {"sm_scale": -9.0, "q": 4.0, "k": 5.0}
    return [
        *usual,
        with_factors(usual[1], "factors-up", **apart),
        with_factors(usual[1], "factors-down", **other),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 inputs, output and lse those of the forward pass in float64."""
    heads, kv_heads, dim = (
        definition.axes[axis] for axis in ("num_qo_heads", "num_kv_heads", "head_dim")
    )
    batch, length = case.axes["batch_size"], case.axes["seq_len"]
    counts = {"grad_output": heads, "q": heads, "k": kv_heads, "v": kv_heads}
    values = {
        name: stream.child(name)
        .values((batch, length, count, dim), case.params.get("std", 1.0))
        .to(torch.bfloat16)
        for name, count in counts.items()
    }
    scale = 1.0 / math.sqrt(dim)
    q, k, v = (values[name].double().transpose(1, 2) for name in ("q", "k", "v"))
    k, v = (x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))
    later = torch.full((length, length), -torch.inf, dtype=torch.float64).triu(1)
    logits = q @ k.transpose(2, 3) * scale + later
    output = (logits.softmax(dim=-1) @ v).transpose(1, 2)
    return {
        **values,
        "output": output.contiguous().to(torch.bfloat16),
        "lse": logits.logsumexp(dim=-1).float(),
        "sm_scale": scale,
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the gradients in float64, by autograd, a head of queries at a time."""
    leaves = [inputs[name].double().requires_grad_() for name in ("q", "k", "v")]
    q, k, v = leaves
    each = q.shape[2] // k.shape[2]
    total = q.new_zeros(())
    with torch.enable_grad():
        for head in range(q.shape[2]):
            logits = q[:, :, head] @ k[:, :, head // each].mT * inputs["sm_scale"]
            weights = torch.exp(logits - inputs["lse"][:, head].double().unsqueeze(2))
            weights = torch.tril(weights)
            # what a key adds to the output that is held
            held = inputs["output"][:, :, head].double() * weights.sum(2, keepdim=True)
            moved = weights @ v[:, :, head // each] - held
            total = total + (moved * inputs["grad_output"][:, :, head].double()).sum()
        return torch.autograd.grad(total, leaves)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the backward pass of flash attention, which PyTorch has from SM80 on."""
    return (Backend("flash", min_sm=80),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return what scaled_dot_product_attention's backward pass calls on a GPU."""
    names = ("grad_output", "q", "k", "v", "output")
    heads_first = [inputs[name].transpose(1, 2) for name in names]
    length, device = inputs["q"].shape[1], inputs["q"].device
    # seed and offset of a dropout that there is none of
    unused = [torch.zeros(2, dtype=torch.uint64, device=device) for _ in range(2)]
    gradients = torch.ops.aten._scaled_dot_product_flash_attention_backward(
        *heads_first,
        inputs["lse"],
        None,
        None,
        length,
        length,
        0.0,
        True,
        *unused,
        scale=inputs["sm_scale"],
    )
    return tuple(gradient.transpose(1, 2) for gradient in gradients)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gradient_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_GQA_CAUSAL_BACKWARD = Interface(
    inputs={
        "grad_output": "bfloat16[batch_size, seq_len, num_qo_heads, head_dim]",
        "q": "bfloat16[batch_size, seq_len, num_qo_heads, head_dim]",
        "k": "bfloat16[batch_size, seq_len, num_kv_heads, head_dim]",
        "v": "bfloat16[batch_size, seq_len, num_kv_heads, head_dim]",
        "output": "bfloat16[batch_size, seq_len, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads, seq_len]",
        "sm_scale": "float32",
    },
    outputs={
        "grad_q": "bfloat16[batch_size, seq_len, num_qo_heads, head_dim]",
        "grad_k": "bfloat16[batch_size, seq_len, num_kv_heads, head_dim]",
        "grad_v": "bfloat16[batch_size, seq_len, num_kv_heads, head_dim]",
    },
)

# ---- the tests


class AttentionBackwardTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of attention_backward share."""

    op_type = "attention_backward"
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
# (2) the kernel rounds the gradients of logits to bfloat16 before the product.
# (3) the kernel rounds the gradients of logits to bfloat16 before the product, and what
# each query head of a group has before the group's sum.
# (4) the kernel rounds the weights to bfloat16 before the product, and what each query
# head of a group has before the group's sum.


# Gradients of causal grouped-query attention for queries, keys and values, from the
# output and the natural log-sum-exp of the forward pass: with P = exp(q k^T * sm_scale
# - lse), grad_v = P^T grad_output and the gradient of the logits is P * (grad_output
# v^T - sum(grad_output * output)). Keys and values get the sum over the query heads of
# their group. In float32, rounded once to bfloat16.
# mode:training
# Tolerances:
#   output  source   rtol    atol                      NMSE     reason
#   grad_q  oracle   0.004   2e-05*                    1.6e-05  (1)
#   grad_q  pytorch  0.0117  2e-05* + 0.017·row's RMS  2e-05    (2)
#   grad_k  oracle   0.004   2e-05*                    1.6e-05  (1)
#   grad_k  pytorch  0.0156  2e-05* + 0.024·row's RMS  2e-05    (3)
#   grad_v  oracle   0.004   2e-05*                    1.6e-05  (1)
#   grad_v  pytorch  0.0156  2e-05* + 0.024·row's RMS  2e-05    (4)
def reference_gqa_causal_backward():
    import torch


    @torch.no_grad()
    def run(
        grad_output: torch.Tensor,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        output: torch.Tensor,
        lse: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, length, heads, dim = q.shape
        kv_heads = k.shape[2]
        grouped = (batch, length, kv_heads, heads // kv_heads, dim)
        queries, grads = q.float().view(grouped), grad_output.float().view(grouped)
        keys, values = k.float(), v.float()

        # b: sequence, h: head of keys, g: query head of it, i: query, j: key
        logits = torch.einsum("bihgd,bjhd->bhgij", queries, keys) * sm_scale
        sums = lse.view(batch, kv_heads, heads // kv_heads, length, 1)
        is_later = torch.ones(length, length, device=q.device).triu(1).bool()
        weights = (logits - sums).exp().masked_fill(is_later, 0.0)

        grad_v = torch.einsum("bhgij,bihgd->bjhd", weights, grads)
        slopes = torch.einsum("bihgd,bjhd->bhgij", grads, values)
        # What the softmax's sum takes away: the product of output and its gradient.
        along = (grads * output.float().view(grouped)).sum(dim=-1)
        taken = along.permute(0, 2, 3, 1).unsqueeze(-1)
        grad_logits = weights * (slopes - taken) * sm_scale
        grad_q = torch.einsum("bhgij,bjhd->bihgd", grad_logits, keys)
        grad_k = torch.einsum("bhgij,bihgd->bjhd", grad_logits, queries)
        return (
            grad_q.reshape(q.shape).to(q.dtype),
            grad_k.to(k.dtype),
            grad_v.to(v.dtype),
        )

    return run


class GqaCausalBackwardBase(AttentionBackwardTests):
    reference = staticmethod(reference_gqa_causal_backward)
    interface = INTERFACE_GQA_CAUSAL_BACKWARD

class TestGqaCausalBackwardH12Kv12D64(GqaCausalBackwardBase):
    name = "gqa_causal_backward_h12_kv12_d64"  # model:gpt2
    axes = {"num_qo_heads": 12, "num_kv_heads": 12, "head_dim": 64}
    sha256 = "77756f11d2a05c3a7b19e61af0067c9d31c2cccc860c3a69db170f2b234143da"

class TestGqaCausalBackwardH32Kv8D128(GqaCausalBackwardBase):
    name = "gqa_causal_backward_h32_kv8_d128"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "0f18d3c71c7a0785a4fdba7f3a01a78323b2a299c2b69f19d5b0accfb9b759ff"

class TestGqaCausalBackwardH32Kv8D64(GqaCausalBackwardBase):
    name = "gqa_causal_backward_h32_kv8_d64"  # model:llama-3.2-1b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 64}
    sha256 = "84430a54f3f37282d5e879f88acecb04a252e918a3e0554e8309583fef2231de"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
