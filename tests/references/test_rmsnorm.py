"""Reference tests of op_type rmsnorm.

Rendered: don't edit. `gen-tests --op-type rmsnorm` renders this file anew.

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

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.limit_cases import rows_past_limits
from generator.ops.op_types.rmsnorm.relations import norm_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.float8
# relations: generator.ops.op_types.rmsnorm.relations

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=1.25e-1, atol=2e-3, nmse=1e-5),
        "both sides round nearly the same float32 value once to e4m3: to neighbours at "
        "most, 2^-3 apart, or 2^-9 below 2^-6; that happens to one in 10^5 elements, "
        "near ties, and to less than 1e-5 of the power in any case",
        constant="quantized",
    ),
    Override(
        "new_residual",
        Tolerance(rtol=4e-3, atol=1e-30, nmse=1.6e-5),
        "one rounding of the sum to bfloat16: half an ulp is 2^-8 at most",
        source="oracle",
    ),
    Override(
        "new_residual", EXACT, "IEEE 754 fixes the float32 sum of two and its rounding"
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-6, nmse=1.6e-5),
        "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a "
        "value at most, and 2^-16 = 1.53e-5 its square",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart, and most to the same",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return the cases: ordinary rows, and rows with a variance of about eps.

    Where rows are quantised, also values beyond 448 and below 2^-6; where they are
    activated, also values far from 0.
    """
    more = []
    if "quantized" in definition.constants:
        more.append(Case("saturated", "small", {"batch_size": 3}, {"scale": 2.3e-3}))
        more.append(Case("subnormal", "small", {"batch_size": 3}, {"scale": 90.0}))
        more += far_apart(Case("", "small", {"batch_size": 3}), "weight", "scale")
    if "activation" in definition.constants:
        more.append(Case("large-weights", "small", {"batch_size": 6}, {"weight": 9.0}))
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 1e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        *more,
        Case("batch", "medium", {"batch_size": 67}),
        *rows_past_limits("batch_size", definition.axes["hidden_size"]),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states, residual and scale if declared, a weight around one half.

    bfloat16 [batch_size, hidden_size], the weight bfloat16 [hidden_size], the scale a
    Python float.
    """
    rows, columns = case.axes["batch_size"], definition.axes["hidden_size"]
    std = case.params.get("std", 1.0)
    inputs = {}
    for name in ("hidden_states", "residual"):
        if name in definition.interface.inputs:
            values = stream.child(name).values((rows, columns), std)
            values[: case.params.get("zero_rows", 0)] = 0.0
            inputs[name] = values.to(torch.bfloat16)
    weight = 0.5 + stream.child("weight").values((columns,), 0.4)
    inputs["weight"] = (case.params.get("weight", 1.0) * weight).to(torch.bfloat16)
    if "scale" in definition.interface.inputs:
        inputs["scale"] = case.params.get("scale", 0.3)
    return inputs


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the norm, float64 [batch_size, hidden_size], by the length of each row.

    Behind it the sum with the residual, where that is an output.
    """
    # halves by float32, which is exact and sooner
    x: torch.Tensor = inputs["hidden_states"].float().double()
    if "residual" in inputs:
        x += inputs["residual"].double()
    columns, eps = x.shape[1], definition.constants["eps"]
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    offset = 1.0 if definition.constants["unit_offset"] else 0.0
    root_mean_square = torch.sqrt(length * length / columns + eps)
    weight: torch.Tensor = offset + inputs["weight"].double()
    is_output = "new_residual" in definition.interface.outputs
    rows = (x.clone() if is_output else x).div_(root_mean_square).mul_(weight)
    if "activation" in definition.constants:
        # by e^-log(1 + e^-y), so that nothing overflows
        rows = rows * torch.exp(-torch.logaddexp(torch.zeros_like(rows), -rows))
    if "scale" in inputs:
        rows = e4m3_values(rows / inputs["scale"])
    return (rows, x) if is_output else rows


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel; that with an activation refuses GPUs below SM80.

    Those of e4m3 have no gate: below SM89 they convert in software.
    """
    return (Backend("", min_sm=80 if "activation" in definition.constants else 0),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return flashinfer.norm's rows; fused kernels write the sum over the residual."""
    from flashinfer import norm

    eps, unit_offset = definition.constants["eps"], definition.constants["unit_offset"]
    x, weight = inputs["hidden_states"], inputs["weight"]
    if "activation" in definition.constants:
        return norm.fused_rmsnorm_silu(x, weight, eps)
    if "scale" in inputs:
        out = torch.empty_like(x, dtype=torch.float8_e4m3fn)
        scale = torch.tensor([inputs["scale"]], device=x.device)
        if "residual" not in inputs:
            norm.rmsnorm_quant(out, x, weight, scale, eps)
            return out
        norm.fused_add_rmsnorm_quant(out, x, inputs["residual"], weight, scale, eps)
        return out, inputs["residual"]
    if "residual" not in inputs:
        kernel = norm.gemma_rmsnorm if unit_offset else norm.rmsnorm
        return kernel(x, weight, eps)
    fused = norm.gemma_fused_add_rmsnorm if unit_offset else norm.fused_add_rmsnorm
    fused(x, inputs["residual"], weight, eps)
    return _outputs(definition, x, inputs["residual"])


