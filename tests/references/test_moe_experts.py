"""Reference tests of op_type moe_experts.

Rendered: don't edit. `gen-tests --op-type moe_experts` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
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
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from generator.ops.far_factors import far_apart, far_codes
from generator.ops.limit_cases import lengthened
from generator.ops.op_types.moe_experts.inputs import (
    expert_inputs,
    expert_sizes,
    is_fp8,
    is_mxfp4,
    scales_input,
)
from generator.ops.op_types.moe_experts.relations import expert_relations
from generator.ops.op_types.moe_experts.sglang import (
    run_native,
    run_triton,
    run_triton_fp8,
)
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.moe_experts.inputs
# relations: generator.ops.op_types.moe_experts.relations

_ONCE = "float32 sums, rounded once to bfloat16: half an ulp is 2^-8 at most"
_SHORT = (
    "the kernel rounds to bfloat16 what goes into the activation, what comes of it and "
    "every expert's output: five roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, squared) and "
    "the reference's own are 1.5e-5 of the power; atol and rtol are 5 deviations of "
    "outputs up to 2"
)
_EIGHT_BITS = (
    "the kernel rounds the values between the products to float8_e4m3: to 4 bits, which is "
    "2^-4/sqrt(3)/1.44 of them, squared 6.5e-4 of the power; of_row is 6 deviations, since "
    "errors are as large as a row, not as an element. All outputs of a token share what its "
    "inner values lost: a factor, of the deviation 1.6e-2·sqrt(25/1024) = 2.5e-3, where 1024 "
    "inner values, the fewest of a token, have the kurtosis 25 of silu(x)·y times weights and "
    "scales, and the largest of each 128 loses nothing (2.4e-3 of 4,000 drawn tokens); the "
    "bias is 5 of these. Of states each block of 128 has 448, and loses nothing"
)
_F8 = Tolerance(
    8e-3,
    1e-6,
    2e-3,
    0.9999,
    cosine=0.999,
    norm_ratio=(0.987, 1.013),
    bias=1.25e-2,
    of_row=0.15,
)
TOLERANCES = (
    Override("output", Tolerance(4e-3, 3e-4, 5e-6), _ONCE, source="oracle"),
    Override(
        "output",
        Tolerance(8e-3, 6e-4, 5e-6),
        f"{_ONCE}, on both sides: neighbours at most",
        source="sglang/native",
    ),
    Override(
        "output",
        Tolerance(
            8e-3,
            1e-6,
            2e-3,
            0.9999,
            cosine=0.999,
            norm_ratio=(0.9935, 1.0065),
            bias=6.25e-3,
            of_row=0.15,
        ),
        f"{_EIGHT_BITS}; of four tokens the inner values are others, and the mean of four "
        "factors deviates by half (an H100's by 2.5e-3 at most in 133 cases)",
        source="sglang/triton-fp8",
        where=lambda axes: axes["seq_len"] >= 4,
    ),
    Override("output", _F8, _EIGHT_BITS, source="sglang/triton-fp8"),
    Override(
        "output",
        Tolerance(2e-2, 3e-2, 5e-5, 0.999, cosine=0.9999, norm_ratio=(0.995, 1.005)),
        _SHORT,
    ),
)
# e2m1: sign, two bits of exponent, one of mantissa; 0 and 1 are subnormal
_MAGNITUDES = [0.0, 0.5, *((1 + m / 2) * 2.0**e for e, m in product(range(3), (0, 1)))]
# of a case's size: the most elements of the weights of experts that tokens choose
_ELEMENTS = {"small": 30e6, LIMITS: 30e6, "medium": 60e6, "large": 2500e6}


def cases(definition: Definition) -> list[Case]:
    """Return few tokens of few experts, experts elsewhere, and clipped values."""
    cases = [
        _case(definition, "one-token", "small", 1),
        _case(definition, "ends-and-elsewhere", "small", 3, ends=True, elsewhere=True),
        _case(definition, "batch", "medium", 12),
        _case(definition, "large-batch", "large", 128),
    ]
    if is_mxfp4(definition):
        # clipped factors make inner values some 20 times the usual
        clipped = _case(definition, "clipped", "small", 2, std=6.0, gain=2.0**-4)
        cases.append(clipped)
    # the interface takes weights of any sum and size, not only those that a router makes
    cases.append(_case(definition, "weights-below-1", LIMITS, 3, share=0.625))
    cases.append(_case(definition, "weights-below-0", LIMITS, 3, share=-1.75))
    cases += _far_apart(definition, replace(cases[0], axes={"seq_len": 3}))
    return [*cases, lengthened(cases[2], "seq_len", 4_109)]


# weights of a sixth that float16 holds with four bits or fewer
_FAR = 20.0


def _far_apart(definition: Definition, case: Case) -> list[Case]:
    """Return the cases whose weights, scales and codes are far from the usual."""
    weighed: tuple[str, ...] = ("w2_scale", "hidden_states")
    if is_fp8(definition):
        codes = {"w13": 1, "w13_scale": -1, "w2": 1, "w2_scale": -1}
        return [
            *far_apart(
                case, "topk_weights", "w13_scale", against=weighed, exponent=_FAR
            ),
            *far_codes(case, **codes),
        ]
    if is_mxfp4(definition):
        weighed = ("w2_bias", *weighed)
        return far_apart(
            case, "topk_weights", "w13_scale", against=weighed, exponent=_FAR
        )
    # Llama 4 weighs what goes into an expert, others what comes out
    other = "hidden_states" if scales_input(definition) else "w2"
    return far_apart(case, "topk_weights", against=(other,), exponent=_FAR)


def _case(
    definition: Definition, name: str, size: str, tokens: int, **params: Any
) -> Case:
    """Return a case whose tokens choose of `hot` experts.

    Where these are fewer than a token has, its others are elsewhere.
    """
    most = int(_ELEMENTS[size] // _elements(definition))
    fewest = 2 if params.get("ends") else 1
    hot = min(max(most, fewest), expert_sizes(definition.axes)[0])
    return Case(name, size, {"seq_len": tokens}, {"hot": hot, **params})


def _elements(definition: Definition) -> int:
    axes = definition.axes
    return axes["hidden_size"] * axes["gemm1_out_size"] * 3 // 2


def peak_bytes(definition: Definition, case: Case) -> int:
    """Return an upper bound of the bytes that run() or a kernel needs for a case.

    Counts the weights once, the experts that tokens choose as bfloat16, of a workload as
    many as there can be, and an expert in float64 with the codes and indices that it comes
    from.
    """
    width = 0.5 if is_mxfp4(definition) else 1 if is_fp8(definition) else 2
    count, of_token = expert_sizes(definition.axes)
    weights = int(width * count * _elements(definition))
    rest = max(tensor_bytes(definition, case) - weights, 0)
    pairs = case.axes["seq_len"] * of_token
    hot: int = case.params.get("hot", min(count, pairs))
    return weights + COPIES * rest + (2 * hot + 24) * _elements(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `expert_inputs` for dtypes and sizes."""
    return expert_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the output, float64 [seq_len, hidden_size], one expert at a time."""
    x: torch.Tensor = inputs["hidden_states"].double()
    ids, total = inputs["topk_ids"], torch.zeros_like(x)
    for expert in sorted(set(ids.flatten().tolist()) - {-1}):
        # weight of the expert for each token, 0 where the token has others
        weights = (inputs["topk_weights"].double() * (ids == expert)).sum(1)
        rows = (ids == expert).any(1)
        scale = weights[rows, None]
        before = scale if scales_input(definition) else torch.ones_like(scale)
        one = _product(inputs, "w13", expert, x[rows] * before)
        if is_mxfp4(definition):
            gate = torch.minimum(one[:, 0::2], one.new_tensor(7.0))
            up = torch.clip(one[:, 1::2], -7.0, 7.0)
            inner = (up + 1.0) * gate / (1.0 + torch.exp(-1.702 * gate))
        else:
            half = one.shape[1] // 2
            gate, up = one[:, :half], one[:, half:]
            inner = up * gate / (1.0 + torch.exp(-gate))
        y = _product(inputs, "w2", expert, inner)
        total[rows] += y if scales_input(definition) else y * scale
    return total


def _product(
    inputs: dict[str, Any], name: str, expert: int, x: torch.Tensor
) -> torch.Tensor:
    """Return x [rows, k] times an expert's matrix, its bias added: float64 [rows, n]."""
    weight: torch.Tensor = inputs[name][expert]
    if f"{name}_scale" not in inputs:
        return x @ weight.double().T
    if f"{name}_bias" not in inputs:
        return _of_blocks(x, weight.double(), inputs[f"{name}_scale"][expert].double())
    exponents = inputs[f"{name}_scale"][expert].view(torch.uint8).double()
    factors = torch.exp2(exponents - 127.0)
    table = torch.tensor(_MAGNITUDES, dtype=x.dtype, device=x.device)
    # what each byte holds, its lower half first: a table of 256 is small
    numbers = torch.arange(256, device=x.device)
    halves = torch.stack((numbers % 16, numbers // 16), dim=1)
    pairs = table[halves % 8] * (1.0 - 2.0 * (halves // 8))
    values = pairs[weight.view(torch.uint8).int()].flatten(1)
    wide = values * factors.repeat_interleave(32, dim=1)
    y: torch.Tensor = x @ wide.T + inputs[f"{name}_bias"][expert].double()
    return y


def _of_blocks(
    x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor
) -> torch.Tensor:
    """Return x times codes, summed block by block, then scaled: float64 [rows, n]."""
    per_row = scales.repeat_interleave(128, dim=0)
    total = torch.zeros(len(x), len(codes), dtype=x.dtype, device=x.device)
    for block, factors in enumerate(per_row.T):
        part = slice(block * 128, (block + 1) * 128)
        total += x[:, part] @ codes[:, part].T * factors
    return total


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the Triton kernel, and SGLang's PyTorch code, which runs anywhere.

    Of float8 weights the Triton kernel is that of compute capability 8.9 and above.
    """
    fp8 = is_fp8(definition)
    is_wide = is_mxfp4(definition) or fp8
    wide = "inputs rewritten: weights are dequantised" if is_wide else ""
    scaled = "inputs rewritten: hidden_states are scaled"
    before = wide or (scaled if scales_input(definition) else "")
    summed = "outputs rewritten: the adapter adds the experts of a token"
    native = "; ".join(filter(None, (before, summed)))
    return (
        Backend("triton-fp8", min_sm=89)
        if fp8
        else Backend("triton", min_sm=80, rewrites=wide),
        Backend("native", needs_cuda=False, rewrites=native),
    )


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the output of SGLang's experts, bfloat16 [seq_len, hidden_size].

    Both take mxfp4 weights dequantised, which bfloat16 holds.
    """
    runs = {"triton": run_triton, "triton-fp8": run_triton_fp8, "native": run_native}
    run = runs[backend]
    return run(definition, inputs)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    peak_bytes=peak_bytes,
    relations=expert_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_MOE_BF16 = Interface(
    inputs={
        "hidden_states": "bfloat16[seq_len, hidden_size]",
        "topk_ids": "int32[seq_len, top_k]",
        "topk_weights": "float32[seq_len, top_k]",
        "w13": "bfloat16[num_experts, gemm1_out_size, hidden_size]",
        "w2": "bfloat16[num_experts, hidden_size, intermediate_size]",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=("gemm1_out_size == 2 * intermediate_size",),
)
INTERFACE_MOE_BF16_SHARED = INTERFACE_MOE_BF16.but(
    inputs={
        "topk_ids": "int32[seq_len, top_k_and_shared]",
        "topk_weights": "float32[seq_len, top_k_and_shared]",
        "w13": "bfloat16[num_all_experts, gemm1_out_size, hidden_size]",
        "w2": "bfloat16[num_all_experts, hidden_size, intermediate_size]",
    },
)
INTERFACE_MOE_FP8_BLOCK_SHARED = Interface(
    inputs={
        "hidden_states": "bfloat16[seq_len, hidden_size]",
        "topk_ids": "int32[seq_len, top_k_and_shared]",
        "topk_weights": "float32[seq_len, top_k_and_shared]",
        "w13": "float8_e4m3fn[num_all_experts, gemm1_out_size, hidden_size]",
        "w13_scale": "float32[num_all_experts, num_gemm1_out_blocks, num_hidden_blocks]",
        "w2": "float8_e4m3fn[num_all_experts, hidden_size, intermediate_size]",
        "w2_scale": "float32[num_all_experts, num_hidden_blocks, num_intermediate_blocks]",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_out_size == 2 * intermediate_size",
        "num_hidden_blocks == hidden_size // 128",
        "num_intermediate_blocks == intermediate_size // 128",
        "num_gemm1_out_blocks == gemm1_out_size // 128",
    ),
)
INTERFACE_MOE_FP8_BLOCK = INTERFACE_MOE_FP8_BLOCK_SHARED.but(
    inputs={
        "topk_ids": "int32[seq_len, top_k]",
        "topk_weights": "float32[seq_len, top_k]",
        "w13": "float8_e4m3fn[num_experts, gemm1_out_size, hidden_size]",
        "w13_scale": "float32[num_experts, num_gemm1_out_blocks, num_hidden_blocks]",
        "w2": "float8_e4m3fn[num_experts, hidden_size, intermediate_size]",
        "w2_scale": "float32[num_experts, num_hidden_blocks, num_intermediate_blocks]",
    },
)
INTERFACE_MOE_MXFP4 = Interface(
    inputs={
        "hidden_states": "bfloat16[seq_len, hidden_size]",
        "topk_ids": "int32[seq_len, top_k]",
        "topk_weights": "float32[seq_len, top_k]",
        "w13": "int8[num_experts, gemm1_out_size, hidden_packed]",
        "w13_scale": "int8[num_experts, gemm1_out_size, num_hidden_blocks]",
        "w13_bias": "bfloat16[num_experts, gemm1_out_size]",
        "w2": "int8[num_experts, hidden_size, intermediate_packed]",
        "w2_scale": "int8[num_experts, hidden_size, num_intermediate_blocks]",
        "w2_bias": "bfloat16[num_experts, hidden_size]",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "hidden_packed == hidden_size // 2",
        "intermediate_packed == gemm1_out_size // 4",
        "num_hidden_blocks == hidden_size // 32",
        "num_intermediate_blocks == gemm1_out_size // 64",
    ),
)

# ---- the tests


class MoeExpertsTests(
    GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of moe_experts share."""

    op_type = "moe_experts"
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
# (1) float32 sums, rounded once to bfloat16.
# (2) the kernel rounds the values between the products to float8_e4m3.
# (3) 0.9999 of the elements are within atol and rtol, the cosine is 0.999 or more, the
# norm is 0.9935 to 1.006 times the expected one, a factor or an offset of 0.0063 is
# allowed.
# (4) 0.9999 of the elements are within atol and rtol, the cosine is 0.999 or more, the
# norm is 0.987 to 1.013 times the expected one, a factor or an offset of 0.013 is
# allowed.
# (5) the kernel rounds to bfloat16 what goes into the activation, what comes of it and
# every expert's output.
# (6) 0.999 of the elements are within atol and rtol, the cosine is 0.9999 or more, the
# norm is 0.995 to 1.005 times the expected one.


# Sum of the experts of each token, each down(silu(gate(w * x)) * up(w * x)), with
# bfloat16 weights: in Llama 4 the router's weight w scales what goes into an expert.
# The rows of w13 are gate, then up. An expert of -1 is on another device.
# model:llama-4-scout, ep:1
# Tolerances:
#   output  source                           rtol   atol                    NMSE   reason
#   output  oracle                           0.004  0.0003                  5e-06  (1)
#   output  sglang/native                    0.008  0.0006                  5e-06  (1)
#   output  sglang/triton-fp8 of some sizes  0.008  1e-06 + 0.15·row's RMS  0.002  (2) (3)
#   output  sglang/triton-fp8                0.008  1e-06 + 0.15·row's RMS  0.002  (2) (4)
#   output  sglang                           0.02   0.03                    5e-05  (5) (6)
def reference_moe_bf16_scaled_input():
    import torch


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor,
        topk_ids: torch.Tensor,
        topk_weights: torch.Tensor,
        w13: torch.Tensor,
        w2: torch.Tensor,
    ) -> torch.Tensor:
        x = hidden_states.float()
        output = torch.zeros_like(x)
        for expert in sorted(set(topk_ids.flatten().tolist())):
            # An expert of another device is -1 and adds nothing.
            if expert >= 0:
                token, slot = (topk_ids == expert).nonzero(as_tuple=True)
                scaled = x[token] * topk_weights[token, slot, None]
                gate, up = (scaled @ w13[expert].float().T).chunk(2, dim=1)
                inner = torch.nn.functional.silu(gate) * up
                output.index_add_(0, token, inner @ w2[expert].float().T)
        return output.to(torch.bfloat16)

    return run


class MoeBf16ScaledInputBase(MoeExpertsTests):
    reference = staticmethod(reference_moe_bf16_scaled_input)
    interface = INTERFACE_MOE_BF16
    axes = {"top_k": 1, "num_experts": 16, "hidden_size": 5120}
    constants = ("scales_input",)
    SCALES_INPUT = True  # "scaled" in the name

class TestMoeBf16ScaledInputTopk1E16H5120I1024(MoeBf16ScaledInputBase):
    name = "moe_bf16_scaled_input_topk1_e16_h5120_i1024"  # tp:8
    axes = {"gemm1_out_size": 2048, "intermediate_size": 1024}
    sha256 = "af3b57ee4e7809eb4f946ce19d8d639bcf8914d236882c60e17b666dc4a5f4ec"

class TestMoeBf16ScaledInputTopk1E16H5120I8192(MoeBf16ScaledInputBase):
    name = "moe_bf16_scaled_input_topk1_e16_h5120_i8192"
    axes = {"gemm1_out_size": 16384, "intermediate_size": 8192}
    sha256 = "cd805106e913c26b610ce163a94f838d20ce65cef11d8d63421c11199050f353"


# Weighted sum of the experts of each token, each down(silu(gate(x)) * up(x)), with
# bfloat16 weights; the rows of w13 are gate, then up. An expert of -1 is on another
# device.
# Tolerances: those of reference_moe_bf16_scaled_input.
def reference_moe_bf16():
    import torch


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor,
        topk_ids: torch.Tensor,
        topk_weights: torch.Tensor,
        w13: torch.Tensor,
        w2: torch.Tensor,
    ) -> torch.Tensor:
        x = hidden_states.float()
        output = torch.zeros_like(x)
        for expert in sorted(set(topk_ids.flatten().tolist())):
            # An expert of another device is -1 and adds nothing.
            if expert >= 0:
                token, slot = (topk_ids == expert).nonzero(as_tuple=True)
                gate, up = (x[token] @ w13[expert].float().T).chunk(2, dim=1)
                inner = torch.nn.functional.silu(gate) * up
                y = inner @ w2[expert].float().T
                output.index_add_(0, token, y * topk_weights[token, slot, None])
        return output.to(torch.bfloat16)

    return run


class MoeBf16Base(MoeExpertsTests):
    reference = staticmethod(reference_moe_bf16)

class TestMoeBf16Topk10E512H2048I512(MoeBf16Base):
    name = "moe_bf16_topk10_e512_h2048_i512"  # model:qwen3-next-80b-a3b, ep:1
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 10,
        "num_experts": 512,
        "hidden_size": 2048,
        "gemm1_out_size": 1024,
        "intermediate_size": 512,
    }
    sha256 = "27ccf2fc9463fffde7bfa4a8c13e94b47ddd20b462965a39e560918baa0cf39c"

class TestMoeBf16Topk2E8H4096I14336(MoeBf16Base):
    name = "moe_bf16_topk2_e8_h4096_i14336"  # model:mixtral-8x7b, ep:1
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 2,
        "num_experts": 8,
        "hidden_size": 4096,
        "gemm1_out_size": 28672,
        "intermediate_size": 14336,
    }
    sha256 = "80cb60237877bbf8ad08aa5955715891e8302ec544645275735dd8a4cd0d1589"

class TestMoeBf16Topk2E8H6144I16384(MoeBf16Base):
    name = "moe_bf16_topk2_e8_h6144_i16384"  # model:mixtral-8x22b, ep:1
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 2,
        "num_experts": 8,
        "hidden_size": 6144,
        "gemm1_out_size": 32768,
        "intermediate_size": 16384,
    }
    sha256 = "1a635229da7ac36cbfad6b72bba638bfd8d3988a3ee80dec5f6a2ede0a75d595"

class TestMoeBf16Topk8E128H2048I768(MoeBf16Base):
    name = "moe_bf16_topk8_e128_h2048_i768"  # model:qwen3-30b-a3b, ep:1
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 2048,
        "gemm1_out_size": 1536,
        "intermediate_size": 768,
    }
    sha256 = "d34588c2d5e850a91a289a153193c8cdf0a5ef58ae6ea5768da22e7d84873a0c"

class TestMoeBf16Topk8E128H4096I1536(MoeBf16Base):
    name = "moe_bf16_topk8_e128_h4096_i1536"  # model:qwen3-235b-a22b, ep:1
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 4096,
        "gemm1_out_size": 3072,
        "intermediate_size": 1536,
    }
    sha256 = "aa8920100f3f1e778290b47ae609dbecd0e301239011aa6bc6b5a250dca2347c"

class TestMoeBf16Topk8E128H4096I192(MoeBf16Base):
    name = "moe_bf16_topk8_e128_h4096_i192"  # model:qwen3-235b-a22b, ep:1, tp:8
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 4096,
        "gemm1_out_size": 384,
        "intermediate_size": 192,
    }
    sha256 = "d3cb8ceff5ac9c7dba7705c12a7a6ee533ae0b8f00fdc69afd0d747809be737e"

class TestMoeBf16Topk8E128H4096I384(MoeBf16Base):
    name = "moe_bf16_topk8_e128_h4096_i384"  # model:qwen3-235b-a22b, ep:1, tp:4
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 4096,
        "gemm1_out_size": 768,
        "intermediate_size": 384,
    }
    sha256 = "e6f936ae2f941e6db53889f31fa0b20db77a064e58b562707d8104f783817d89"

class TestMoeBf16Topk8E160H5120I1536(MoeBf16Base):
    name = "moe_bf16_topk8_e160_h5120_i1536"  # model:glm-4.6, ep:1
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 8,
        "num_experts": 160,
        "hidden_size": 5120,
        "gemm1_out_size": 3072,
        "intermediate_size": 1536,
    }
    sha256 = "312d0e18c443d78b05f9a4d198361404cc1e4d3df7ad949da16c1a89300d0117"

class TestMoeBf16Topk8E16H2048I768(MoeBf16Base):
    name = "moe_bf16_topk8_e16_h2048_i768"  # model:qwen3-30b-a3b, ep:8
    interface = INTERFACE_MOE_BF16
    axes = {
        "top_k": 8,
        "num_experts": 16,
        "hidden_size": 2048,
        "gemm1_out_size": 1536,
        "intermediate_size": 768,
    }
    sha256 = "6e95d357133a9c6ac50ebc5deb6b809f5e45dd9405facad50cf8e4b2bd1267f6"

# The next 3: The last expert is the shared one, which serving chooses for every token
# with a constant weight.
class TestMoeBf16SharedTopk9E129H4096I352(MoeBf16Base):
    name = "moe_bf16_shared_topk9_e129_h4096_i352"  # model:glm-4.5-air, ep:1, tp:4
    interface = INTERFACE_MOE_BF16_SHARED
    axes = {
        "top_k_and_shared": 9,
        "num_all_experts": 129,
        "hidden_size": 4096,
        "gemm1_out_size": 704,
        "intermediate_size": 352,
    }
    sha256 = "dd2d8938e753f046221a92fb1cbac71832dcfb9ea95262e5140be553e422a453"

class TestMoeBf16SharedTopk9E161H5120I192(MoeBf16Base):
    name = "moe_bf16_shared_topk9_e161_h5120_i192"  # model:glm-4.6, ep:1, tp:8
    interface = INTERFACE_MOE_BF16_SHARED
    axes = {
        "top_k_and_shared": 9,
        "num_all_experts": 161,
        "hidden_size": 5120,
        "gemm1_out_size": 384,
        "intermediate_size": 192,
    }
    sha256 = "3cb2331784cbe12f81726771ba28365f0edfb46fdebe41f6ae5dde155be5472c"

class TestMoeBf16SharedTopk9E161H5120I384(MoeBf16Base):
    name = "moe_bf16_shared_topk9_e161_h5120_i384"  # model:glm-4.6, ep:1, tp:4
    interface = INTERFACE_MOE_BF16_SHARED
    axes = {
        "top_k_and_shared": 9,
        "num_all_experts": 161,
        "hidden_size": 5120,
        "gemm1_out_size": 768,
        "intermediate_size": 384,
    }
    sha256 = "8219b262ebcd026018ef5a19c5d4b0a6edea27e38cf134a1158187de3ada6bc9"


# Weighted sum of the experts of each token, each down(silu(gate(x)) * up(x)), with
# float8 weights, of which each block of 128 x 128 has a scale; the rows of w13 are
# gate, then up. In float32: kernels round what goes into both products to float8, in
# blocks of 128 of a row. An expert of -1 is on another device.
# quantization:float8_e4m3fn
# Tolerances: those of reference_moe_bf16_scaled_input.
def reference_moe_fp8_block():
    import torch

    BLOCK = 128


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor,
        topk_ids: torch.Tensor,
        topk_weights: torch.Tensor,
        w13: torch.Tensor,
        w13_scale: torch.Tensor,
        w2: torch.Tensor,
        w2_scale: torch.Tensor,
    ) -> torch.Tensor:
        x = hidden_states.float()
        output = torch.zeros_like(x)
        for expert in sorted(set(topk_ids.flatten().tolist())):
            # An expert of another device is -1 and adds nothing.
            if expert >= 0:
                token, slot = (topk_ids == expert).nonzero(as_tuple=True)
                both = x[token] @ dequantize(w13[expert], w13_scale[expert]).T
                gate, up = both.chunk(2, dim=1)
                # Kernels round this to float8; here it stays in float32.
                inner = torch.nn.functional.silu(gate) * up
                y = inner @ dequantize(w2[expert], w2_scale[expert]).T
                output.index_add_(0, token, y * topk_weights[token, slot, None])
        return output.to(torch.bfloat16)


    def dequantize(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        # A block of 128 rows and 128 columns has one scale.
        rows, columns = codes.shape
        blocks = codes.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
        return (blocks * scales[:, None, :, None]).view(rows, columns)

    return run


class MoeFp8BlockBase(MoeExpertsTests):
    reference = staticmethod(reference_moe_fp8_block)

# model:qwen3-next-80b-a3b, ep:1, tp:4
class TestMoeFp8BlockTopk10E512H2048I128(MoeFp8BlockBase):
    name = "moe_fp8_block_topk10_e512_h2048_i128"
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 10,
        "num_experts": 512,
        "hidden_size": 2048,
        "gemm1_out_size": 256,
        "intermediate_size": 128,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 1,
        "num_gemm1_out_blocks": 2,
    }
    sha256 = "0214c3a309f3a9b571ff35ec8c680dcf56cff977bfb35dd1697c8c6336b40d6a"

class TestMoeFp8BlockTopk10E512H2048I512(MoeFp8BlockBase):
    name = "moe_fp8_block_topk10_e512_h2048_i512"  # model:qwen3-next-80b-a3b, ep:1
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 10,
        "num_experts": 512,
        "hidden_size": 2048,
        "gemm1_out_size": 1024,
        "intermediate_size": 512,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 4,
        "num_gemm1_out_blocks": 8,
    }
    sha256 = "61ea41f1495a421499eb70673f576e250d18e1f74545af53451ba71de771452a"

class TestMoeFp8BlockTopk10E512H4096I128(MoeFp8BlockBase):
    name = "moe_fp8_block_topk10_e512_h4096_i128"  # model:qwen3.5-397b-a17b, ep:1, tp:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 10,
        "num_experts": 512,
        "hidden_size": 4096,
        "gemm1_out_size": 256,
        "intermediate_size": 128,
        "num_hidden_blocks": 32,
        "num_intermediate_blocks": 1,
        "num_gemm1_out_blocks": 2,
    }
    sha256 = "921acf6985c1064ef04401bd80a0545bd739d1f7041a210943719172f6c2d83d"

class TestMoeFp8BlockTopk10E64H4096I1024(MoeFp8BlockBase):
    name = "moe_fp8_block_topk10_e64_h4096_i1024"  # model:qwen3.5-397b-a17b, ep:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 10,
        "num_experts": 64,
        "hidden_size": 4096,
        "gemm1_out_size": 2048,
        "intermediate_size": 1024,
        "num_hidden_blocks": 32,
        "num_intermediate_blocks": 8,
        "num_gemm1_out_blocks": 16,
    }
    sha256 = "2e9f2f647b54f5c3c61a8d93793339131ad406c87530678bd2ccb2b814e7d3b8"

class TestMoeFp8BlockTopk8E128H2048I384(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e128_h2048_i384"  # model:qwen3-30b-a3b, ep:1, tp:2
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 2048,
        "gemm1_out_size": 768,
        "intermediate_size": 384,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 3,
        "num_gemm1_out_blocks": 6,
    }
    sha256 = "866fac8d59ab248ec084bdd4904d27c43b0a300a53e42b6c97ea02243cbb1c97"

class TestMoeFp8BlockTopk8E128H2048I768(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e128_h2048_i768"  # model:qwen3-30b-a3b, ep:1
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 2048,
        "gemm1_out_size": 1536,
        "intermediate_size": 768,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 6,
        "num_gemm1_out_blocks": 12,
    }
    sha256 = "351e2c1eda85bf42bc3b7c1a3cc40c5bd2d871ad4d7d0c25d39695e1ede03c0b"

class TestMoeFp8BlockTopk8E128H4096I384(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e128_h4096_i384"  # model:qwen3-235b-a22b, ep:1, tp:4
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 128,
        "hidden_size": 4096,
        "gemm1_out_size": 768,
        "intermediate_size": 384,
        "num_hidden_blocks": 32,
        "num_intermediate_blocks": 3,
        "num_gemm1_out_blocks": 6,
    }
    sha256 = "066856c2207b578bce105b0aa2204a02b48a9823107f18b4f0a82f0e49b741f7"

class TestMoeFp8BlockTopk8E16H4096I1536(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e16_h4096_i1536"  # model:qwen3-235b-a22b, ep:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 16,
        "hidden_size": 4096,
        "gemm1_out_size": 3072,
        "intermediate_size": 1536,
        "num_hidden_blocks": 32,
        "num_intermediate_blocks": 12,
        "num_gemm1_out_blocks": 24,
    }
    sha256 = "ad5a61f1fbd7ca26ace17582e210d1bc924d29aedfccc4d8752de0e972267763"

class TestMoeFp8BlockTopk8E256H3072I384(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e256_h3072_i384"  # model:minimax-m2, ep:1, tp:4
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 256,
        "hidden_size": 3072,
        "gemm1_out_size": 768,
        "intermediate_size": 384,
        "num_hidden_blocks": 24,
        "num_intermediate_blocks": 3,
        "num_gemm1_out_blocks": 6,
    }
    sha256 = "e6cc8512a39f6e7441c3812a8f096dd71b87f3338a1abd27dd8743835add2ea8"

class TestMoeFp8BlockTopk8E256H6144I256(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e256_h6144_i256"  # model:glm-5, ep:1, tp:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 256,
        "hidden_size": 6144,
        "gemm1_out_size": 512,
        "intermediate_size": 256,
        "num_hidden_blocks": 48,
        "num_intermediate_blocks": 2,
        "num_gemm1_out_blocks": 4,
    }
    sha256 = "34778ec89f181739c48dea9da27796d0c1c7748f7cfe68320a6ee75d13239e39"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:1, tp:8
class TestMoeFp8BlockTopk8E256H7168I256(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e256_h7168_i256"
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 256,
        "hidden_size": 7168,
        "gemm1_out_size": 512,
        "intermediate_size": 256,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 2,
        "num_gemm1_out_blocks": 4,
    }
    sha256 = "c616a26c81890c9a6872f2b5b4e4c070859957e5bbaa8c08e5aab5162e9ae5e4"

class TestMoeFp8BlockTopk8E32H3072I1536(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e32_h3072_i1536"  # model:minimax-m2, ep:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 32,
        "hidden_size": 3072,
        "gemm1_out_size": 3072,
        "intermediate_size": 1536,
        "num_hidden_blocks": 24,
        "num_intermediate_blocks": 12,
        "num_gemm1_out_blocks": 24,
    }
    sha256 = "1c48d8212066aa0b23afc32beb6d3473a6eb9a2ec678bc4013a098cfc5ff3c10"

class TestMoeFp8BlockTopk8E32H6144I2048(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e32_h6144_i2048"  # model:glm-5, ep:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 32,
        "hidden_size": 6144,
        "gemm1_out_size": 4096,
        "intermediate_size": 2048,
        "num_hidden_blocks": 48,
        "num_intermediate_blocks": 16,
        "num_gemm1_out_blocks": 32,
    }
    sha256 = "77858500caa514bce55877343b438a79872291890263426dd3308a7a60ab4756"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:8
class TestMoeFp8BlockTopk8E32H7168I2048(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e32_h7168_i2048"
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 32,
        "hidden_size": 7168,
        "gemm1_out_size": 4096,
        "intermediate_size": 2048,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 16,
        "num_gemm1_out_blocks": 32,
    }
    sha256 = "ed27c998b1a2b64b87dbfbbc1ef6d38addbdde25f24c22b81ab0836fdca30b46"

class TestMoeFp8BlockTopk8E384H7168I256(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e384_h7168_i256"  # model:kimi-k2, ep:1, tp:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 384,
        "hidden_size": 7168,
        "gemm1_out_size": 512,
        "intermediate_size": 256,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 2,
        "num_gemm1_out_blocks": 4,
    }
    sha256 = "39045f39bd58ec59a2df4722379189615c5923c9cb6952831bfb43fd84535652"

class TestMoeFp8BlockTopk8E48H7168I2048(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e48_h7168_i2048"  # model:kimi-k2, ep:8
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 48,
        "hidden_size": 7168,
        "gemm1_out_size": 4096,
        "intermediate_size": 2048,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 16,
        "num_gemm1_out_blocks": 32,
    }
    sha256 = "45f3d27fe24e15c461dd82bf3bf9207e1c5a7163cd7dc62325846896b6ed27e4"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:32
class TestMoeFp8BlockTopk8E8H7168I2048(MoeFp8BlockBase):
    name = "moe_fp8_block_topk8_e8_h7168_i2048"
    interface = INTERFACE_MOE_FP8_BLOCK
    axes = {
        "top_k": 8,
        "num_experts": 8,
        "hidden_size": 7168,
        "gemm1_out_size": 4096,
        "intermediate_size": 2048,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 16,
        "num_gemm1_out_blocks": 32,
    }
    sha256 = "89814ee995cf98dcf9abed10d5aba7b6ac478ae3b47897a7ac13e5774b977dc4"

# The next 2: The last expert is the shared one, which serving chooses for every token
# with a constant weight.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:1, tp:16
class TestMoeFp8BlockSharedTopk9E257H7168I128(MoeFp8BlockBase):
    name = "moe_fp8_block_shared_topk9_e257_h7168_i128"
    interface = INTERFACE_MOE_FP8_BLOCK_SHARED
    axes = {
        "top_k_and_shared": 9,
        "num_all_experts": 257,
        "hidden_size": 7168,
        "gemm1_out_size": 256,
        "intermediate_size": 128,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 1,
        "num_gemm1_out_blocks": 2,
    }
    sha256 = "58dee7038bd0201950a66d03e401765ace5af093a97615097d5fe528dfeff1af"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:1, tp:8
class TestMoeFp8BlockSharedTopk9E257H7168I256(MoeFp8BlockBase):
    name = "moe_fp8_block_shared_topk9_e257_h7168_i256"
    interface = INTERFACE_MOE_FP8_BLOCK_SHARED
    axes = {
        "top_k_and_shared": 9,
        "num_all_experts": 257,
        "hidden_size": 7168,
        "gemm1_out_size": 512,
        "intermediate_size": 256,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 2,
        "num_gemm1_out_blocks": 4,
    }
    sha256 = "5b428e799663ca5fa1d38d929a9add3db34486cc5958d9abd5701e2d7d15b288"


# Weighted sum of the experts of each token with mxfp4 weights and biases. Rows of gate
# and up take turns in w13; gate is at most 7 and up in -7 to 7; an expert gives
# down(gate * sigmoid(1.702 * gate) * (up + 1)), its bias included in what the router's
# weight multiplies. An expert of -1 is on another device.
# quantization:mxfp4
# Tolerances: those of reference_moe_bf16_scaled_input.
def reference_moe_mxfp4():
    import torch

    ALPHA = 1.702
    LIMIT = 7.0
    BLOCK = 32
    BIAS = 127
    VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor,
        topk_ids: torch.Tensor,
        topk_weights: torch.Tensor,
        w13: torch.Tensor,
        w13_scale: torch.Tensor,
        w13_bias: torch.Tensor,
        w2: torch.Tensor,
        w2_scale: torch.Tensor,
        w2_bias: torch.Tensor,
    ) -> torch.Tensor:
        x = hidden_states.float()
        output = torch.zeros_like(x)
        for expert in sorted(set(topk_ids.flatten().tolist())):
            # An expert of another device is -1 and adds nothing.
            if expert >= 0:
                token, slot = (topk_ids == expert).nonzero(as_tuple=True)
                both = x[token] @ dequantize(w13[expert], w13_scale[expert]).T
                both = both + w13_bias[expert].float()
                # Rows of gate and up take turns.
                gate = both[:, 0::2].clamp(max=LIMIT)
                up = both[:, 1::2].clamp(-LIMIT, LIMIT)
                inner = gate * torch.sigmoid(ALPHA * gate) * (up + 1)
                y = inner @ dequantize(w2[expert], w2_scale[expert]).T
                y = y + w2_bias[expert].float()
                output.index_add_(0, token, y * topk_weights[token, slot, None])
        return output.to(torch.bfloat16)


    def dequantize(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        # The first of two elements is in the lower half of a byte.
        table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=codes.device)
        pairs = torch.stack((table.repeat(16), table.repeat_interleave(16)), dim=1)
        blocks = pairs[codes.view(torch.uint8).int()].view(len(codes), -1, BLOCK)
        factors = torch.exp2(scales.view(torch.uint8).float() - BIAS)
        return (blocks * factors[:, :, None]).flatten(1)

    return run


class MoeMxfp4Base(MoeExpertsTests):
    reference = staticmethod(reference_moe_mxfp4)
    interface = INTERFACE_MOE_MXFP4
    axes = {
        "top_k": 4,
        "hidden_size": 2880,
        "gemm1_out_size": 5760,
        "hidden_packed": 1440,
        "num_hidden_blocks": 90,
        "intermediate_packed": 1440,
        "num_intermediate_blocks": 90,
    }

class TestMoeMxfp4Topk4E128H2880I2880(MoeMxfp4Base):
    name = "moe_mxfp4_topk4_e128_h2880_i2880"  # model:gpt-oss-120b, ep:1
    axes = {"num_experts": 128}
    sha256 = "f79db3fb677f0806aae32b835e538e64f0ea3e8c5dbed379b6dbbd020ec7ca28"

class TestMoeMxfp4Topk4E32H2880I2880(MoeMxfp4Base):
    name = "moe_mxfp4_topk4_e32_h2880_i2880"  # model:gpt-oss-20b, ep:1
    axes = {"num_experts": 32}
    sha256 = "ac683c71361c10aa4efad81579b48d7b1d130299b1b7884f778b3e4b5eb0f841"

class TestMoeMxfp4Topk4E4H2880I2880(MoeMxfp4Base):
    name = "moe_mxfp4_topk4_e4_h2880_i2880"  # model:gpt-oss-20b, ep:8
    axes = {"num_experts": 4}
    sha256 = "426031116ac41b4e6ae4fe0d4f92428a69ae01b12f2893a1db69578f8fd39407"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
