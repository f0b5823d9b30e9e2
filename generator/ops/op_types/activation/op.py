"""activation: act(gate) · up of rows that hold both, or the square of max(x, 0).

A row holds the gate first, then the up projection; gpt-oss has them in pairs. Kernels
compute in float32 and round the result once.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.activation.relations import activation_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