def _outputs(definition: Definition, *rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the rows, and the sum where the definition has it."""
    return rows[: len(definition.interface.outputs)]


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, and its Triton kernel that rounds to e4m3.

    With an activation SGLang has a norm of its own, which rounds between its steps.
    """
    if "activation" in definition.constants:
        return ()
    if "quantized" in definition.constants:
        return (Backend("triton", min_sm=89, needs=("triton",)),)
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the native layer's float32 result, rounded once as by kernels.

    On bfloat16 inputs Gemma's layer would round hidden_states + residual first.
    """
    from sglang.srt.layers.layernorm import GemmaRMSNorm, RMSNorm

    x, weight = inputs["hidden_states"], inputs["weight"]
    layer = GemmaRMSNorm if definition.constants["unit_offset"] else RMSNorm
    norm = layer(x.shape[1], eps=definition.constants["eps"])
    norm.weight = torch.nn.Parameter(weight, requires_grad=False)
    rows: tuple[torch.Tensor, ...]
    if "residual" not in inputs:
        rows = (norm.forward_native(x.float()),)
    else:
        rows = norm.forward_native(x.float(), inputs["residual"].float())
    if backend == "native":
        return _outputs(definition, *(row.to(x.dtype) for row in rows))
    from sglang.kernels.ops.quantization.fp8_kernel import static_quant_fp8

    scale = torch.tensor([inputs["scale"]], device=x.device)
    codes, _ = static_quant_fp8(rows[0].contiguous(), scale)
    return codes, *(total.to(x.dtype) for total in rows[1:])


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

INTERFACE_FUSED_ADD_RMSNORM = Interface(
    inputs={
        "hidden_states": "bfloat16[batch_size, hidden_size]",
        "residual": "bfloat16[batch_size, hidden_size]",
        "weight": "bfloat16[hidden_size]",
    },
    outputs={"output": "bfloat16[batch_size, hidden_size]"},
)
INTERFACE_FUSED_ADD_RMSNORM_QUANT = Interface(
    inputs={
        "hidden_states": "bfloat16[batch_size, hidden_size]",
        "residual": "bfloat16[batch_size, hidden_size]",
        "weight": "bfloat16[hidden_size]",
        "scale": "float32",
    },
    outputs={
        "output": "float8_e4m3fn[batch_size, hidden_size]",
        "new_residual": "bfloat16[batch_size, hidden_size]",
    },
    constraints=("scale > 0",),
)
INTERFACE_FUSED_ADD_RMSNORM_RESIDUAL = INTERFACE_FUSED_ADD_RMSNORM.but(
    outputs={
        "output": "bfloat16[batch_size, hidden_size]",
        "new_residual": "bfloat16[batch_size, hidden_size]",
    },
)
INTERFACE_RMSNORM = Interface(
    inputs={
        "hidden_states": "bfloat16[batch_size, hidden_size]",
        "weight": "bfloat16[hidden_size]",
    },
    outputs={"output": "bfloat16[batch_size, hidden_size]"},
)
INTERFACE_RMSNORM_QUANT = INTERFACE_FUSED_ADD_RMSNORM_QUANT.but(
    without=("residual", "new_residual"),
)

# ---- the tests


class RmsnormTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of rmsnorm share."""

    op_type = "rmsnorm"
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
# (1) float32 arithmetic and one rounding to bfloat16.
# (2) both sides round nearly the same float32 value once.
# (3) both sides round nearly the same float32 value once to e4m3.
# (4) one rounding of the sum to bfloat16.
# (5) IEEE 754 fixes the float32 sum of two and its rounding.


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-05) * weight with x = (hidden_states + residual), in float32, rounded to bfloat16
# at the end. The sum itself is not an output.
# fused, fi_api:flashinfer.norm.fused_add_rmsnorm
# Tolerances:
#   output  source              rtol   atol   NMSE     reason
#   output  oracle              0.004  1e-06  1.6e-05  (1)
#   output  flashinfer, sglang  0.008  1e-06  1.6e-05  (2)
def reference_fused_add_rmsnorm():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        # The sum stays in float32: it is not rounded before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return (x * inverse_rms * weight.float()).to(hidden_states.dtype)

    return run


class FusedAddRmsnormBase(RmsnormTests):
    reference = staticmethod(reference_fused_add_rmsnorm)
    interface = INTERFACE_FUSED_ADD_RMSNORM
    constants = ("eps", "unit_offset")
    EPS = 1e-05  # "1em5" in the name, rms_norm_eps of llama-3.1-8b
    UNIT_OFFSET = False  # rms_norm_unit_offset of llama-4-scout, llama-3.1-8b

