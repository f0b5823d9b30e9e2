"""attention_backward: gradients of causal attention, from its output and log-sum-exp.

The oracle is float64 autograd: of sum_j exp(s_ij - lse_i) (v_j - output_i), with lse and
output held, whose derivatives for s and v are those of attention. The production kernel
is the flash attention of PyTorch, which rounds weights to bfloat16 between products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from generator.ops.far_factors import with_factors
from generator.ops.op_types.attention_backward.relations import gradient_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
