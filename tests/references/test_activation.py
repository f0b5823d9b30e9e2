"""Reference tests of op_type activation.

Rendered: don't edit. `gen-tests --op-type activation` renders this file anew.

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

import math
import sys
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.activation.relations import activation_relations
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
# relations: generator.ops.op_types.activation.relations

_ALPHA, _OAI_LIMIT = 1.702, 7.0
_NEAR_MINUS_3 = {"std": 0.5, "mean": -2.75}
_TANH = (
    "tanh.approx has a relative error of 2^-11 by the PTX manual: half of it times a gate "
    "of 5 at most, beyond which the tangent is 1, and times up is 1.2e-3 of up"
)
_CANCELLED = (
    "for negative gates 1 + erf and 1 + tanh cancel from 1 in float32: two errors of "
    "2^-24, times half a gate of 5.5 at most, are 3.3e-7 of up on either side"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=3.0, nmse=1.6e-5),
        f"{_TANH}, which is 2450 at most",
        source="flashinfer",
        case="large-values",
        constant="tanh",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=3e-3, nmse=1.6e-5),
        f"{_TANH}, which is 2.5 at most",
        source="flashinfer",
        case="negative-gates",
        constant="tanh",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1.5e-3, nmse=1.6e-5),
        f"{_TANH}, which is 1.25 at most",
        source="flashinfer",
        case="gates-near-minus-3",
        constant="tanh",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=9e-3, nmse=1.6e-5),
        f"{_TANH}, which is 7.4 at most",
        source="flashinfer",
        constant="tanh",
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-3, nmse=1.6e-5),
        f"one rounding to bfloat16, 2^-8; {_CANCELLED}, which is 2450 at most",
        source="oracle",
        case="large-values",
        constant="gelu",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=2e-3, nmse=1.6e-5),
        f"both sides round once, to neighbours at most; {_CANCELLED}, 2450 at most",
        case="large-values",
        constant="gelu",
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=3e-6, nmse=1.6e-5),
        f"one rounding to bfloat16, 2^-8; {_CANCELLED}, which is 7.4 at most",
        source="oracle",
        constant="gelu",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=6e-6, nmse=1.6e-5),
        f"both sides round once, to neighbours at most; {_CANCELLED}, 7.4 at most",
        constant="gelu",
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-30, nmse=1.6e-5),
        "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a "
        "value at most, and 2^-16 = 1.53e-5 its square; where exp(-gate) overflows "
        "float32, at gates below -88, silu is -0 instead of -1e-36",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-30, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart, and most to the same; exp(-gate) overflows float32 at gates below "
        "-88, where silu is -0 or -1e-36",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return batches of ordinary rows, and gates at either end of the activation.

    By the error function and by the tangent GELU differs most, as a share, near -3.
    """
    negative = {"std": 9.0, "mean": -30.0}
    if {"gelu", "relu2"} & set(definition.constants):
        # below -6 both are 0 in float32
        negative = {"std": 1.0, "mean": -2.0}
    near = Case("gates-near-minus-3", "small", {"num_tokens": 3}, _NEAR_MINUS_3)
    return [
        Case("one-row", "small", {"num_tokens": 1}, {"std": 1.0}),
        Case("odd-rows", "small", {"num_tokens": 7}, {"std": 3.0}),
        Case("negative-gates", "small", {"num_tokens": 3}, negative),
        Case("large-values", "small", {"num_tokens": 3}, {"std": 1e3}),
        Case("zero-rows", "small", {"num_tokens": 4}, {"std": 1.0, "zero_rows": 1}),
        *([near] if "gelu" in definition.constants else []),
        Case("batch", "medium", {"num_tokens": 67}, {"std": 2.0}),
        past_limits("num_tokens", 8_219, {"std": 2.0}),
        Case("long-batch", "large", {"num_tokens": 4096}, {"std": 2.0}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 rows of the case's deviation, of 2·intermediate_size with a gate.

    Of as many rows as the case says the gate is zero, of as many others `up`.
    """
    shape = (case.axes["num_tokens"], definition.axes["intermediate_size"])
    std, zero_rows = case.params["std"], case.params.get("zero_rows", 0)
    gate = stream.child("gate").values(shape, std) + case.params.get("mean", 0.0)
    gate[:zero_rows] = 0.0
    if "relu2" in definition.constants:
        return {"input": gate.to(torch.bfloat16)}
    up = stream.child("up").values(shape, std)
    up[zero_rows : 2 * zero_rows] = 0.0
    both = torch.cat((gate, up), dim=1)
    if "oai" in definition.constants:
        both = torch.stack((gate, up), dim=2).flatten(1)
    return {"input": both.to(torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the result in float64, of functions that lose no digit for negative gates."""
    x: torch.Tensor = inputs["input"].double()
    size, constants = definition.axes["intermediate_size"], definition.constants
    if "relu2" in constants:
        return torch.where(x > 0.0, x * x, 0.0)
    if "oai" in constants:
        gate = x[:, ::2].clamp(max=_OAI_LIMIT)
        up = x[:, 1::2].clamp(-_OAI_LIMIT, _OAI_LIMIT) + 1.0
        return up * gate * _sigmoid(_ALPHA * gate)
    gate, up = x[:, :size], x[:, size:]
    if "tanh" in constants:
        inner = math.sqrt(2.0 / math.pi) * (gate + 0.044715 * gate**3)
        # (1 + tanh(z)) / 2 = sigmoid(2z)
        return up * gate * _sigmoid(2.0 * inner)
    if "gelu" in constants:
        share: torch.Tensor = torch.special.erfc(-gate / math.sqrt(2.0)) / 2.0
        return up * gate * share
    if "limit" in constants:
        limit = float(constants["limit"])
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return up * gate * _sigmoid(gate)


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Return the sigmoid as exp(-log(1 + exp(-x)))."""
    return torch.exp(-torch.logaddexp(torch.zeros_like(x), -x))


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the one CUDA kernel there is; none of squared ReLU and clipped SwiGLU."""
    if {"relu2", "oai", "limit"} & set(definition.constants):
        return ()
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call flashinfer.activation's kernel, which wants rows of a multiple of 16 bytes."""
    from flashinfer import activation

    kernel = activation.silu_and_mul
    if "gelu" in definition.constants:
        kernel = activation.gelu_and_mul
    if "tanh" in definition.constants:
        kernel = activation.gelu_tanh_and_mul
    return kernel(inputs["input"])


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which runs anywhere, or V4's CUDA kernel."""
    if "limit" in definition.constants:
        return (Backend("jit", needs=("tvm_ffi",)),)
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call the layer's native code in float32, and round once as its kernels do.

    Given bfloat16, it would round silu(gate) before the product.
    """
    from sglang.srt.layers.activation import GeluAndMul, ReLU2, SiluAndMul

    x: torch.Tensor = inputs["input"]
    constants = definition.constants
    if backend == "jit":
        from sglang.kernels.ops.activation.silu_and_mul_clamp import silu_and_mul_clamp

        out = x.new_empty((len(x), definition.axes["intermediate_size"]))
        silu_and_mul_clamp(x, out, float(constants["limit"]))
        return out
    layer = ReLU2() if "relu2" in constants else SiluAndMul()
    if "gelu" in constants:
        layer = GeluAndMul("tanh" if "tanh" in constants else "none")
    out = layer.forward_native(x.float()) if "oai" not in constants else _clipped(x)
    return out.to(x.dtype)


def _clipped(x: torch.Tensor) -> torch.Tensor:
    """Return gpt-oss's clipped SwiGLU in float32 by the code of SGLang's fused MoE."""
    from sglang.srt.layers.moe.moe_runner.triton_utils import fused_moe

    # the function is compiled for its speed, which would take a C++ compiler here
    with torch.compiler.set_stance("force_eager"):
        out: torch.Tensor = fused_moe.swiglu_gpt_oss_sigmoid_alpha(
            x.float(), _ALPHA, _OAI_LIMIT
        )
    return out


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=activation_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_GELU_AND_MUL = Interface(
    inputs={"input": "bfloat16[num_tokens, gate_up_size]"},
    outputs={"output": "bfloat16[num_tokens, intermediate_size]"},
    constraints=("gate_up_size == 2 * intermediate_size",),
)
INTERFACE_RELU2 = Interface(
    inputs={"input": "bfloat16[num_tokens, intermediate_size]"},
    outputs={"output": "bfloat16[num_tokens, intermediate_size]"},
)

# ---- the tests


class ActivationTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of activation share."""

    op_type = "activation"
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
# (1) one rounding to bfloat16, 2^-8.
# (2) both sides round once, to neighbours at most.
# (3) tanh.approx has a relative error of 2^-11 by the PTX manual.
# (4) float32 arithmetic and one rounding to bfloat16.
# (5) both sides round nearly the same float32 value once.


# Gated activation of dense layers: gelu(gate) * up with gelu(x) = x * (1 + erf(x /
# sqrt(2))) / 2. The first 1152 columns of a row are the gate, the other 1152 the up
# projection. In float32, rounded to bfloat16 at the end.
# model:modernbert-base, fi_api:flashinfer.activation.gelu_and_mul
# Tolerances:
#   output  source                                      rtol   atol   NMSE     reason
#   output  oracle in large-values                      0.004  0.001  1.6e-05  (1)
#   output  oracle, flashinfer, sglang in large-values  0.008  0.002  1.6e-05  (2)
#   output  oracle                                      0.004  3e-06  1.6e-05  (1)
#   output  flashinfer, sglang                          0.008  6e-06  1.6e-05  (2)
def reference_gelu_and_mul():
    import torch


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        gate, up = input.float().chunk(2, dim=-1)
        # The product stays in float32: it is rounded once.
        return (torch.nn.functional.gelu(gate) * up).to(input.dtype)

    return run


class TestGeluAndMulI1152(ActivationTests):
    name = "gelu_and_mul_i1152"
    reference = staticmethod(reference_gelu_and_mul)
    interface = INTERFACE_GELU_AND_MUL
    axes = {"intermediate_size": 1152, "gate_up_size": 2304}
    constants = ("gelu",)
    GELU = True  # "gelu" in the name
    sha256 = "9150db9d57e84970070a411af42bf95878c41ef6bf6cdd29b7f768378c0b294f"


# Gated activation of dense layers: gelu(gate) * up with gelu(x) = x * (1 + tanh(sqrt(2
# / pi) * (x + 0.044715 * x^3))) / 2. In float32, rounded to bfloat16 at the end.
# fi_api:flashinfer.activation.gelu_tanh_and_mul
# Tolerances:
#   output  source                            rtol   atol    NMSE     reason
#   output  flashinfer in large-values        0.008  3       1.6e-05  (3)
#   output  flashinfer in negative-gates      0.008  0.003   1.6e-05  (3)
#   output  flashinfer in gates-near-minus-3  0.008  0.0015  1.6e-05  (3)
#   output  flashinfer                        0.008  0.009   1.6e-05  (3)
#   output  oracle in large-values            0.004  0.001   1.6e-05  (1)
#   output  oracle, sglang in large-values    0.008  0.002   1.6e-05  (2)
#   output  oracle                            0.004  3e-06   1.6e-05  (1)
#   output  sglang                            0.008  6e-06   1.6e-05  (2)
def reference_gelu_tanh_and_mul():
    import torch


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        gate, up = input.float().chunk(2, dim=-1)
        # The product stays in float32: it is rounded once.
        activated = torch.nn.functional.gelu(gate, approximate="tanh")
        return (activated * up).to(input.dtype)

    return run


class GeluTanhAndMulBase(ActivationTests):
    reference = staticmethod(reference_gelu_tanh_and_mul)
    interface = INTERFACE_GELU_AND_MUL
    constants = ("gelu", "tanh")
    GELU = True  # "gelu" in the name
    TANH = True  # "tanh" in the name

# The first 14336 columns of a row are the gate, the other 14336 the up projection.
class TestGeluTanhAndMulI14336(GeluTanhAndMulBase):
    name = "gelu_tanh_and_mul_i14336"  # model:gemma-2-9b
    axes = {"intermediate_size": 14336, "gate_up_size": 28672}
    sha256 = "eb2db4271f20d771973f03734a3063916933feaf93519d9c732134de5d401e11"

# The first 21504 columns of a row are the gate, the other 21504 the up projection.
class TestGeluTanhAndMulI21504(GeluTanhAndMulBase):
    name = "gelu_tanh_and_mul_i21504"  # model:gemma-3-27b
    axes = {"intermediate_size": 21504, "gate_up_size": 43008}
    sha256 = "fe4cbb7c635a566aec8c72eeb78227b9c458a43265fd2382552a41748b166384"

# The first 36864 columns of a row are the gate, the other 36864 the up projection.
class TestGeluTanhAndMulI36864(GeluTanhAndMulBase):
    name = "gelu_tanh_and_mul_i36864"  # model:gemma-2-27b
    axes = {"intermediate_size": 36864, "gate_up_size": 73728}
    sha256 = "2f0882366207d0b6ba365295fc3b0f9c73ae0a1e282dc872c9e5a81cbba9f85e"


# Activation of dense layers: the square of max(x, 0). In float32, rounded to bfloat16
# at the end.
# model:nemotron-h-8b
# Tolerances:
#   output  source              rtol   atol   NMSE     reason
#   output  oracle              0.004  1e-30  1.6e-05  (4)
#   output  flashinfer, sglang  0.008  1e-30  1.6e-05  (5)
def reference_relu2():
    import torch


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        return input.float().relu().square().to(input.dtype)

    return run


class TestRelu2I21504(ActivationTests):
    name = "relu2_i21504"
    reference = staticmethod(reference_relu2)
    interface = INTERFACE_RELU2
    axes = {"intermediate_size": 21504}
    constants = ("relu2",)
    RELU2 = True  # "relu2" in the name
    sha256 = "1d655087eab44176b1f9353aae553d566d225b66b00b911c0f9cd219d344f20a"


# In float32, rounded to bfloat16 at the end.
# fi_api:flashinfer.activation.silu_and_mul
# Tolerances: those of reference_relu2.
def reference_silu_and_mul():
    import torch


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        gate, up = input.float().chunk(2, dim=-1)
        # The product stays in float32: it is rounded once.
        return (torch.nn.functional.silu(gate) * up).to(input.dtype)

    return run


class SiluAndMulBase(ActivationTests):
    reference = staticmethod(reference_silu_and_mul)
    interface = INTERFACE_GELU_AND_MUL

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 11008 columns of a row are the gate, the other 11008 the up projection.
class TestSiluAndMulI11008(SiluAndMulBase):
    name = "silu_and_mul_i11008"  # model:smollm3-3b
    axes = {"intermediate_size": 11008, "gate_up_size": 22016}
    sha256 = "3b6636f04585f99f4c248a3c2f2024c9b6a8b65ae256dd4d28474baf4c7b2ff9"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 12288 columns of a row are the gate, the other 12288 the up projection.
class TestSiluAndMulI12288(SiluAndMulBase):
    name = "silu_and_mul_i12288"  # model:qwen3-8b
    axes = {"intermediate_size": 12288, "gate_up_size": 24576}
    sha256 = "93dd496e404fcf4cc4b732f33f019345fc8e8fbc39f632ab3594d3db4852f9e4"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 12800 columns of a row are the gate, the other 12800 the up projection.
class TestSiluAndMulI12800(SiluAndMulBase):
    name = "silu_and_mul_i12800"  # model:granite-4.1-8b
    axes = {"intermediate_size": 12800, "gate_up_size": 25600}
    sha256 = "9f5815276b6253bd866e9f858935af6fa92282f3c7812a117b7807ca96026731"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 14336 columns of a row are the gate, the other 14336 the up projection.
class TestSiluAndMulI14336(SiluAndMulBase):
    name = "silu_and_mul_i14336"  # model:llama-3.1-8b
    axes = {"intermediate_size": 14336, "gate_up_size": 28672}
    sha256 = "c2e6b47fc3e9d495de46a76f28072c034d046cbf664fd5c69f1c493c141ef784"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 17408 columns of a row are the gate, the other 17408 the up projection.
class TestSiluAndMulI17408(SiluAndMulBase):
    name = "silu_and_mul_i17408"  # model:qwen3-14b
    axes = {"intermediate_size": 17408, "gate_up_size": 34816}
    sha256 = "c0b0a8278de917f7e8055b8b78dbfc3ec1e76c2e860c1a7e451f42394577022f"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 17920 columns of a row are the gate, the other 17920 the up projection.
class TestSiluAndMulI17920(SiluAndMulBase):
    name = "silu_and_mul_i17920"  # model:phi-4-14b
    axes = {"intermediate_size": 17920, "gate_up_size": 35840}
    sha256 = "c161ea3a8b3861684f050d32f4f9c7620874f3a0f5e2bbc7bb6bcbc538c588cb"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 18432 columns of a row are the gate, the other 18432 the up projection.
class TestSiluAndMulI18432(SiluAndMulBase):
    name = "silu_and_mul_i18432"  # model:deepseek-v3, model:deepseek-r1, model:kimi-k2
    axes = {"intermediate_size": 18432, "gate_up_size": 36864}
    sha256 = "9512dbd13193ef88d31289ffe38b76d4fe4b6d13888acda2944a4cb52a0318b7"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 18944 columns of a row are the gate, the other 18944 the up projection.
class TestSiluAndMulI18944(SiluAndMulBase):
    name = "silu_and_mul_i18944"  # model:qwen2.5-7b
    axes = {"intermediate_size": 18944, "gate_up_size": 37888}
    sha256 = "9aae2cf2003d5b28ea93aeac26c8cbab48830b533e2f65514091048a65c6efa5"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 25600 columns of a row are the gate, the other 25600 the up projection.
class TestSiluAndMulI25600(SiluAndMulBase):
    name = "silu_and_mul_i25600"  # model:qwen3-32b
    axes = {"intermediate_size": 25600, "gate_up_size": 51200}
    sha256 = "cda83b3282156bec6a726740fb0875d5be3209201fac5bf4efad6a35920c2c00"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 28672 columns of a row are the gate, the other 28672 the up projection.
class TestSiluAndMulI28672(SiluAndMulBase):
    name = "silu_and_mul_i28672"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"intermediate_size": 28672, "gate_up_size": 57344}
    sha256 = "8ecec7ee1604b4d471e0a11d7536b32b6ba20892ded8e2ebb2e4a505355bdcfd"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 29568 columns of a row are the gate, the other 29568 the up projection.
class TestSiluAndMulI29568(SiluAndMulBase):
    name = "silu_and_mul_i29568"  # model:qwen2.5-72b
    axes = {"intermediate_size": 29568, "gate_up_size": 59136}
    sha256 = "20dc3f3f229be9e497065ee66589c77dd7ff522386468910fe978e07f3f59b56"

# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 53248 columns of a row are the gate, the other 53248 the up projection.
class TestSiluAndMulI53248(SiluAndMulBase):
    name = "silu_and_mul_i53248"  # model:llama-3.1-405b
    axes = {"intermediate_size": 53248, "gate_up_size": 106496}
    sha256 = "ebba7989e6dc521d1f17f96fe1821b6ff9143eefcf18c09a86a703c69ce83d31"

# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 1536 columns of a row are the gate, the other 1536 the up projection.
class TestSiluAndMulI1536(SiluAndMulBase):
    name = "silu_and_mul_i1536"  # model:minimax-m2, model:qwen3-235b-a22b
    axes = {"intermediate_size": 1536, "gate_up_size": 3072}
    sha256 = "b9fdfd498696b0bb27eae80c4adddb65e2f55610f7d28caf05a3adc664745390"

# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 16384 columns of a row are the gate, the other 16384 the up projection.
class TestSiluAndMulI16384(SiluAndMulBase):
    name = "silu_and_mul_i16384"  # model:mixtral-8x22b
    axes = {"intermediate_size": 16384, "gate_up_size": 32768}
    sha256 = "a1bae343dfe60656a97aaaf65ed00d1a39bb72174801fee74cc92825cd4fd756"

# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 2048 columns of a row are the gate, the other 2048 the up projection.
class TestSiluAndMulI2048(SiluAndMulBase):
    name = "silu_and_mul_i2048"  # model:deepseek-v3, model:deepseek-r1, model:kimi-k2
    axes = {"intermediate_size": 2048, "gate_up_size": 4096}
    sha256 = "ae99905fb1d1582aac1515d9cd52ab9a5289694d50f107eed8a31dc1fd175a04"

# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 512 columns of a row are the gate, the other 512 the up projection.
class TestSiluAndMulI512(SiluAndMulBase):
    name = "silu_and_mul_i512"  # model:qwen3-next-80b-a3b
    axes = {"intermediate_size": 512, "gate_up_size": 1024}
    sha256 = "998991618046e725f94ca91565638b0699f98bfa313ac35b7e723dc1314e135b"

# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 768 columns of a row are the gate, the other 768 the up projection.
class TestSiluAndMulI768(SiluAndMulBase):
    name = "silu_and_mul_i768"  # model:qwen3-30b-a3b
    axes = {"intermediate_size": 768, "gate_up_size": 1536}
    sha256 = "d00c2a931436fd0585963ced3fb0676c18b8f64663bff440d3d99906c8936a0a"

# Gated activation of dense layers on one of 8 devices: silu(gate) * up with silu(x) = x
# * sigmoid(x). The first 3584 columns of a row are the gate, the other 3584 the up
# projection.
class TestSiluAndMulI3584(SiluAndMulBase):
    name = "silu_and_mul_i3584"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"intermediate_size": 3584, "gate_up_size": 7168}
    sha256 = "07c2bb6bbf2da10dea7444634e0ae3f097d1a959a6465d4493ef26839e58efb4"