# model:llama-4-scout, model:llama-4-maverick
class TestFusedAddRmsnormEps1em5H5120(FusedAddRmsnormBase):
    name = "fused_add_rmsnorm_eps_1em5_h5120"
    axes = {"hidden_size": 5120}
    sha256 = "1e3ed3753aedf231740ee4c54d9548d67e10456c4f84a3fef35c9108240fbbfb"

class TestFusedAddRmsnormH4096(FusedAddRmsnormBase):
    name = "fused_add_rmsnorm_h4096"  # model:llama-3.1-8b
    axes = {"hidden_size": 4096}
    sha256 = "2ac4c07cf83611b5fa46938caf3f22a82dc44928cd0e13ef41f4749f7319b716"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = (hidden_states + residual), in float32, rounded to bfloat16
# at the end. The sum itself is not an output.
# fused, fi_api:flashinfer.norm.fused_add_rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm.
def reference_fused_add_rmsnorm_2():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        # The sum stays in float32: it is not rounded before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return (x * inverse_rms * weight.float()).to(hidden_states.dtype)

    return run


class FusedAddRmsnorm2Base(RmsnormTests):
    reference = staticmethod(reference_fused_add_rmsnorm_2)
    interface = INTERFACE_FUSED_ADD_RMSNORM
    constants = ("eps", "unit_offset")
    EPS = 1e-06  # rms_norm_eps of qwen3-30b-a3b and 3 more
    UNIT_OFFSET = False  # rms_norm_unit_offset of qwen3-30b-a3b and 3 more

class TestFusedAddRmsnormH2048(FusedAddRmsnorm2Base):
    name = "fused_add_rmsnorm_h2048"  # model:qwen3-30b-a3b
    axes = {"hidden_size": 2048}
    sha256 = "3f890128da4d337752aa180119394580e8a10c9cee9f3b13256a9d8f2ac4066c"

class TestFusedAddRmsnormH3072(FusedAddRmsnorm2Base):
    name = "fused_add_rmsnorm_h3072"  # model:minimax-m2
    axes = {"hidden_size": 3072}
    sha256 = "855affadfc7f85816a152df47cc6ddff7f06ef62ec438c42d5f8f510ec7eff63"

class TestFusedAddRmsnormH5120(FusedAddRmsnorm2Base):
    name = "fused_add_rmsnorm_h5120"  # model:qwen3-14b
    axes = {"hidden_size": 5120}
    sha256 = "79ccaa89de7e946b5822b4c05a01ec522e44f90d5da87c9b56640cee01e8df60"

class TestFusedAddRmsnormH7168(FusedAddRmsnorm2Base):
    name = "fused_add_rmsnorm_h7168"  # model:deepseek-v3, model:deepseek-r1
    axes = {"hidden_size": 7168}
    sha256 = "c1290639cc47e730284a7be8a888475cc93a85b9dd51701598216a3d42b08a89"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-06) * (1 + weight) with x = (hidden_states + residual), in float32, rounded to
# bfloat16 at the end. The sum itself is not an output.
# fused, fi_api:flashinfer.norm.gemma_fused_add_rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm.
def reference_gemma_fused_add_rmsnorm():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        # The sum stays in float32: it is not rounded before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        # Gemma stores its weights around zero: the scale is one plus the weight.
        return (x * inverse_rms * (1.0 + weight.float())).to(hidden_states.dtype)

    return run


class GemmaFusedAddRmsnormBase(RmsnormTests):
    reference = staticmethod(reference_gemma_fused_add_rmsnorm)
    interface = INTERFACE_FUSED_ADD_RMSNORM
    constants = ("eps", "unit_offset")
    EPS = 1e-06  # rms_norm_eps of gemma-3-27b, qwen3-next-80b-a3b
    UNIT_OFFSET = True  # rms_norm_unit_offset of gemma-3-27b, "gemma" in the name

class TestFusedAddRmsnormH5376(GemmaFusedAddRmsnormBase):
    name = "fused_add_rmsnorm_h5376"  # model:gemma-3-27b
    axes = {"hidden_size": 5376}
    sha256 = "6c2e7a76d39a11f24356a0980d7ce52bc5197027fa66e0d898a16c763d764b9c"

class TestGemmaFusedAddRmsnormH2048(GemmaFusedAddRmsnormBase):
    name = "gemma_fused_add_rmsnorm_h2048"  # model:qwen3-next-80b-a3b
    axes = {"hidden_size": 2048}
    sha256 = "81c7914c11d512fbdb3d754d2337b5574ec1d4efab53231f4a57842f114a0f4c"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-05) * weight with x = (hidden_states + residual), divided by scale and cut off at
# 448, in float32, rounded to e4m3 once at the end. The sum, rounded to bfloat16, is the
# second output.
# fused, fi_api:flashinfer.norm.fused_add_rmsnorm_quant
# Tolerances:
#   output        source                      rtol   atol   NMSE     reason
#   output        oracle, flashinfer, sglang  0.125  0.002  1e-05    (3)
#   new_residual  oracle                      0.004  1e-30  1.6e-05  (4)
#   new_residual  flashinfer, sglang          exact                  (5)
def reference_fused_add_rmsnorm_quant():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The sum is rounded where it is returned, but not before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        scaled = x * inverse_rms * weight.float() / scale
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        output = scaled.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        return output, x.to(residual.dtype)

    return run


