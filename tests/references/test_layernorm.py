"""Reference tests of op_type layernorm.

Rendered: don't edit. `gen-tests --op-type layernorm` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
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

from generator.ops.limit_cases import rows_past_limits
from generator.ops.op_types.layernorm.relations import norm_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.layernorm.relations

_CANCELLED = (
    "the mean, 8 deviations at most, has a float32 error of a few 2^-24 of itself, which "
    "is 2e-6 of a deviation, and so is what a product of 6 and a bias of 3 leave"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=6e-6, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        f"1.53e-5 its square; {_CANCELLED}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1.2e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart, and most to the same; {_CANCELLED}",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, rows with a variance of about eps, and with a large mean."""
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 2e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("large-mean", "small", {"batch_size": 3}, {"mean": 8.0}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"batch_size": 67}),
        *rows_past_limits("batch_size", definition.axes["hidden_size"]),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states bfloat16 [batch_size, hidden_size], weight and bias.

    Both are float32 [hidden_size]: the weight around one half, the bias around zero.
    """
    rows, columns = case.axes["batch_size"], definition.axes["hidden_size"]
    x = stream.child("hidden_states").values((rows, columns), 1.0)
    x = case.params.get("std", 1.0) * (x + case.params.get("mean", 0.3))
    x[: case.params.get("zero_rows", 0)] = 0.0
    return {
        "hidden_states": x.to(torch.bfloat16),
        "weight": 0.5 + stream.child("weight").values((columns,), 0.4),
        "bias": stream.child("bias").values((columns,), 0.5),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [batch_size, hidden_size], by the length of each."""
    x: torch.Tensor = inputs["hidden_states"].double()
    columns, eps = x.shape[1], definition.constants["eps"]
    centred = x - x.sum(dim=1, keepdim=True) / columns
    length = torch.linalg.vector_norm(centred, dim=1, keepdim=True)
    deviation = torch.sqrt(length * length / columns + eps)
    weight, bias = inputs["weight"].double(), inputs["bias"].double()
    normed: torch.Tensor = centred / deviation * weight + bias
    return normed


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return flashinfer.norm's rows; its `gemma` is the scale, without a one added."""
    from flashinfer import norm

    return norm.layernorm(
        inputs["hidden_states"],
        inputs["weight"],
        inputs["bias"],
        definition.constants["eps"],
    )


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which also runs on a CPU."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the native layer's rows: in float32, rounded once to bfloat16."""
    from sglang.srt.layers.layernorm import LayerNorm

    x = inputs["hidden_states"]
    norm = LayerNorm(x.shape[1], eps=definition.constants["eps"])
    norm.weight = torch.nn.Parameter(inputs["weight"], requires_grad=False)
    norm.bias = torch.nn.Parameter(inputs["bias"], requires_grad=False)
    out: torch.Tensor = norm.forward_native(x)
    return out


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=norm_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_LAYERNORM = Interface(
    inputs={
        "hidden_states": "bfloat16[batch_size, hidden_size]",
        "weight": "float32[hidden_size]",
        "bias": "float32[hidden_size]",
    },
    outputs={"output": "bfloat16[batch_size, hidden_size]"},
)

# ---- the tests


class LayernormTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of layernorm share."""

    op_type = "layernorm"
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
# (2) both sides round nearly the same float32 value once.


# Layer normalisation of hidden states: (x - mean(x)) * rsqrt(var(x) + 1e-05) * weight +
# bias, where var is the mean of the squared differences. In float32, rounded to
# bfloat16 at the end.
# fi_api:flashinfer.norm.layernorm
# Tolerances:
#   output  source              rtol   atol     NMSE     reason
#   output  oracle              0.004  6e-06    1.6e-05  (1)
#   output  flashinfer, sglang  0.008  1.2e-05  1.6e-05  (2)
def reference_layernorm_eps_1em5():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        x = hidden_states.float()
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        normed = centred * torch.rsqrt(variance + EPS)
        return (normed * weight + bias).to(hidden_states.dtype)

    return run


class LayernormEps1em5Base(LayernormTests):
    reference = staticmethod(reference_layernorm_eps_1em5)
    interface = INTERFACE_LAYERNORM
    constants = ("eps",)
    EPS = 1e-05  # "1em5" in the name

class TestLayernormEps1em5H1280(LayernormEps1em5Base):
    name = "layernorm_eps_1em5_h1280"  # model:whisper-large-v3
    axes = {"hidden_size": 1280}
    sha256 = "5322d069594c0b2006b8476cc2d606cb35e126cd614ea34c8cc65e6b431ef9ae"

class TestLayernormEps1em5H4096(LayernormEps1em5Base):
    name = "layernorm_eps_1em5_h4096"  # model:bloom-7b1
    axes = {"hidden_size": 4096}
    sha256 = "4cf1d7147cb615077a69b626f5652b47e951620639c69a8679cb2a1731b4bd00"


# Layer normalisation of the keys of an indexer: (x - mean(x)) * rsqrt(var(x) + 1e-06) *
# weight + bias, where var is the mean of the squared differences. In float32, rounded
# to bfloat16 at the end.
# model:deepseek-v3.2, fi_api:flashinfer.norm.layernorm
# Tolerances: those of reference_layernorm_eps_1em5.
def reference_layernorm():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        x = hidden_states.float()
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        normed = centred * torch.rsqrt(variance + EPS)
        return (normed * weight + bias).to(hidden_states.dtype)

    return run


class TestLayernormH128(LayernormTests):
    name = "layernorm_h128"
    reference = staticmethod(reference_layernorm)
    interface = INTERFACE_LAYERNORM
    axes = {"hidden_size": 128}
    constants = ("eps",)
    EPS = 1e-06  # the convention of layernorm
    sha256 = "d381ea45321abdcdd3b82c6b4d99c3fefe4221842f8c7c9650319f7b419ed224"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
