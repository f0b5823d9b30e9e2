"""Reference tests of op_type plain_activation.

Rendered: don't edit. `gen-tests --op-type plain_activation` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.plain_activation.relations import activation_relations
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
# relations: generator.ops.op_types.plain_activation.relations

_CANCELLED = (
    "for negative numbers 1 + erf and 1 + tanh cancel from 1 in float32: three errors of "
    "2^-24, times half a number of 5.5 at most"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=5e-7, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_CANCELLED}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; {_CANCELLED}, on either side",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, numbers at either end, and such as differ most between kinds."""
    return [
        Case("one-row", "small", {"num_tokens": 1}),
        Case("odd-rows", "small", {"num_tokens": 7}, {"std": 3.0}),
        Case("negative", "small", {"num_tokens": 3}, {"mean": -2.75, "std": 0.5}),
        Case("large-values", "small", {"num_tokens": 3}, {"std": 1e3}),
        # of smaller ones half is a bfloat16 number, and what the square adds is rounded away
        Case("small-values", "small", {"num_tokens": 3}, {"std": 2.0**-4}),
        Case("batch", "medium", {"num_tokens": 67}, {"std": 2.0}),
        past_limits("num_tokens", 8_219, {"std": 2.0}),
        Case("long-batch", "large", {"num_tokens": 8_192}, {"std": 2.0}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return x bfloat16 [num_tokens, intermediate_size]; the first number is 0."""
    shape = (case.axes["num_tokens"], definition.axes["intermediate_size"])
    x = stream.child("x").values(shape, case.params.get("std", 1.0))
    x += case.params.get("mean", 0.0)
    x[0, 0] = 0.0
    return {"x": x.to(torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the result in float64, of functions that lose no digit for negative ones."""
    x: torch.Tensor = inputs["x"].double()
    if "quick" in definition.constants:
        return x * _sigmoid(1.702 * x)
    if "tanh" in definition.constants:
        # (1 + tanh(z)) / 2 = sigmoid(2z)
        return x * _sigmoid(math.sqrt(8.0 / math.pi) * (x + 0.044715 * x**3))
    share: torch.Tensor = torch.special.erfc(-x / math.sqrt(2.0)) / 2.0
    return x * share


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(-torch.logaddexp(torch.zeros_like(x), -x))


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code of quick GELU; of the others it calls PyTorch."""
    quick = "quick" in definition.constants
    return (Backend("native", needs_cuda=False),) if quick else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call the layer's native code in float32, and round once as a kernel would."""
    from sglang.srt.layers.activation import QuickGELU

    x = inputs["x"]
    output: torch.Tensor = QuickGELU().forward_native(x.float()).to(x.dtype)
    return output


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's kernels, of which quick GELU is none."""
    return () if "quick" in definition.constants else (Backend("gelu"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.nn.functional.gelu of the rows as they are."""
    kind = "tanh" if "tanh" in definition.constants else "none"
    return torch.nn.functional.gelu(inputs["x"], approximate=kind)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=activation_relations,
    tolerances=TOLERANCES,
    kernels={
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_GELU = Interface(
    inputs={"x": "bfloat16[num_tokens, intermediate_size]"},
    outputs={"output": "bfloat16[num_tokens, intermediate_size]"},
)

# ---- the tests


class PlainActivationTests(
    GroundTruthsAgree, matches("sglang", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of plain_activation share."""

    op_type = "plain_activation"
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


# Activation of an MLP without a gate: x * (1 + erf(x / sqrt(2))) / 2. In float32,
# rounded once to bfloat16.
# Tolerances:
#   output  source           rtol   atol   NMSE     reason
#   output  oracle           0.004  5e-07  1.6e-05  (1)
#   output  sglang, pytorch  0.008  1e-06  1.6e-05  (2)
def reference_gelu():
    import math

    import torch


    @torch.no_grad()
    def run(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        share = 0.5 * (1.0 + torch.erf(wide / math.sqrt(2.0)))
        return (wide * share).to(x.dtype)

    return run


class GeluBase(PlainActivationTests):
    reference = staticmethod(reference_gelu)
    interface = INTERFACE_GELU

class TestGeluI18176(GeluBase):
    name = "gelu_i18176"  # model:falcon-7b
    axes = {"intermediate_size": 18176}
    sha256 = "da3d81a74d2969336aeec37d127b1edc7040068edd365060a9935fc7bec9af0a"

class TestGeluI24576(GeluBase):
    name = "gelu_i24576"  # model:gpt-neox-20b
    axes = {"intermediate_size": 24576}
    sha256 = "2ed1a5ba62385d5fe9124024d578eba67e5f2097d8efcc0442f1f7ecf173131d"

class TestGeluI4096(GeluBase):
    name = "gelu_i4096"  # model:bge-large-en-v1.5, model:bert-large
    axes = {"intermediate_size": 4096}
    sha256 = "8aa3c71df99c5c05575008081105768d3aec0286f6b86d779dda6059e93ef1b5"

class TestGeluI5120(GeluBase):
    name = "gelu_i5120"  # model:whisper-large-v3
    axes = {"intermediate_size": 5120}
    sha256 = "f813c0924f2ab7e236f0bc635ae6add3fc5e7a617ea7eb5568b72175d74c77c0"


# Activation of an MLP without a gate: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 *
# x^3))) / 2. In float32, rounded once to bfloat16.
# Tolerances: those of reference_gelu.
def reference_gelu_tanh():
    import math

    import torch


    @torch.no_grad()
    def run(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        inner = math.sqrt(2.0 / math.pi) * (wide + 0.044715 * wide * wide * wide)
        return (wide * (0.5 * (1.0 + torch.tanh(inner)))).to(x.dtype)

    return run


class GeluTanhBase(PlainActivationTests):
    reference = staticmethod(reference_gelu_tanh)
    interface = INTERFACE_GELU
    constants = ("tanh",)
    TANH = True  # "tanh" in the name

class TestGeluTanhI12288(GeluTanhBase):
    name = "gelu_tanh_i12288"  # model:starcoder2-3b
    axes = {"intermediate_size": 12288}
    sha256 = "99347469376215da4963452a05602cad182031323be420d4f010cdc37065a37a"

class TestGeluTanhI13824(GeluTanhBase):
    name = "gelu_tanh_i13824"  # model:wan2.1-t2v-14b
    axes = {"intermediate_size": 13824}
    sha256 = "67dd95efec0474cf98eb855955c50425bca530e5f7410aee2087c48dee0fedb1"

class TestGeluTanhI3072(GeluTanhBase):
    name = "gelu_tanh_i3072"  # model:gpt2
    axes = {"intermediate_size": 3072}
    sha256 = "0fc9fd8f907ceaaaf8697c80c2027c0eb486211feac275a3c7d75fc3105f9d8d"

# model:siglip-so400m, model:gemma-3-27b-vision, model:qwen3-vl-8b-vision
class TestGeluTanhI4304(GeluTanhBase):
    name = "gelu_tanh_i4304"
    axes = {"intermediate_size": 4304}
    sha256 = "3858b9fca88e0400cc87e9211d25022e330d0748727b6d5609ca3735a07e7f28"

class TestGeluTanhI6400(GeluTanhBase):
    name = "gelu_tanh_i6400"  # model:gpt2-xl
    axes = {"intermediate_size": 6400}
    sha256 = "519172fb3ed33f1cfac6042cc44778510e88acf7474fd20616bc7cde273b8b5d"


# Activation of an MLP without a gate: x * sigmoid(1.702 * x). In float32, rounded once
# to bfloat16.
# Tolerances: those of reference_gelu.
def reference_quick_gelu():
    import torch


    @torch.no_grad()
    def run(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.sigmoid(1.702 * wide)).to(x.dtype)

    return run


class QuickGeluBase(PlainActivationTests):
    reference = staticmethod(reference_quick_gelu)
    interface = INTERFACE_GELU
    constants = ("quick",)
    QUICK = True  # "quick" in the name

class TestQuickGeluI3072(QuickGeluBase):
    name = "quick_gelu_i3072"  # model:clip-vit-large-patch14-text
    axes = {"intermediate_size": 3072}
    sha256 = "032c25bc3cbccd638e87f521a0fe899898cfc22b2d5526e9401a988d9de7d93b"

class TestQuickGeluI4096(QuickGeluBase):
    name = "quick_gelu_i4096"  # model:clip-vit-large-patch14
    axes = {"intermediate_size": 4096}
    sha256 = "c76c8f2f170c15e741e81731d6e2e503f5a8e91db417d624793ed04d1f3087d1"

class TestQuickGeluI5120(QuickGeluBase):
    name = "quick_gelu_i5120"  # model:qwen2-vl-7b-vision
    axes = {"intermediate_size": 5120}
    sha256 = "089565aae2d10a6329289f73cd202c9596ae482d1e2eaccc3e69ce95cbfb9e89"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