class FusedAddRmsnormQuantBase(RmsnormTests):
    reference = staticmethod(reference_fused_add_rmsnorm_quant)
    interface = INTERFACE_FUSED_ADD_RMSNORM_QUANT
    constants = ("quantized", "eps", "unit_offset")
    QUANTIZED = True  # "quant" in the name
    EPS = 1e-05  # rms_norm_eps of llama-3.1-8b, llama-3.1-70b
    UNIT_OFFSET = False  # rms_norm_unit_offset of llama-3.1-8b, llama-3.1-70b

class TestFusedAddRmsnormQuantH4096(FusedAddRmsnormQuantBase):
    name = "fused_add_rmsnorm_quant_h4096"  # model:llama-3.1-8b
    axes = {"hidden_size": 4096}
    sha256 = "04186ccdd93583c97733c150ae8019e555b2e853c65f04466cd1c2060c36a0b0"

class TestFusedAddRmsnormQuantH8192(FusedAddRmsnormQuantBase):
    name = "fused_add_rmsnorm_quant_h8192"  # model:llama-3.1-70b
    axes = {"hidden_size": 8192}
    sha256 = "beb522f76b4596b2b95c130dddc73fb561a37d1f7b09451945c1fcadaae640fd"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = (hidden_states + residual), divided by scale and cut off at
# 448, in float32, rounded to e4m3 once at the end. The sum, rounded to bfloat16, is the
# second output.
# model:qwen3-14b, fused, fi_api:flashinfer.norm.fused_add_rmsnorm_quant
# Tolerances: those of reference_fused_add_rmsnorm_quant.
def reference_fused_add_rmsnorm_quant_h5120():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The sum is rounded where it is returned, but not before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        scaled = x * inverse_rms * weight.float() / scale
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        output = scaled.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        return output, x.to(residual.dtype)

    return run


class TestFusedAddRmsnormQuantH5120(RmsnormTests):
    name = "fused_add_rmsnorm_quant_h5120"
    reference = staticmethod(reference_fused_add_rmsnorm_quant_h5120)
    interface = INTERFACE_FUSED_ADD_RMSNORM_QUANT
    axes = {"hidden_size": 5120}
    constants = ("quantized", "eps", "unit_offset")
    QUANTIZED = True  # "quant" in the name
    EPS = 1e-06  # rms_norm_eps of qwen3-14b
    UNIT_OFFSET = False  # rms_norm_unit_offset of qwen3-14b
    sha256 = "196ea16fe0862cbf0f802d1a2ce4fcac5e8b818574772123edc8872cd016d608"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-05) * weight with x = (hidden_states + residual), in float32, rounded to bfloat16
# at the end. The sum, rounded to bfloat16, is the second output: calls of the kernel
# write both in place. Solutions are installed as fused_add_rmsnorm_hhidden_size.
# fused, fi_api:flashinfer.norm.fused_add_rmsnorm
# Tolerances:
#   output        source              rtol   atol   NMSE     reason
#   output        oracle              0.004  1e-06  1.6e-05  (1)
#   output        flashinfer, sglang  0.008  1e-06  1.6e-05  (2)
#   new_residual  oracle              0.004  1e-30  1.6e-05  (4)
#   new_residual  flashinfer, sglang  exact                  (5)
def reference_fused_add_rmsnorm_residual():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The sum is rounded where it is returned, but not before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        output = x * inverse_rms * weight.float()
        return output.to(hidden_states.dtype), x.to(residual.dtype)

    return run


class FusedAddRmsnormResidualBase(RmsnormTests):
    reference = staticmethod(reference_fused_add_rmsnorm_residual)
    interface = INTERFACE_FUSED_ADD_RMSNORM_RESIDUAL
    constants = ("eps", "unit_offset")
    EPS = 1e-05  # "1em5" in the name, rms_norm_eps of llama-3.1-8b
    UNIT_OFFSET = False  # the convention of rmsnorm, rms_norm_unit_offset of gpt-oss-20b, llama-3.2-3b, llama-3.1-8b

class TestFusedAddRmsnormResidualEps1em5H2048(FusedAddRmsnormResidualBase):
    name = "fused_add_rmsnorm_residual_eps_1em5_h2048"  # model:llama-3.2-1b
    axes = {"hidden_size": 2048}
    sha256 = "226fc4eebde38ed4d8a6fe9d561bcb665770b055fbfb71b1acacbc9859be7916"

# model:gpt-oss-20b, model:gpt-oss-120b
class TestFusedAddRmsnormResidualEps1em5H2880(FusedAddRmsnormResidualBase):
    name = "fused_add_rmsnorm_residual_eps_1em5_h2880"
    axes = {"hidden_size": 2880}
    sha256 = "cbcff14c6ec1454d11034baddac4294d3c13906ce954350401807484141130bf"

