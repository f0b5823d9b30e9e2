"""Reference tests of op_type rope_backward.

Rendered: don't edit. `gen-tests --op-type rope_backward` renders this file anew.

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
from generator.ops.op_types.rope_backward.relations import turn_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.rope_backward.relations


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


# ---- the interfaces

INTERFACE_ROPE_BACKWARD_NEOX_STYLE = Interface(
    inputs={
        "grad_q": "bfloat16[num_tokens, num_qo_heads, head_dim]",
        "grad_k": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "cos": "float32[num_tokens, half_dim]",
        "sin": "float32[num_tokens, half_dim]",
    },
    outputs={
        "grad_q_in": "bfloat16[num_tokens, num_qo_heads, head_dim]",
        "grad_k_in": "bfloat16[num_tokens, num_kv_heads, head_dim]",
    },
    constraints=("half_dim == head_dim // 2",),
)

# ---- the tests


class RopeBackwardTests(
    GroundTruthsAgree, matches("flashinfer", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of rope_backward share."""

    op_type = "rope_backward"
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


# Gradients of rotary position embedding, NeoX style: dimensions i and i + half_dim of
# each head's gradient turn back by the angle by which those of the head turned. In
# float32, rounded once to bfloat16.
# mode:training
# Tolerances:
#   output     source               rtol   atol    NMSE     reason
#   grad_q_in  oracle               0.004  1e-06*  1.6e-05  (1)
#   grad_q_in  flashinfer, pytorch  0.008  2e-06*  1.6e-05  (1)
#   grad_k_in  oracle               0.004  1e-06*  1.6e-05  (1)
#   grad_k_in  flashinfer, pytorch  0.008  2e-06*  1.6e-05  (1)
def reference_rope_backward_neox_style():
    import torch


    @torch.no_grad()
    def run(
        grad_q: torch.Tensor, grad_k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        def turned_back(grad: torch.Tensor) -> torch.Tensor:
            first, second = grad.float().chunk(2, dim=-1)
            c, s = cos.unsqueeze(1), sin.unsqueeze(1)
            parts = (first * c + second * s, second * c - first * s)
            return torch.cat(parts, dim=-1).to(grad.dtype)

        return turned_back(grad_q), turned_back(grad_k)

    return run


class RopeBackwardNeoxStyleBase(RopeBackwardTests):
    reference = staticmethod(reference_rope_backward_neox_style)
    interface = INTERFACE_ROPE_BACKWARD_NEOX_STYLE

class TestRopeBackwardNeoxStyleH24Kv8D128(RopeBackwardNeoxStyleBase):
    name = "rope_backward_neox_style_h24_kv8_d128"  # model:llama-3.2-3b
    axes = {"num_qo_heads": 24, "num_kv_heads": 8, "head_dim": 128, "half_dim": 64}
    sha256 = "cb345dadda352d7e5397459ddd47e60de17bc4a4c4a10436a463da97991a8931"

class TestRopeBackwardNeoxStyleH32Kv4D128(RopeBackwardNeoxStyleBase):
    name = "rope_backward_neox_style_h32_kv4_d128"  # model:qwen3-30b-a3b
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128, "half_dim": 64}
    sha256 = "a59fba4a298d5b8d00e682b53f2e9e906ff58de11ceb2214bbbc54d64dae57e6"

class TestRopeBackwardNeoxStyleH32Kv8D128(RopeBackwardNeoxStyleBase):
    name = "rope_backward_neox_style_h32_kv8_d128"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128, "half_dim": 64}
    sha256 = "774da29243f85c56a18697028a8094ca9807ebf2c3d760df24e8b7fb3da57b09"

class TestRopeBackwardNeoxStyleH32Kv8D64(RopeBackwardNeoxStyleBase):
    name = "rope_backward_neox_style_h32_kv8_d64"  # model:llama-3.2-1b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 64, "half_dim": 32}
    sha256 = "ce91a576435cf1210984e67a51c03d64c4c6e3e7930472298b3be295e86c8aeb"

class TestRopeBackwardNeoxStyleH40Kv8D128(RopeBackwardNeoxStyleBase):
    name = "rope_backward_neox_style_h40_kv8_d128"  # model:qwen3-14b
    axes = {"num_qo_heads": 40, "num_kv_heads": 8, "head_dim": 128, "half_dim": 64}
    sha256 = "abd7ae70d915aaf6cc296e550cd7401dafdfb7f9e0f637d81f6841938bf864f4"

# model:llama-3.1-70b, model:qwen3-32b
class TestRopeBackwardNeoxStyleH64Kv8D128(RopeBackwardNeoxStyleBase):
    name = "rope_backward_neox_style_h64_kv8_d128"
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_dim": 128, "half_dim": 64}
    sha256 = "6f9ad906cf8930c2d8f635142de4567fef7f6c559e301ac8d55153caa4fdeec1"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