# Gated activation of dense layers on one of 4 devices: silu(gate) * up with silu(x) = x
# * sigmoid(x). The first 7168 columns of a row are the gate, the other 7168 the up
# projection.
class TestSiluAndMulI7168(SiluAndMulBase):
    name = "silu_and_mul_i7168"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"intermediate_size": 7168, "gate_up_size": 14336}
    sha256 = "81ad36b1729b18ec03e6886c4608ed74a24515f35404f0d4c89507fe5deecc02"

# Gated activation of dense layers and of an expert: silu(gate) * up with silu(x) = x *
# sigmoid(x). The first 8192 columns of a row are the gate, the other 8192 the up
# projection.
# model:llama-3.2-3b, model:llama-4-scout, model:llama-4-maverick
class TestSiluAndMulI8192(SiluAndMulBase):
    name = "silu_and_mul_i8192"
    axes = {"intermediate_size": 8192, "gate_up_size": 16384}
    sha256 = "06bee7c1e48fd24fc23b15d064f9b602ec45be434ef5fa4b6cd0d5ff1b4b3381"


# Gated activation of an expert: silu(g) * u with silu(x) = x * sigmoid(x), g =
# min(gate, 10) and u = up between -10 and 10. The first 2048 columns of a row are the
# gate, the other 2048 the up projection. In float32, rounded to bfloat16 at the end.
# model:deepseek-v4-flash
# Tolerances: those of reference_relu2.
def reference_swiglu():
    import torch

    LIMIT = 10.0


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        gate, up = input.float().chunk(2, dim=-1)
        # The gate has no lower limit.
        activated = torch.nn.functional.silu(gate.clamp(max=LIMIT))
        return (activated * up.clamp(-LIMIT, LIMIT)).to(input.dtype)

    return run