class TestFusedAddRmsnormResidualEps1em5H3072(FusedAddRmsnormResidualBase):
    name = "fused_add_rmsnorm_residual_eps_1em5_h3072"  # model:llama-3.2-3b
    axes = {"hidden_size": 3072}
    sha256 = "674e9f0bacad240f1df19461d40cc3350c5d8b6923bb4c035a4c336807579d67"

class TestFusedAddRmsnormResidualH4096(FusedAddRmsnormResidualBase):
    name = "fused_add_rmsnorm_residual_h4096"  # model:llama-3.1-8b
    axes = {"hidden_size": 4096}
    sha256 = "ebc2af83663745d1714b914b5a264752422b21f30af46c1ca286a7d267308237"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = (hidden_states + residual), in float32, rounded to bfloat16
# at the end. The sum, rounded to bfloat16, is the second output: calls of the kernel
# write both in place. Solutions are installed as fused_add_rmsnorm_hhidden_size.
# fused, fi_api:flashinfer.norm.fused_add_rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm_residual.
def reference_fused_add_rmsnorm_residual_2():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The sum is rounded where it is returned, but not before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        output = x * inverse_rms * weight.float()
        return output.to(hidden_states.dtype), x.to(residual.dtype)

    return run


class FusedAddRmsnormResidual2Base(RmsnormTests):
    reference = staticmethod(reference_fused_add_rmsnorm_residual_2)
    interface = INTERFACE_FUSED_ADD_RMSNORM_RESIDUAL
    constants = ("eps", "unit_offset")
    EPS = 1e-06  # "1em6" in the name, rms_norm_eps of qwen3-30b-a3b and 3 more
    UNIT_OFFSET = False  # rms_norm_unit_offset of qwen2.5-7b and 5 more

class TestFusedAddRmsnormResidualEps1em6H3584(FusedAddRmsnormResidual2Base):
    name = "fused_add_rmsnorm_residual_eps_1em6_h3584"  # model:qwen2.5-7b
    axes = {"hidden_size": 3584}
    sha256 = "a255e3d45bee16a5243483e9942915a4e43c83adcfa177aacb37c10358cbe907"

# model:qwen3-8b, model:qwen3-235b-a22b
class TestFusedAddRmsnormResidualEps1em6H4096(FusedAddRmsnormResidual2Base):
    name = "fused_add_rmsnorm_residual_eps_1em6_h4096"
    axes = {"hidden_size": 4096}
    sha256 = "5f072e8e2466366d924d5a748be4f9664f1d7b516242f34949ec9336b3e80779"

class TestFusedAddRmsnormResidualH2048(FusedAddRmsnormResidual2Base):
    name = "fused_add_rmsnorm_residual_h2048"  # model:qwen3-30b-a3b
    axes = {"hidden_size": 2048}
    sha256 = "d0f6933f7193a7cb001c9996d3712763b8b79cffd5e260e5ec639489fdc2e587"

class TestFusedAddRmsnormResidualH3072(FusedAddRmsnormResidual2Base):
    name = "fused_add_rmsnorm_residual_h3072"  # model:minimax-m2
    axes = {"hidden_size": 3072}
    sha256 = "d24a96462650ef2bf896d62562de4fe1aece4ca2ba074b94c6a7d11daf221829"

class TestFusedAddRmsnormResidualH5120(FusedAddRmsnormResidual2Base):
    name = "fused_add_rmsnorm_residual_h5120"  # model:qwen3-14b
    axes = {"hidden_size": 5120}
    sha256 = "5800ebe86c03d6f1c24f5edc82c8628184ec409f29d70a3bdcdfe07abcd838dd"

class TestFusedAddRmsnormResidualH7168(FusedAddRmsnormResidual2Base):
    name = "fused_add_rmsnorm_residual_h7168"  # model:deepseek-v3, model:deepseek-r1
    axes = {"hidden_size": 7168}
    sha256 = "eda16cd5bf156d30b55685e9ef0951111acdd6268b796d12075d7aa80bf8c368"


# RMS normalisation of the channels of a video decoder's pixels (one row a pixel): x *
# rsqrt(mean(x^2) + 1e-06) * weight with x = hidden_states, then y * sigmoid(y) of it,
# in float32, rounded to bfloat16 at the end.
# model:wan2.1-vae, fused, fi_api:flashinfer.norm.fused_rmsnorm_silu
# Tolerances: those of reference_fused_add_rmsnorm.
def reference_fused_rmsnorm_silu_eps_1em6():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        # Not rounded between the norm and the activation.
        normed = x * inverse_rms * weight.float()
        return torch.nn.functional.silu(normed).to(hidden_states.dtype)

    return run


class FusedRmsnormSiluEps1em6Base(RmsnormTests):
    reference = staticmethod(reference_fused_rmsnorm_silu_eps_1em6)
    interface = INTERFACE_RMSNORM
    constants = ("activation", "eps", "unit_offset")
    ACTIVATION = "silu"  # "silu" in the name
    EPS = 1e-06  # "1em6" in the name
    UNIT_OFFSET = False  # the convention of rmsnorm

