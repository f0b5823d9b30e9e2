"""rope_backward: gradients of heads, turned back by the angles of the forward pass.

The oracle multiplies complex numbers in float64. FlashInfer turns heads forward: with
sines of the other sign that is back. PyTorch's autograd of what models write is the other
kernel.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.rope_backward.relations import turn_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _size(definition: Definition, case: Case) -> float:
    """Return how large a case's gradients are."""
    return float(case.params.get("std", 1.0))


_TERMS = "two products of 4 at most, of which 2^-24 each is left where they cancel"
TOLERANCES = tuple(
    Override(
        output,
        Tolerance(rtol=rtol, atol=atol, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most{more}; {_TERMS}",
        source=source,
        growth=_size,
    )
    for output in ("grad_q_in", "grad_k_in")
    for source, rtol, atol, more in (
        ("oracle", 4e-3, 1e-6, ""),
        (None, 8e-3, 2e-6, ", or neighbours of two such"),
    )
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, an odd number, late positions and small gradients."""
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("odd-tokens", "small", {"num_tokens": 7}, {"first": 5}),
        Case("late-positions", "small", {"num_tokens": 3}, {"first": 131_064}),
        Case("small-gradients", "small", {"num_tokens": 3}, {"std": 2.0**-14}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 8_192}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return gradients bfloat16, and float32 cosines and sines of angles that differ."""
    lengths = {**definition.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name in ("grad_q", "grad_k"):
        shape = shape_of(definition.interface.input_specs[name], lengths)
        drawn = stream.child(name).values(shape, case.params.get("std", 1.0))
        inputs[name] = drawn.to(torch.bfloat16)
    half = definition.axes["half_dim"]
    positions = torch.arange(lengths["num_tokens"]).double() + case.params.get(
        "first", 0
    )
    angles = positions[:, None] * 500_000.0 ** (-torch.arange(half).double() / half)
    return {**inputs, "cos": angles.cos().float(), "sin": angles.sin().float()}


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the gradients, float64, as products with conjugate complex numbers."""
    turns = torch.complex(inputs["cos"].double(), -inputs["sin"].double())
    half = definition.axes["half_dim"]
    results = []
    for name in ("grad_q", "grad_k"):
        grad = inputs[name].double()
        heads = torch.complex(
            grad[..., :half].contiguous(), grad[..., half:].contiguous()
        )
        back = torch.einsum("thd,td->thd", heads, turns)
        results.append(torch.cat((back.real, back.imag), dim=-1))
    return tuple(results)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return FlashInfer's rotation, which turns forward."""
    back = "inputs rewritten: the sines have the other sign, so that heads turn back"
    return (Backend("", rewrites=back),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return both gradients from a cache with a row for each token."""
    import flashinfer

    q, k = inputs["grad_q"], inputs["grad_k"]
    cache = torch.cat((inputs["cos"], -inputs["sin"]), dim=1)
    q_out, k_out = flashinfer.apply_rope_with_cos_sin_cache(
        torch.arange(len(q), device=q.device),
        q.reshape(len(q), -1),
        k.reshape(len(k), -1),
        definition.axes["head_dim"],
        cache,
        is_neox=True,
    )
    return q_out.view_as(q), k_out.view_as(k)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return autograd of the rotation that models write, in float32."""
    written = "outputs rewritten: autograd of five kernels, not one, gives them"
    return (Backend("autograd", needs_cuda=False, rewrites=written),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return what autograd of x · cos + rotate_half(x) · sin gives."""
    cos, sin = (torch.cat((inputs[n],) * 2, dim=1)[:, None] for n in ("cos", "sin"))
    results = []
    for name in ("grad_q", "grad_k"):
        grad = inputs[name]
        x = torch.zeros_like(grad, dtype=torch.float32, requires_grad=True)
        with torch.enable_grad():
            first, second = x.chunk(2, dim=-1)
            turned = x * cos + torch.cat((-second, first), dim=-1) * sin
            (each,) = torch.autograd.grad(turned, x, grad.float())
        results.append(each.to(grad.dtype))
    return tuple(results)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=turn_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