class TestSwigluClamp10I2048(ActivationTests):
    name = "swiglu_clamp10_i2048"
    reference = staticmethod(reference_swiglu)
    interface = INTERFACE_GELU_AND_MUL
    axes = {"intermediate_size": 2048, "gate_up_size": 4096}
    constants = ("limit",)
    LIMIT = 10  # "clamp10" in the name
    sha256 = "95c0e61118888a99e2b925b8fa8c9c9469876e590770962acdeeff31c96d9477"


# Gated activation of an expert: g * sigmoid(1.702 * g) * (u + 1) with g = min(gate, 7)
# and u = up between -7 and 7. The even columns of a row are the gate, the odd ones the
# up projection. In float32, rounded to bfloat16 at the end.
# model:gpt-oss-120b, model:gpt-oss-20b
# Tolerances: those of reference_relu2.
def reference_swiglu_oai():
    import torch

    ALPHA = 1.702
    LIMIT = 7.0


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        pairs = input.float()
        # The gate has no lower limit.
        gate = pairs[..., 0::2].clamp(max=LIMIT)
        up = pairs[..., 1::2].clamp(-LIMIT, LIMIT)
        activated = gate * torch.sigmoid(ALPHA * gate)
        return (activated * (up + 1.0)).to(input.dtype)

    return run


class TestSwigluOaiI2880(ActivationTests):
    name = "swiglu_oai_i2880"
    reference = staticmethod(reference_swiglu_oai)
    interface = INTERFACE_GELU_AND_MUL
    axes = {"intermediate_size": 2880, "gate_up_size": 5760}
    constants = ("oai",)
    OAI = True  # "oai" in the name
    sha256 = "2b7567e235a2e6873b0ad3f0e9320ea5c933adbde72144f9a4bb6faadf5339ef"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