class TestFusedRmsnormSiluEps1em6H384(FusedRmsnormSiluEps1em6Base):
    name = "fused_rmsnorm_silu_eps_1em6_h384"
    axes = {"hidden_size": 384}
    sha256 = "148a301c70446abe5c3e10d9f6bfb946be90a791abd6f50dcbb93602bd3ba80e"

class TestFusedRmsnormSiluEps1em6H96(FusedRmsnormSiluEps1em6Base):
    name = "fused_rmsnorm_silu_eps_1em6_h96"
    axes = {"hidden_size": 96}
    sha256 = "0b5a49f9fccb8270e6aa2ad4e3049ac1e5dab28cb82399c45fa336d523ece58e"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-06) * (1 + weight) with x = (hidden_states + residual), in float32, rounded to
# bfloat16 at the end. The sum, rounded to bfloat16, is the second output: calls of the
# kernel write both in place. Solutions are installed as
# gemma_fused_add_rmsnorm_hhidden_size.
# fused, fi_api:flashinfer.norm.gemma_fused_add_rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm_residual.
def reference_gemma_fused_add_rmsnorm_residual():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The sum is rounded where it is returned, but not before it is normalised.
        x = hidden_states.float() + residual.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        # Gemma stores its weights around zero: the scale is one plus the weight.
        output = x * inverse_rms * (1.0 + weight.float())
        return output.to(hidden_states.dtype), x.to(residual.dtype)

    return run


class GemmaFusedAddRmsnormResidualBase(RmsnormTests):
    reference = staticmethod(reference_gemma_fused_add_rmsnorm_residual)
    interface = INTERFACE_FUSED_ADD_RMSNORM_RESIDUAL
    constants = ("eps", "unit_offset")
    EPS = 1e-06  # rms_norm_eps of qwen3-next-80b-a3b, gemma-3-27b
    UNIT_OFFSET = True  # "gemma" in the name

class TestGemmaFusedAddRmsnormResidualH2048(GemmaFusedAddRmsnormResidualBase):
    name = "gemma_fused_add_rmsnorm_residual_h2048"  # model:qwen3-next-80b-a3b
    axes = {"hidden_size": 2048}
    sha256 = "369cd0d3d91ec95e2650fc3127c960aba2661322be7e4ef6c0ab804ceeaf1b2f"

class TestGemmaFusedAddRmsnormResidualH5376(GemmaFusedAddRmsnormResidualBase):
    name = "gemma_fused_add_rmsnorm_residual_h5376"  # model:gemma-3-27b
    axes = {"hidden_size": 5376}
    sha256 = "4b8c195b51ee0c7dc8a71b6ed246f1cfd472b0b0055dc1d36f445d686c2c815c"


# fi_api:flashinfer.norm.gemma_rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm.
def reference_gemma_rmsnorm():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        # Gemma stores its weights around zero: the scale is one plus the weight.
        return (x * inverse_rms * (1.0 + weight.float())).to(hidden_states.dtype)

    return run


class GemmaRmsnormBase(RmsnormTests):
    reference = staticmethod(reference_gemma_rmsnorm)
    interface = INTERFACE_RMSNORM
    constants = ("eps", "unit_offset")
    EPS = 1e-06  # rms_norm_eps of gemma-3-27b, qwen3-next-80b-a3b
    UNIT_OFFSET = True  # "gemma" in the name, rms_norm_unit_offset of gemma-3-27b

# The next 2: RMS normalisation of query and key heads (one row a head): x *
# rsqrt(mean(x^2) + 1e-06) * (1 + weight) with x = hidden_states, in float32, rounded to
# bfloat16 at the end.
class TestGemmaRmsnormH128(GemmaRmsnormBase):
    name = "gemma_rmsnorm_h128"  # model:gemma-3-27b
    axes = {"hidden_size": 128}
    sha256 = "09ead0fea71b20724aba5a0971d5ca98887ba2795cc5e4384c2975a2477ab0ea"

class TestGemmaRmsnormH256(GemmaRmsnormBase):
    name = "gemma_rmsnorm_h256"  # model:qwen3-next-80b-a3b
    axes = {"hidden_size": 256}
    sha256 = "a5ecabe53a55f85bbb914fe2a46e8b10c9c8696fa83be00107af9493cd63076e"

# The next 2: RMS normalisation of hidden states of a transformer layer: x *
# rsqrt(mean(x^2) + 1e-06) * (1 + weight) with x = hidden_states, in float32, rounded to
# bfloat16 at the end.
class TestGemmaRmsnormH2048(GemmaRmsnormBase):
    name = "gemma_rmsnorm_h2048"  # model:qwen3-next-80b-a3b
    axes = {"hidden_size": 2048}
    sha256 = "3f296416726e43865509c3f056cffa905d40ec9904786d9dff01663193a58470"

class TestRmsnormH5376(GemmaRmsnormBase):
    name = "rmsnorm_h5376"  # model:gemma-3-27b
    axes = {"hidden_size": 5376}
    sha256 = "fa8a4184e690ce10f408de1d5a9fa3b85860e04cdbe580d0e7290f72fecab947"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-05) * weight with x = hidden_states, in float32, rounded to bfloat16 at the end.
# fi_api:flashinfer.norm.rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm.
def reference_rmsnorm():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return (x * inverse_rms * weight.float()).to(hidden_states.dtype)

    return run


class RmsnormBase(RmsnormTests):
    reference = staticmethod(reference_rmsnorm)
    interface = INTERFACE_RMSNORM
    constants = ("eps", "unit_offset")
    EPS = 1e-05  # "1em5" in the name, rms_norm_eps of llama-3.1-8b
    UNIT_OFFSET = False  # the convention of rmsnorm, rms_norm_unit_offset of gpt-oss-20b and 4 more

class TestRmsnormEps1em5H2048(RmsnormBase):
    name = "rmsnorm_eps_1em5_h2048"  # model:llama-3.2-1b
    axes = {"hidden_size": 2048}
    sha256 = "05485743f4bb15b79acc25cff7be6903f2f5a68c4b49683a29646fbd137acfda"

class TestRmsnormEps1em5H2880(RmsnormBase):
    name = "rmsnorm_eps_1em5_h2880"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"hidden_size": 2880}
    sha256 = "7fbc162a26db2f57305c23e98164e364a8d9c6f4bdb481339ae77cd57c6800ac"

class TestRmsnormEps1em5H3072(RmsnormBase):
    name = "rmsnorm_eps_1em5_h3072"  # model:llama-3.2-3b
    axes = {"hidden_size": 3072}
    sha256 = "e7c0b4f43ca3c8f40c53f0b9abb566320dbaf420bf24906efd7671f267ada636"

class TestRmsnormEps1em5H5120(RmsnormBase):
    name = "rmsnorm_eps_1em5_h5120"  # model:llama-4-scout, model:llama-4-maverick
    axes = {"hidden_size": 5120}
    sha256 = "4540c659f0303e222e42e6479e7b7259092ad5ecec08682fca720391d00ad753"

class TestRmsnormEps1em5H8192(RmsnormBase):
    name = "rmsnorm_eps_1em5_h8192"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"hidden_size": 8192}
    sha256 = "e45d4c4402b8a938cb943a3ca033d0177e79e9fcec06fed2fd327f3369dfbf9b"

class TestRmsnormH4096(RmsnormBase):
    name = "rmsnorm_h4096"  # model:llama-3.1-8b
    axes = {"hidden_size": 4096}
    sha256 = "64e5616cf199d0229a89c0ba349d8e4e6cc542e38ce865efc022cae146727687"


# fi_api:flashinfer.norm.rmsnorm
# Tolerances: those of reference_fused_add_rmsnorm.
def reference_rmsnorm_2():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return (x * inverse_rms * weight.float()).to(hidden_states.dtype)

    return run


class Rmsnorm2Base(RmsnormTests):
    reference = staticmethod(reference_rmsnorm_2)
    interface = INTERFACE_RMSNORM
    constants = ("eps", "unit_offset")
    EPS = 1e-06  # "1em6" in the name, rms_norm_eps of qwen3-30b-a3b and 3 more
    UNIT_OFFSET = False  # rms_norm_unit_offset of qwen2.5-7b and 5 more

# The next 6: RMS normalisation of hidden states of a transformer layer: x *
# rsqrt(mean(x^2) + 1e-06) * weight with x = hidden_states, in float32, rounded to
# bfloat16 at the end.
class TestRmsnormEps1em6H3584(Rmsnorm2Base):
    name = "rmsnorm_eps_1em6_h3584"  # model:qwen2.5-7b
    axes = {"hidden_size": 3584}
    sha256 = "1e9c227d9e62e3888140cd62a12850d1db44af1efcc7a6991b77e6489d322a0a"

class TestRmsnormEps1em6H4096(Rmsnorm2Base):
    name = "rmsnorm_eps_1em6_h4096"  # model:qwen3-8b, model:qwen3-235b-a22b
    axes = {"hidden_size": 4096}
    sha256 = "e41efd10644bfe4077022e0b785885d5bdf5c2fc95a6be059861b8fd8fea4ac1"

class TestRmsnormH2048(Rmsnorm2Base):
    name = "rmsnorm_h2048"  # model:qwen3-30b-a3b
    axes = {"hidden_size": 2048}
    sha256 = "b5f340ec4a21faa14926dcc56ce32ca1aebf633093fe792befe39895b1bdcbf7"

class TestRmsnormH3072(Rmsnorm2Base):
    name = "rmsnorm_h3072"  # model:minimax-m2
    axes = {"hidden_size": 3072}
    sha256 = "c48fe029fcfcce176252282f12b077a551acf9884743417fc3e2177622375c4b"

class TestRmsnormH5120(Rmsnorm2Base):
    name = "rmsnorm_h5120"  # model:qwen3-14b
    axes = {"hidden_size": 5120}
    sha256 = "e2f6d6b0773f2fa507b307c462df3d1a5ce606f4c231c44ad2a61272bc97e42a"

class TestRmsnormH7168(Rmsnorm2Base):
    name = "rmsnorm_h7168"  # model:deepseek-v3, model:deepseek-r1
    axes = {"hidden_size": 7168}
    sha256 = "9530c1f2dfc45d22199381eb9fffd4dd414aff03a892806f1aca7f9bb57820bd"

# RMS normalisation of query and key heads (one row a head): x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = hidden_states, in float32, rounded to bfloat16 at the end.
class TestRmsnormH128(Rmsnorm2Base):
    name = "rmsnorm_h128"  # model:qwen3-30b-a3b
    axes = {"hidden_size": 128}
    sha256 = "faa01d48a27abd16a018b25ba6e7c39b17d3c40603750200318a908e1fb016a7"

# RMS normalisation of the compressed query of latent attention: x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = hidden_states, in float32, rounded to bfloat16 at the end.
class TestRmsnormH1536(Rmsnorm2Base):
    name = "rmsnorm_h1536"  # model:deepseek-v3, model:deepseek-r1
    axes = {"hidden_size": 1536}
    sha256 = "27ef05a52727ab85f972764a21ae30cb9716c1cde74274092f83de0f49047976"

# RMS normalisation of the compressed KV of latent attention: x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = hidden_states, in float32, rounded to bfloat16 at the end.
class TestRmsnormH512(Rmsnorm2Base):
    name = "rmsnorm_h512"  # model:deepseek-v3, model:deepseek-r1
    axes = {"hidden_size": 512}
    sha256 = "c39c9169505efe2bc043eefd499ffa702bf199381d593773fad6cba7f50e5636"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-05) * weight with x = hidden_states, divided by scale and cut off at 448, in
# float32, rounded to e4m3 once at the end.
# fused, fi_api:flashinfer.norm.rmsnorm_quant
# Tolerances:
#   output  source                      rtol   atol   NMSE   reason
#   output  oracle, flashinfer, sglang  0.125  0.002  1e-05  (3)
def reference_rmsnorm_quant():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, weight: torch.Tensor, scale: float
    ) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        # Rounded once: the normalised rows stay in float32 before the scale.
        scaled = x * inverse_rms * weight.float() / scale
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        return scaled.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)

    return run


class RmsnormQuantBase(RmsnormTests):
    reference = staticmethod(reference_rmsnorm_quant)
    interface = INTERFACE_RMSNORM_QUANT
    constants = ("quantized", "eps", "unit_offset")
    QUANTIZED = True  # "quant" in the name
    EPS = 1e-05  # rms_norm_eps of llama-3.1-8b, llama-3.1-70b
    UNIT_OFFSET = False  # rms_norm_unit_offset of llama-3.1-8b, llama-3.1-70b

class TestRmsnormQuantH4096(RmsnormQuantBase):
    name = "rmsnorm_quant_h4096"  # model:llama-3.1-8b
    axes = {"hidden_size": 4096}
    sha256 = "460c2c931a7c29f4955017b469e18fa7b672dfd0662c484aa7e4ac95fd95f5ca"

class TestRmsnormQuantH8192(RmsnormQuantBase):
    name = "rmsnorm_quant_h8192"  # model:llama-3.1-70b
    axes = {"hidden_size": 8192}
    sha256 = "01c06f1dda960a088b6cca5382e8fe8c4ad671fa2c151a49a61b44c1bfcf91c0"


# RMS normalisation of hidden states of a transformer layer: x * rsqrt(mean(x^2) +
# 1e-06) * weight with x = hidden_states, divided by scale and cut off at 448, in
# float32, rounded to e4m3 once at the end.
# model:qwen3-14b, fused, fi_api:flashinfer.norm.rmsnorm_quant
# Tolerances: those of reference_rmsnorm_quant.
def reference_rmsnorm_quant_h5120():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, weight: torch.Tensor, scale: float
    ) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        # Rounded once: the normalised rows stay in float32 before the scale.
        scaled = x * inverse_rms * weight.float() / scale
        # Beyond 448, the largest value of e4m3, numbers are cut off.
        return scaled.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)

    return run


class TestRmsnormQuantH5120(RmsnormTests):
    name = "rmsnorm_quant_h5120"
    reference = staticmethod(reference_rmsnorm_quant_h5120)
    interface = INTERFACE_RMSNORM_QUANT
    axes = {"hidden_size": 5120}
    constants = ("quantized", "eps", "unit_offset")
    QUANTIZED = True  # "quant" in the name
    EPS = 1e-06  # rms_norm_eps of qwen3-14b
    UNIT_OFFSET = False  # rms_norm_unit_offset of qwen3-14b
    sha256 = "b53dbd4900427c128cfc1f415c6497d1c05e82d8fca6d2b31ad84e1cb29d457e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
