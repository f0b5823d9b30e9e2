"""Reference tests of op_type moe.

Rendered: don't edit. `gen-tests --op-type moe` renders this file anew.

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
from dataclasses import replace
from typing import Any

import torch

from generator.ops.limit_cases import lengthened
from generator.ops.op_types.moe import flashinfer as moe_flashinfer
from generator.ops.op_types.moe import routing as moe_routing
from generator.ops.op_types.moe import sglang as moe_sglang
from generator.ops.op_types.moe.cases import (
    expert_elements,
    far_apart,
    few_cases,
    weights_of,
)
from generator.ops.op_types.moe.inputs import (
    routing_inputs,
    token_inputs,
    weight_inputs,
)
from generator.ops.op_types.moe.names import BELOW
from generator.ops.op_types.moe.relations import moe_relations
from generator.ops.op_types.moe.weights import BLOCK
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.moe, generator.ops.op_types.moe.weights
# bounds: generator.ops.op_types.moe.names
# relations: generator.ops.op_types.moe.relations

# of an expert's tokens at a time on a CPU: their products stay in a core's cache
_CPU_ROWS = 512
_ROUNDED_ONCE = "float32 sums, rounded once to bfloat16: half an ulp is 2^-8 at most"
_SHORT = (
    "the kernel rounds to bfloat16 what goes into silu, both its factors' product and "
    "every expert's output: five roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, squared) and "
    "the reference's own are 1.5e-5 of the power; where scales have all bits, it rounds "
    "the dequantised states, for gate and for up, and three weights as well: 2.7e-5; "
    "atol and rtol are 5 deviations of 1.5e-5 of outputs up to 2. What it rounds where "
    "scales are not powers of two makes outputs larger by 0.12 %: the bias is below 0.2 %"
)
_EIGHT_BITS = (
    "the kernel quantises the values between the products to float8_e4m3: a rounding "
    "to 4 bits is 2^-4/sqrt(3)/1.44 of them, squared 6.5e-4 of the power; outputs are "
    "about 1, so that atol is 4 deviations; a token's norm hangs on its 300 largest values, "
    "of which 5 deviations are 7.4e-3. Scales of states in bfloat16, of gate and of up, and "
    "the power of what is rounded make outputs larger by 0.34 %: the bias is below 0.4 %"
)
_BF16 = Tolerance(
    2e-2, 3e-2, 5e-5, 0.999, cosine=0.9999, norm_ratio=(0.995, 1.005), bias=2e-3
)
_F8 = Tolerance(
    1e-1, 1e-1, 2e-3, 0.99, cosine=0.999, norm_ratio=(0.992, 1.008), bias=4e-3
)
_SCALED_BF16 = (
    "a scale that is rounded to bfloat16 makes outputs smaller by 0.35 %, so the norm decides; "
    "the kernel rounds dequantised values instead, of states, of gate and up and of the second "
    "weights, which makes them larger by 0.12 %; 0.02 % of 24 tokens' norms are chance"
)
_SCALED_F8 = (
    "a scale that is rounded to bfloat16 makes outputs smaller by 0.35 %, so the norm decides; "
    "the kernel makes them larger: SGLang's is handed states in bfloat16 and finds their "
    "scales in a block's largest value, 448 · 1.105, which bfloat16 rounds up by 0.153 %, for "
    "gate and for up; what is rounded to float8_e4m3 has 5e-4 more power, 0.03 % of the norm, "
    "and as much is chance"
)
_BELOW_BF16 = replace(_BF16, norm_ratio=(0.998, 1.002))
_BELOW_F8 = replace(_F8, norm_ratio=(0.996, 1.002))
TOLERANCES = (
    # the first that applies wins
    *(
        Override("output", bound, reason, source=source, case=BELOW)
        for source, bound, reason in (
            ("sglang/triton-bf16", _BELOW_BF16, _SCALED_BF16),
            ("sglang/triton-fp8", _BELOW_F8, _SCALED_F8),
            ("flashinfer/trtllm-fp8-block", _BELOW_F8, _SCALED_F8),
            ("flashinfer/trtllm-fp8-per-tensor", _BELOW_F8, _SCALED_F8),
        )
    ),
    Override("output", Tolerance(4e-3, 2e-4, 5e-6), _ROUNDED_ONCE, source="oracle"),
    Override(
        "output",
        Tolerance(8e-3, 3e-4, 5e-6),
        f"{_ROUNDED_ONCE}, on both sides: neighbours at most",
        source="sglang/native",
    ),
    Override("output", _BF16, _SHORT, source="sglang/triton-bf16"),
    Override("output", _F8, _EIGHT_BITS, source="sglang/triton-fp8"),
    Override("output", _BF16, _SHORT, source="flashinfer/trtllm-fp4"),
    Override("output", _F8, _EIGHT_BITS, source="flashinfer/trtllm-fp8-block"),
    Override("output", _F8, _EIGHT_BITS, source="flashinfer/trtllm-fp8-per-tensor"),
)


def cases(definition: Definition) -> list[Case]:
    """Return the cases: few tokens and few experts, so that a CPU can run them."""
    usual = few_cases(definition)
    (batch,) = (case for case in usual if case.name == "batch")
    return [*usual, lengthened(batch, "seq_len", 8_219), *far_apart(definition, usual)]


def peak_bytes(definition: Definition, case: Case) -> int:
    """Return an upper bound of the bytes that run() or a kernel needs for a case.

    Counts the weights once, for they are made when a callee asks; the experts that tokens
    select in bfloat16, of a workload as many as there can be; each token's states and
    what is between the products, for each of its experts; and a float64 copy of one expert.
    """
    axes = definition.axes
    columns, hidden = axes["intermediate_size"], axes["hidden_size"]
    local = moe_routing.experts_of(definition)[1]
    specs = definition.interface.input_specs
    width = 4 if specs["gemm1_weights"].dtype == "float32" else 1
    weights = width * local * expert_elements(definition)
    rest = tensor_bytes(definition, case) - weights
    pairs: int = case.axes["seq_len"] * definition.constants["top_k"]
    selected: int = min(case.params.get("local", local), pairs)
    chosen = selected * expert_elements(definition)
    between = 4 * pairs * (3 * columns + 2 * hidden)
    return weights + COPIES * rest + between + 2 * chosen + 64 * columns * hidden


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the interface's inputs; outputs are about 1.

    See `routing_inputs`, `token_inputs` and `weight_inputs` for shapes and dtypes. In
    small cases bfloat16 holds all dequantised values. The weights are lazy (`Tiled`).
    """
    inputs = {
        **routing_inputs(definition, case, stream),
        **token_inputs(definition, case, stream),
        **weight_inputs(definition, case, stream),
        "local_expert_offset": case.params["offset"],
        "routed_scaling_factor": case.params.get("factor", 2.5),
    }
    return {name: inputs[name] for name in definition.interface.inputs}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the output, float64 [seq_len, hidden_size], one expert at a time.

    Block scales multiply the products of blocks; no weight is dequantised.
    """
    offset = inputs.get("local_expert_offset", 0)
    count = moe_routing.experts_of(definition)[1]
    weighs_input = moe_routing.routing_of(definition) == moe_routing.LLAMA4
    states = inputs["hidden_states"].double()
    output: torch.Tensor = torch.zeros_like(states)
    tokens: dict[int, list[tuple[int, float]]] = {}
    for token, choice in enumerate(moe_routing.choices(definition, inputs)):
        for expert, weight in choice.items():
            tokens.setdefault(expert - offset, []).append((token, weight))
    most = len(states) if states.is_cuda else _CPU_ROWS
    for expert in sorted(e for e in tokens if 0 <= e < count):
        for first in range(0, len(tokens[expert]), most):
            some = tokens[expert][first : first + most]
            rows = torch.tensor([token for token, _ in some], device=states.device)
            weights = states.new_tensor([[weight] for _, weight in some])
            x = states[rows]
            if "hidden_states_scale" in inputs:
                scale = inputs["hidden_states_scale"][:, rows].double()
                x = x * scale.repeat_interleave(BLOCK, dim=0).T
            x = x * weights if weighs_input else x
            y = _expert(inputs, expert, x)
            output.index_add_(0, rows, y if weighs_input else y * weights)
    return output


def _expert(inputs: dict[str, Any], expert: int, x: torch.Tensor) -> torch.Tensor:
    """Return one expert's outputs for x: float64 [rows, hidden_size] both."""
    one, two = inputs["gemm1_weights"][expert], inputs["gemm2_weights"][expert]
    if "gemm1_weights_scale" in inputs:
        both = _product(x, one, inputs["gemm1_weights_scale"][expert])
    else:
        both = x @ one.double().T
    half = both.shape[1] // 2
    up, gate = both[:, :half], both[:, half:]
    if "output1_scales_scalar" in inputs:
        up = up * inputs["output1_scales_scalar"][expert].double()
        gate = gate * inputs["output1_scales_gate_scalar"][expert].double()
    inner = up * gate / (1.0 + torch.exp(-gate))
    if "gemm2_weights_scale" in inputs:
        return _product(inner, two, inputs["gemm2_weights_scale"][expert])
    y: torch.Tensor = inner @ two.double().T
    if "output2_scales_scalar" in inputs:
        y = y * inputs["output2_scales_scalar"][expert].double()
    return y


def _product(
    x: torch.Tensor, weights: torch.Tensor, scales: torch.Tensor
) -> torch.Tensor:
    """Return x [rows, k] · weights [n, k]ᵀ, float64 [rows, n], by blocks of k."""
    total, wide = x.new_zeros(len(x), len(weights)), weights.double()
    for block, scale in enumerate(scales.double().T):
        columns = slice(block * BLOCK, (block + 1) * BLOCK)
        part = x[:, columns] @ wide[:, columns].T
        total.addcmul_(part, scale.repeat_interleave(BLOCK))
    return total


_TO_MXFP4 = "inputs rewritten: float32 weights are quantised to mxfp4"
_STATES = "inputs rewritten: hidden_states are dequantised, which the kernel quantises"
_WIDE = "inputs rewritten: the kernel gets bfloat16 weights, which are dequantised"
_SUMMED = (
    "inputs rewritten: weights are dequantised to float32; outputs rewritten: the adapter "
    "adds the experts of a token"
)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the trtllm-gen kernel for the definition's weights."""
    weights = weights_of(definition)
    rewrites = _TO_MXFP4 if weights == "fp4" else ""
    if rewrites and moe_routing.routing_of(definition) == moe_routing.LLAMA4:
        rewrites += ", and hidden_states are multiplied by the token's score"
    return (Backend(f"trtllm-{weights}", min_sm=100, rewrites=rewrites),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the output of FlashInfer's kernel, bfloat16 [seq_len, hidden_size]."""
    run = {
        "trtllm-fp8-block": moe_flashinfer.run_f8_block,
        "trtllm-fp8-per-tensor": moe_flashinfer.run_f8_per_tensor,
        "trtllm-fp4": moe_flashinfer.run_f4_block,
    }[backend]
    return run(definition, inputs)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the Triton kernel, on float8 and bfloat16, and SGLang's PyTorch code."""
    triton = [Backend("triton-bf16", min_sm=80, rewrites=_WIDE)]
    if weights_of(definition) == "fp8-block":
        triton.insert(0, Backend("triton-fp8", min_sm=89, rewrites=_STATES))
    return (*triton, Backend("native", needs_cuda=False, rewrites=_SUMMED))


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the output of SGLang's routing and experts, bfloat16 [seq_len, hidden_size].

    Only triton-fp8 takes the quantised weights; the others take dequantised ones.
    """
    run = {
        "triton-fp8": moe_sglang.run_triton_f8,
        "triton-bf16": moe_sglang.run_triton_bf16,
        "native": moe_sglang.run_native,
    }[backend]
    return run(definition, inputs)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    peak_bytes=peak_bytes,
    relations=moe_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_MOE_FP8_BLOCK_SCALE_DS_ROUTING_NG1_KG1 = Interface(
    inputs={
        "routing_logits": "float32[seq_len, num_experts]",
        "routing_bias": "bfloat16[num_experts]",
        "hidden_states": "float8_e4m3fn[seq_len, hidden_size]",
        "hidden_states_scale": "float32[num_hidden_blocks, seq_len]",
        "gemm1_weights": "float8_e4m3fn[num_local_experts, gemm1_out_size, hidden_size]",
        "gemm1_weights_scale": "float32[num_local_experts, num_gemm1_out_blocks, num_hidden_blocks]",
        "gemm2_weights": "float8_e4m3fn[num_local_experts, hidden_size, intermediate_size]",
        "gemm2_weights_scale": "float32[num_local_experts, num_hidden_blocks, num_intermediate_blocks]",
        "local_expert_offset": "int32",
        "routed_scaling_factor": "float32",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)
INTERFACE_MOE_FP8_BLOCK_SCALE_DS_ROUTING_NG8_KG4_E32 = Interface(
    inputs={
        "routing_logits": "float32[seq_len, num_experts]",
        "routing_bias": "bfloat16[num_experts]",
        "hidden_states": "float8_e4m3fn[seq_len, hidden_size]",
        "hidden_states_scale": "float32[num_hidden_blocks, seq_len]",
        "gemm1_weights": "float8_e4m3fn[num_local_experts, gemm1_out_size, hidden_size]",
        "gemm1_weights_scale": "float32[num_local_experts, num_gemm1_out_blocks, num_hidden_blocks]",
        "gemm2_weights": "float8_e4m3fn[num_local_experts, hidden_size, intermediate_size]",
        "gemm2_weights_scale": "float32[num_local_experts, num_hidden_blocks, num_intermediate_blocks]",
        "local_expert_offset": "int32",
        "routed_scaling_factor": "float32",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
)
INTERFACE_MOE_FP8_BLOCK_SCALE_RENORM_SHARD = Interface(
    inputs={
        "routing_logits": "bfloat16[seq_len, num_experts]",
        "hidden_states": "float8_e4m3fn[seq_len, hidden_size]",
        "hidden_states_scale": "float32[num_hidden_blocks, seq_len]",
        "gemm1_weights": "float8_e4m3fn[num_local_experts, gemm1_out_size, hidden_size]",
        "gemm1_weights_scale": "float32[num_local_experts, num_gemm1_out_blocks, num_hidden_blocks]",
        "gemm2_weights": "float8_e4m3fn[num_local_experts, hidden_size, intermediate_size]",
        "gemm2_weights_scale": "float32[num_local_experts, num_hidden_blocks, num_intermediate_blocks]",
        "local_expert_offset": "int32",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)
INTERFACE_MOE_FP8_BLOCK_SCALE_RENORM = INTERFACE_MOE_FP8_BLOCK_SCALE_RENORM_SHARD.but(
    inputs={"routing_logits": "bfloat16[seq_len, num_local_experts]"},
    without=("local_expert_offset",),
)
INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE_SHARD = Interface(
    inputs={
        "routing_logits": "bfloat16[seq_len, num_experts]",
        "hidden_states": "bfloat16[seq_len, hidden_size]",
        "gemm1_weights": "float32[num_local_experts, gemm1_out_size, hidden_size]",
        "gemm2_weights": "float32[num_local_experts, hidden_size, intermediate_size]",
        "local_expert_offset": "int32",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)
INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE_SHARD.but(
    inputs={
        "gemm1_weights": "float32[num_experts, gemm1_out_size, hidden_size]",
        "gemm2_weights": "float32[num_experts, hidden_size, intermediate_size]",
    },
    without=("local_expert_offset",),
)
INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE_TOPK1_H5120_I8192 = Interface(
    inputs={
        "routing_logits": "bfloat16[seq_len, num_experts]",
        "hidden_states": "bfloat16[seq_len, hidden_size]",
        "gemm1_weights": "float32[num_experts, gemm1_out_size, hidden_size]",
        "gemm2_weights": "float32[num_experts, hidden_size, intermediate_size]",
        "routing_bias": "bfloat16[num_experts]",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)
INTERFACE_TRTLLM_FP4_BLOCK_SCALE_ROUTED_MOE_SHARD = Interface(
    inputs={
        "topk_ids": "int32[seq_len, top_k]",
        "hidden_states": "bfloat16[seq_len, hidden_size]",
        "gemm1_weights": "float32[num_local_experts, gemm1_out_size, hidden_size]",
        "gemm2_weights": "float32[num_local_experts, hidden_size, intermediate_size]",
        "local_expert_offset": "int32",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)
INTERFACE_TRTLLM_FP4_BLOCK_SCALE_ROUTED_MOE = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE.but(
    inputs={"topk_ids": "int32[seq_len, top_k]"},
    without=("routing_logits",),
)
INTERFACE_TRTLLM_FP8_PER_TENSOR_SCALE_MOE_TOPK1_H5120_I8192 = Interface(
    inputs={
        "routing_logits": "bfloat16[seq_len, num_experts]",
        "hidden_states": "float8_e4m3fn[seq_len, hidden_size]",
        "gemm1_weights": "float8_e4m3fn[num_experts, gemm1_out_size, hidden_size]",
        "output1_scales_scalar": "float32[num_experts]",
        "output1_scales_gate_scalar": "float32[num_experts]",
        "gemm2_weights": "float8_e4m3fn[num_experts, hidden_size, intermediate_size]",
        "output2_scales_scalar": "float32[num_experts]",
        "routing_bias": "bfloat16[num_experts]",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)
INTERFACE_TRTLLM_FP8_PER_TENSOR_SCALE_MOE_TOPK8_H2048_I768 = Interface(
    inputs={
        "routing_logits": "bfloat16[seq_len, num_experts]",
        "hidden_states": "float8_e4m3fn[seq_len, hidden_size]",
        "gemm1_weights": "float8_e4m3fn[num_experts, gemm1_out_size, hidden_size]",
        "output1_scales_scalar": "float32[num_experts]",
        "output1_scales_gate_scalar": "float32[num_experts]",
        "gemm2_weights": "float8_e4m3fn[num_experts, hidden_size, intermediate_size]",
        "output2_scales_scalar": "float32[num_experts]",
    },
    outputs={"output": "bfloat16[seq_len, hidden_size]"},
    constraints=(
        "gemm1_weights.shape[1] == 2 * intermediate_size",
        "gemm2_weights.shape[1] == hidden_size",
        "gemm2_weights.shape[2] == intermediate_size",
    ),
)

# ---- the tests


class MoeTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of moe share."""

    op_type = "moe"
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
# (1) a scale that is rounded to bfloat16 makes outputs smaller by 0.35 %, so the norm
# decides.
# (2) 0.999 of the elements are within atol and rtol, the cosine is 0.9999 or more, the
# norm is 0.998 to 1.002 times the expected one, a factor or an offset of 0.002 is
# allowed.
# (3) 0.99 of the elements are within atol and rtol, the cosine is 0.999 or more, the
# norm is 0.996 to 1.002 times the expected one, a factor or an offset of 0.004 is
# allowed.
# (4) float32 sums, rounded once to bfloat16.
# (5) the kernel rounds to bfloat16 what goes into silu, both its factors' product and
# every expert's output.
# (6) 0.999 of the elements are within atol and rtol, the cosine is 0.9999 or more, the
# norm is 0.995 to 1.005 times the expected one, a factor or an offset of 0.002 is
# allowed.
# (7) the kernel quantises the values between the products to float8_e4m3.
# (8) 0.99 of the elements are within atol and rtol, the cosine is 0.999 or more, the
# norm is 0.992 to 1.008 times the expected one, a factor or an offset of 0.004 is
# allowed.


# Mixture of experts: float8 weights with a scale for each block of 128 x 128; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose as in DeepSeek-V3: sigmoid scores plus a bias choose 8 experts,
# from all of them; the weights are the scores without the bias, divided by their sum,
# times routed_scaling_factor. Experts that are not here add nothing.
# model:kimi-k2, quantization:float8_e4m3fn,
# fi_api:flashinfer.fused_moe.trtllm_fp8_block_scale_moe, tp:8
# Tolerances:
#   output  source                                                      rtol   atol    NMSE   reason
#   output  sglang/triton-bf16 in scales-below-midpoints                0.02   0.03    5e-05  (1) (2)
#   output  sglang/triton-fp8 in scales-below-midpoints                 0.1    0.1     0.002  (1) (3)
#   output  flashinfer/trtllm-fp8-block in scales-below-midpoints       0.1    0.1     0.002  (1) (3)
#   output  flashinfer/trtllm-fp8-per-tensor in scales-below-midpoints  0.1    0.1     0.002  (1) (3)
#   output  oracle                                                      0.004  0.0002  5e-06  (4)
#   output  sglang/native                                               0.008  0.0003  5e-06  (4)
#   output  sglang/triton-bf16                                          0.02   0.03    5e-05  (5) (6)
#   output  sglang/triton-fp8                                           0.1    0.1     0.002  (7) (8)
#   output  flashinfer/trtllm-fp4                                       0.02   0.03    5e-05  (5) (6)
#   output  flashinfer/trtllm-fp8-block                                 0.1    0.1     0.002  (7) (8)
#   output  flashinfer/trtllm-fp8-per-tensor                            0.1    0.1     0.002  (7) (8)
#   output  flashinfer, sglang                                          0.01   0.008   2e-05  default
def reference_moe_fp8_block_scale_ds_routing_ng1_kg1():
    import torch

    BLOCK = 128
    TOP_K = 8
    N_GROUP = 1
    TOPK_GROUP = 1


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        routing_bias: torch.Tensor,
        hidden_states: torch.Tensor,
        hidden_states_scale: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm1_weights_scale: torch.Tensor,
        gemm2_weights: torch.Tensor,
        gemm2_weights_scale: torch.Tensor,
        local_expert_offset: int,
        routed_scaling_factor: float,
    ) -> torch.Tensor:
        num_tokens, num_experts = routing_logits.shape

        # The bias takes part in choosing only; a group is as good as its two best experts.
        scores = torch.sigmoid(routing_logits.float())
        biased = scores + routing_bias.float()
        grouped = biased.view(num_tokens, N_GROUP, num_experts // N_GROUP)
        group_scores = grouped.topk(2, dim=2).values.sum(dim=2)
        groups = group_scores.topk(TOPK_GROUP, dim=1).indices
        allowed = torch.zeros_like(group_scores).scatter(1, groups, 1.0).bool()
        candidates = grouped.masked_fill(~allowed.unsqueeze(2), float("-inf"))
        experts = candidates.flatten(1).topk(TOP_K, dim=1).indices

        chosen = scores.gather(1, experts)
        weights = chosen / chosen.sum(dim=1, keepdim=True) * routed_scaling_factor

        # Scales of the hidden states lie as [block, token].
        blocks = hidden_states.float().view(num_tokens, -1, BLOCK)
        states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

        output = torch.zeros_like(states)
        for local_expert in range(gemm1_weights.shape[0]):
            tokens, slots = (experts == local_expert + local_expert_offset).nonzero(
                as_tuple=True
            )
            if len(tokens) == 0:
                continue
            w13 = dequantize(gemm1_weights[local_expert], gemm1_weights_scale[local_expert])
            w2 = dequantize(gemm2_weights[local_expert], gemm2_weights_scale[local_expert])
            up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
            expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)


    def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """Multiply each block of 128 x 128 by its scale, in float32."""
        rows, columns = values.shape
        blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
        return (blocks * scales[:, None, :, None]).view(rows, columns)

    return run


class MoeFp8BlockScaleDsRoutingNg1Kg1Base(MoeTests):
    reference = staticmethod(reference_moe_fp8_block_scale_ds_routing_ng1_kg1)
    interface = INTERFACE_MOE_FP8_BLOCK_SCALE_DS_ROUTING_NG1_KG1
    axes = {
        "num_experts": 384,
        "hidden_size": 7168,
        "intermediate_size": 2048,
        "gemm1_out_size": 4096,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 16,
        "num_gemm1_out_blocks": 32,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 8  # "topk8" in the name
    N_GROUP = 1  # "ng1" in the name
    TOPK_GROUP = 1  # "kg1" in the name

class TestMoeFp8BlockScaleDsRoutingTopk8Ng1Kg1E384H7168I2048(
    MoeFp8BlockScaleDsRoutingNg1Kg1Base
):
    name = "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e384_h7168_i2048"  # ep:1
    axes = {"num_local_experts": 384}
    sha256 = "6f143fa33d82da2c8390f2acebf0a707b5ba98289bd4470feb45bff5182e9317"

class TestMoeFp8BlockScaleDsRoutingTopk8Ng1Kg1E48H7168I2048(
    MoeFp8BlockScaleDsRoutingNg1Kg1Base
):
    name = "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e48_h7168_i2048"  # ep:8
    axes = {"num_local_experts": 48}
    sha256 = "12d74903d6e27bdbf43286e5433d655b6327f031d232fb7574b24d1e9b370f03"


# Mixture of experts: float8 weights with a scale for each block of 128 x 128; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose as in DeepSeek-V3: sigmoid scores plus a bias choose 8 experts,
# from the best 4 of 8 groups; the weights are the scores without the bias, divided by
# their sum, times routed_scaling_factor. Experts that are not here add nothing.
# model:deepseek-v3, model:deepseek-r1, quantization:float8_e4m3fn,
# fi_api:flashinfer.fused_moe.trtllm_fp8_block_scale_moe, ep:8
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_moe_fp8_block_scale_ds_routing_ng8_kg4_e32():
    import torch

    BLOCK = 128
    TOP_K = 8
    N_GROUP = 8
    TOPK_GROUP = 4


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        routing_bias: torch.Tensor,
        hidden_states: torch.Tensor,
        hidden_states_scale: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm1_weights_scale: torch.Tensor,
        gemm2_weights: torch.Tensor,
        gemm2_weights_scale: torch.Tensor,
        local_expert_offset: int,
        routed_scaling_factor: float,
    ) -> torch.Tensor:
        num_tokens, num_experts = routing_logits.shape

        # The bias takes part in choosing only; a group is as good as its two best experts.
        scores = torch.sigmoid(routing_logits.float())
        biased = scores + routing_bias.float()
        grouped = biased.view(num_tokens, N_GROUP, num_experts // N_GROUP)
        group_scores = grouped.topk(2, dim=2).values.sum(dim=2)
        groups = group_scores.topk(TOPK_GROUP, dim=1).indices
        allowed = torch.zeros_like(group_scores).scatter(1, groups, 1.0).bool()
        candidates = grouped.masked_fill(~allowed.unsqueeze(2), float("-inf"))
        experts = candidates.flatten(1).topk(TOP_K, dim=1).indices

        chosen = scores.gather(1, experts)
        weights = chosen / chosen.sum(dim=1, keepdim=True) * routed_scaling_factor

        # Scales of the hidden states lie as [block, token].
        blocks = hidden_states.float().view(num_tokens, -1, BLOCK)
        states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

        output = torch.zeros_like(states)
        for local_expert in range(gemm1_weights.shape[0]):
            tokens, slots = (experts == local_expert + local_expert_offset).nonzero(
                as_tuple=True
            )
            if len(tokens) == 0:
                continue
            w13 = dequantize(gemm1_weights[local_expert], gemm1_weights_scale[local_expert])
            w2 = dequantize(gemm2_weights[local_expert], gemm2_weights_scale[local_expert])
            up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
            expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)


    def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """Multiply each block of 128 x 128 by its scale, in float32."""
        rows, columns = values.shape
        blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
        return (blocks * scales[:, None, :, None]).view(rows, columns)

    return run


class TestMoeFp8BlockScaleDsRoutingTopk8Ng8Kg4E32H7168I2048(MoeTests):
    name = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
    reference = staticmethod(reference_moe_fp8_block_scale_ds_routing_ng8_kg4_e32)
    interface = INTERFACE_MOE_FP8_BLOCK_SCALE_DS_ROUTING_NG8_KG4_E32
    axes = {
        "num_experts": 256,
        "num_local_experts": 32,
        "hidden_size": 7168,
        "intermediate_size": 2048,
        "gemm1_out_size": 4096,
        "num_hidden_blocks": 56,
        "num_intermediate_blocks": 16,
        "num_gemm1_out_blocks": 32,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 8  # "topk8" in the name
    N_GROUP = 8  # "ng8" in the name
    TOPK_GROUP = 4  # "kg4" in the name
    sha256 = "78285876cf9410f15c5cf3c51ae8b39095583a1e778f719bfca025c77e0ccdc2"


# Mixture of experts: float8 weights with a scale for each block of 128 x 128; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 10 largest logits; the weights are a softmax over these.
# Experts are numbered as in the model; those that are not here add nothing.
# model:qwen3-next-80b-a3b, quantization:float8_e4m3fn,
# fi_api:flashinfer.fused_moe.trtllm_fp8_block_scale_moe, ep:4
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_moe_fp8_block_scale_renorm_shard():
    import torch

    BLOCK = 128
    TOP_K = 10


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        hidden_states_scale: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm1_weights_scale: torch.Tensor,
        gemm2_weights: torch.Tensor,
        gemm2_weights_scale: torch.Tensor,
        local_expert_offset: int,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)

        # Scales of the hidden states lie as [block, token].
        blocks = hidden_states.float().view(len(hidden_states), -1, BLOCK)
        states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

        output = torch.zeros_like(states)
        for expert in range(len(gemm1_weights)):
            number = expert + local_expert_offset
            tokens, slots = (experts == number).nonzero(as_tuple=True)
            if len(tokens) == 0:
                continue
            w13 = dequantize(gemm1_weights[expert], gemm1_weights_scale[expert])
            w2 = dequantize(gemm2_weights[expert], gemm2_weights_scale[expert])
            up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
            expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)


    def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """Multiply each block of 128 x 128 by its scale, in float32."""
        rows, columns = values.shape
        blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
        return (blocks * scales[:, None, :, None]).view(rows, columns)

    return run


class TestMoeFp8BlockScaleRenormShardTopk10E128H2048I512(MoeTests):
    name = "moe_fp8_block_scale_renorm_shard_topk10_e128_h2048_i512"
    reference = staticmethod(reference_moe_fp8_block_scale_renorm_shard)
    interface = INTERFACE_MOE_FP8_BLOCK_SCALE_RENORM_SHARD
    axes = {
        "num_experts": 512,
        "num_local_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 512,
        "gemm1_out_size": 1024,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 4,
        "num_gemm1_out_blocks": 8,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 10  # "topk10" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe
    sha256 = "0916f24b6fd138c7d286d9107e33e3dde883b114cd45c9c14f12861db86c729b"


# Mixture of experts: float8 weights with a scale for each block of 128 x 128; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 10 largest logits; the weights are a softmax over these. It
# is a layer of 128 experts: a device that holds 128 of the model's 512 chooses among
# all of them.
# model:qwen3-next-80b-a3b, quantization:float8_e4m3fn,
# fi_api:flashinfer.fused_moe.trtllm_fp8_block_scale_moe, ep:1
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_moe_fp8_block_scale_renorm_topk10_i512():
    import torch

    BLOCK = 128
    TOP_K = 10


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        hidden_states_scale: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm1_weights_scale: torch.Tensor,
        gemm2_weights: torch.Tensor,
        gemm2_weights_scale: torch.Tensor,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)

        # Scales of the hidden states lie as [block, token].
        blocks = hidden_states.float().view(len(hidden_states), -1, BLOCK)
        states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens, slots = (experts == expert).nonzero(as_tuple=True)
            w13 = dequantize(gemm1_weights[expert], gemm1_weights_scale[expert])
            w2 = dequantize(gemm2_weights[expert], gemm2_weights_scale[expert])
            up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
            expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)


    def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """Multiply each block of 128 x 128 by its scale, in float32."""
        rows, columns = values.shape
        blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
        return (blocks * scales[:, None, :, None]).view(rows, columns)

    return run


class TestMoeFp8BlockScaleRenormTopk10E128H2048I512(MoeTests):
    name = "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512"
    reference = staticmethod(reference_moe_fp8_block_scale_renorm_topk10_i512)
    interface = INTERFACE_MOE_FP8_BLOCK_SCALE_RENORM
    axes = {
        "num_local_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 512,
        "gemm1_out_size": 1024,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 4,
        "num_gemm1_out_blocks": 8,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 10  # "topk10" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe
    sha256 = "cb41d46dbf96b9a4c95a43537f727ef3c35f0f66fa72a1667ab224e7688a99e1"


# Mixture of experts: float8 weights with a scale for each block of 128 x 128; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 8 largest logits; the weights are a softmax over these.
# quantization:float8_e4m3fn, fi_api:flashinfer.fused_moe.trtllm_fp8_block_scale_moe,
# ep:1
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_moe_fp8_block_scale_renorm_topk8():
    import torch

    BLOCK = 128
    TOP_K = 8


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        hidden_states_scale: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm1_weights_scale: torch.Tensor,
        gemm2_weights: torch.Tensor,
        gemm2_weights_scale: torch.Tensor,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)

        # Scales of the hidden states lie as [block, token].
        blocks = hidden_states.float().view(len(hidden_states), -1, BLOCK)
        states = (blocks * hidden_states_scale.T.unsqueeze(2)).flatten(1)

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens, slots = (experts == expert).nonzero(as_tuple=True)
            w13 = dequantize(gemm1_weights[expert], gemm1_weights_scale[expert])
            w2 = dequantize(gemm2_weights[expert], gemm2_weights_scale[expert])
            up, gate = (states[tokens] @ w13.T).chunk(2, dim=1)
            expert_output = (torch.nn.functional.silu(gate) * up) @ w2.T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)


    def dequantize(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """Multiply each block of 128 x 128 by its scale, in float32."""
        rows, columns = values.shape
        blocks = values.float().view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
        return (blocks * scales[:, None, :, None]).view(rows, columns)

    return run


class MoeFp8BlockScaleRenormTopk8Base(MoeTests):
    reference = staticmethod(reference_moe_fp8_block_scale_renorm_topk8)
    interface = INTERFACE_MOE_FP8_BLOCK_SCALE_RENORM
    axes = {"num_local_experts": 128}
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 8  # "topk8" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe

# model:qwen3-30b-a3b, tp:1
class TestMoeFp8BlockScaleRenormTopk8E128H2048I768(MoeFp8BlockScaleRenormTopk8Base):
    name = "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768"
    axes = {
        "hidden_size": 2048,
        "intermediate_size": 768,
        "gemm1_out_size": 1536,
        "num_hidden_blocks": 16,
        "num_intermediate_blocks": 6,
        "num_gemm1_out_blocks": 12,
    }
    sha256 = "ed789ba4c0aeeb0b2e86cd249440c3bf80adf48263e8a7bef055b6e974be7b73"

# model:qwen3-235b-a22b, tp:8
class TestMoeFp8BlockScaleRenormTopk8E128H4096I1536(MoeFp8BlockScaleRenormTopk8Base):
    name = "moe_fp8_block_scale_renorm_topk8_e128_h4096_i1536"
    axes = {
        "hidden_size": 4096,
        "intermediate_size": 1536,
        "gemm1_out_size": 3072,
        "num_hidden_blocks": 32,
        "num_intermediate_blocks": 12,
        "num_gemm1_out_blocks": 24,
    }
    sha256 = "2a926780dd30b625b144fa2219bfbaf1f4329891cc529eef82b781ccf53f4ba3"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 10 largest logits; the weights are a softmax over these.
# Experts are numbered as in the model; those that are not here add nothing.
# model:qwen3-next-80b-a3b, quantization:float4_e2m1fn_mxfp4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_moe, gpu:sm100, ep:4
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_moe_shard_topk10_e128_h2048_i512():
    import torch

    TOP_K = 10


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
        local_expert_offset: int,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in range(len(gemm1_weights)):
            number = expert + local_expert_offset
            tokens, slots = (experts == number).nonzero(as_tuple=True)
            if len(tokens) == 0:
                continue
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TestTrtllmFp4BlockScaleMoeShardTopk10E128H2048I512(MoeTests):
    name = "trtllm_fp4_block_scale_moe_shard_topk10_e128_h2048_i512"
    reference = staticmethod(reference_trtllm_fp4_block_scale_moe_shard_topk10_e128_h2048_i512)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE_SHARD
    axes = {
        "num_experts": 512,
        "num_local_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 512,
        "gemm1_out_size": 1024,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 10  # "topk10" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe
    sha256 = "2ca78d7c539fc93999efc593d908234e600a5d973060ddbe5c2e6ef92db72754"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 8 largest logits; the weights are a softmax over these.
# Experts are numbered as in the model; those that are not here add nothing.
# model:qwen3-235b-a22b, quantization:float4_e2m1fn_mxfp4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_moe, gpu:sm100, ep:2
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_moe_shard_topk8_e64_h4096_i1536():
    import torch

    TOP_K = 8


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
        local_expert_offset: int,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in range(len(gemm1_weights)):
            number = expert + local_expert_offset
            tokens, slots = (experts == number).nonzero(as_tuple=True)
            if len(tokens) == 0:
                continue
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TestTrtllmFp4BlockScaleMoeShardTopk8E64H4096I1536(MoeTests):
    name = "trtllm_fp4_block_scale_moe_shard_topk8_e64_h4096_i1536"
    reference = staticmethod(reference_trtllm_fp4_block_scale_moe_shard_topk8_e64_h4096_i1536)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE_SHARD
    axes = {
        "num_experts": 128,
        "num_local_experts": 64,
        "hidden_size": 4096,
        "intermediate_size": 1536,
        "gemm1_out_size": 3072,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 8  # "topk8" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe
    sha256 = "92dc41895f57505bfd2977635b1b267d7333d2885f828ffa6c9403d4e1658b9a"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 10 largest logits; the weights are a softmax over these. It
# is a layer of 128 experts: a device that holds 128 of the model's 512 chooses among
# all of them.
# model:qwen3-next-80b-a3b, quantization:float4_e2m1fn_mxfp4, ep:4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_moe, gpu:sm100, ep:1
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_moe_topk10_h2048_i512():
    import torch

    TOP_K = 10


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens, slots = (experts == expert).nonzero(as_tuple=True)
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TestTrtllmFp4BlockScaleMoeTopk10E128H2048I512(MoeTests):
    name = "trtllm_fp4_block_scale_moe_topk10_e128_h2048_i512"
    reference = staticmethod(reference_trtllm_fp4_block_scale_moe_topk10_h2048_i512)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE
    axes = {
        "num_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 512,
        "gemm1_out_size": 1024,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 10  # "topk10" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe
    sha256 = "01e4f4b0ab6e28b45d0795bce7436ae2099ec7d439f3b7929b0884e02b720ac0"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the expert of the largest logit, whose sigmoid scales what goes
# into the expert. routing_bias is ignored, as the kernel and Llama 4 have none.
# quantization:float4_e2m1fn_mxfp4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_moe, gpu:sm100, ep:1
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_moe_topk1_h5120_i8192():
    import torch


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
        routing_bias: torch.Tensor,
    ) -> torch.Tensor:
        # The largest logit chooses; the bias, which the interface carries, does not count.
        logits, experts = routing_logits.float().max(dim=1)
        # The score scales what goes into the expert, ahead of silu.
        states = hidden_states.float() * torch.sigmoid(logits).unsqueeze(1)

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens = (experts == expert).nonzero().squeeze(1)
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            output[tokens] = inner @ gemm2_weights[expert].T
        return output.to(torch.bfloat16)

    return run


class TrtllmFp4BlockScaleMoeTopk1H5120I8192Base(MoeTests):
    reference = staticmethod(reference_trtllm_fp4_block_scale_moe_topk1_h5120_i8192)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE_TOPK1_H5120_I8192
    axes = {"hidden_size": 5120, "intermediate_size": 8192, "gemm1_out_size": 16384}
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 1  # "topk1" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe

class TestTrtllmFp4BlockScaleMoeTopk1E128H5120I8192(
    TrtllmFp4BlockScaleMoeTopk1H5120I8192Base
):
    name = "trtllm_fp4_block_scale_moe_topk1_e128_h5120_i8192"  # model:llama-4-maverick
    axes = {"num_experts": 128}
    sha256 = "6cb624b6c21017e2ba63e0832df43ff4203ce28f6e61d510d34487a35e101eaf"

# model:llama-4-scout, tp:8
class TestTrtllmFp4BlockScaleMoeTopk1E16H5120I8192(
    TrtllmFp4BlockScaleMoeTopk1H5120I8192Base
):
    name = "trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192"
    axes = {"num_experts": 16}
    sha256 = "ed4fbd088e75a6f9c8304d7614d4cffc5bd1c63662d41ded0357f5510d1eee23"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Tokens choose the 8 largest logits; the weights are a softmax over these.
# quantization:float4_e2m1fn_mxfp4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_moe, gpu:sm100
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_moe_topk8():
    import torch

    TOP_K = 8


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens, slots = (experts == expert).nonzero(as_tuple=True)
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TrtllmFp4BlockScaleMoeTopk8Base(MoeTests):
    reference = staticmethod(reference_trtllm_fp4_block_scale_moe_topk8)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_MOE
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 8  # "topk8" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe

# model:qwen3-30b-a3b, ep:1, tp:1
class TestTrtllmFp4BlockScaleMoeTopk8E128H2048I768(TrtllmFp4BlockScaleMoeTopk8Base):
    name = "trtllm_fp4_block_scale_moe_topk8_e128_h2048_i768"
    axes = {
        "num_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 768,
        "gemm1_out_size": 1536,
    }
    sha256 = "df314ce7ef3fc96ae1a5c594e58c583c6f88f2961dd354f2c0debe4b0958ef95"

# It is a layer of 64 experts: a device that holds 64 of the model's 128 chooses among
# all of them.
# model:qwen3-235b-a22b, ep:2, tp:8
class TestTrtllmFp4BlockScaleMoeTopk8E64H4096I1536(TrtllmFp4BlockScaleMoeTopk8Base):
    name = "trtllm_fp4_block_scale_moe_topk8_e64_h4096_i1536"
    axes = {
        "num_experts": 64,
        "hidden_size": 4096,
        "intermediate_size": 1536,
        "gemm1_out_size": 3072,
    }
    sha256 = "a07ce2e89bb64ab22bfd9910d5d0b12dda76c193d2cb36af6b8cfbf8e53a4028"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Experts and weights are given: topk_ids holds (expert << 16) | bits of the
# weight as bfloat16; the weights scale the experts' outputs. Experts are numbered as in
# the model; those that are not here add nothing.
# quantization:float4_e2m1fn_mxfp4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_routed_moe, gpu:sm100,
# routing:pre-computed
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_routed_moe_shard():
    import torch


    @torch.no_grad()
    def run(
        topk_ids: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
        local_expert_offset: int,
    ) -> torch.Tensor:
        # The upper 16 bits are the expert, the lower ones the bits of a bfloat16 weight.
        experts = topk_ids >> 16
        weights = (topk_ids & 0xFFFF).to(torch.int16).view(torch.bfloat16).float()
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in range(len(gemm1_weights)):
            number = expert + local_expert_offset
            tokens, slots = (experts == number).nonzero(as_tuple=True)
            if len(tokens) == 0:
                continue
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TrtllmFp4BlockScaleRoutedMoeShardBase(MoeTests):
    reference = staticmethod(reference_trtllm_fp4_block_scale_routed_moe_shard)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_ROUTED_MOE_SHARD
    constants = ("top_k", "n_group", "topk_group")
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe

# model:qwen3-next-80b-a3b, ep:4
class TestTrtllmFp4BlockScaleRoutedMoeShardTopk10E128H2048I512(
    TrtllmFp4BlockScaleRoutedMoeShardBase
):
    name = "trtllm_fp4_block_scale_routed_moe_shard_topk10_e128_h2048_i512"
    axes = {
        "num_local_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 512,
        "gemm1_out_size": 1024,
    }
    TOP_K = 10  # "topk10" in the name
    sha256 = "fe2dfa320fd5c827266e0a204e843eb66e487660ad4e7be418c29e48238220bd"

# model:qwen3-235b-a22b, ep:2
class TestTrtllmFp4BlockScaleRoutedMoeShardTopk8E64H4096I1536(
    TrtllmFp4BlockScaleRoutedMoeShardBase
):
    name = "trtllm_fp4_block_scale_routed_moe_shard_topk8_e64_h4096_i1536"
    axes = {
        "num_local_experts": 64,
        "hidden_size": 4096,
        "intermediate_size": 1536,
        "gemm1_out_size": 3072,
    }
    TOP_K = 8  # "topk8" in the name
    sha256 = "71d6bda32c19c5b24ad9c204d7cd1e5c9d53757a0d71c44002a3adc3b0c29400"


# Mixture of experts: weights in float32 that were fp4, as they are after dequantising:
# no packed codes, no scales and no quantised activations are part of it; an expert
# gives down(silu(gate) * up), with up and gate the halves of the first product in this
# order. Experts and weights are given: topk_ids holds (expert << 16) | bits of the
# weight as bfloat16; the weights scale the experts' outputs.
# quantization:float4_e2m1fn_mxfp4,
# fi_api:flashinfer.fused_moe.trtllm_fp4_block_scale_routed_moe, gpu:sm100,
# routing:pre-computed
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp4_block_scale_routed_moe():
    import torch


    @torch.no_grad()
    def run(
        topk_ids: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        gemm2_weights: torch.Tensor,
    ) -> torch.Tensor:
        # The upper 16 bits are the expert, the lower ones the bits of a bfloat16 weight.
        experts = topk_ids >> 16
        weights = (topk_ids & 0xFFFF).to(torch.int16).view(torch.bfloat16).float()
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens, slots = (experts == expert).nonzero(as_tuple=True)
            up, gate = (states[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].T
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TrtllmFp4BlockScaleRoutedMoeBase(MoeTests):
    reference = staticmethod(reference_trtllm_fp4_block_scale_routed_moe)
    interface = INTERFACE_TRTLLM_FP4_BLOCK_SCALE_ROUTED_MOE
    constants = ("top_k", "n_group", "topk_group")
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe

# model:llama-4-maverick, ep:1
class TestTrtllmFp4BlockScaleRoutedMoeTopk1E128H5120I8192(
    TrtllmFp4BlockScaleRoutedMoeBase
):
    name = "trtllm_fp4_block_scale_routed_moe_topk1_e128_h5120_i8192"
    axes = {
        "num_experts": 128,
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "gemm1_out_size": 16384,
    }
    TOP_K = 1  # "topk1" in the name
    sha256 = "95ad6da2a5f2f1a97ac85413c7b8c919ad179656257201d23e4b7b65b82e5f1c"

# model:llama-4-scout, ep:1, tp:8
class TestTrtllmFp4BlockScaleRoutedMoeTopk1E16H5120I8192(
    TrtllmFp4BlockScaleRoutedMoeBase
):
    name = "trtllm_fp4_block_scale_routed_moe_topk1_e16_h5120_i8192"
    axes = {
        "num_experts": 16,
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "gemm1_out_size": 16384,
    }
    TOP_K = 1  # "topk1" in the name
    sha256 = "711b3ace9458cb1952b2734a1b5d987d5d6363df4792ef11971d07a1fa7d4b6a"

# model:qwen3-30b-a3b, ep:1, tp:1
class TestTrtllmFp4BlockScaleRoutedMoeTopk8E128H2048I768(
    TrtllmFp4BlockScaleRoutedMoeBase
):
    name = "trtllm_fp4_block_scale_routed_moe_topk8_e128_h2048_i768"
    axes = {
        "num_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 768,
        "gemm1_out_size": 1536,
    }
    TOP_K = 8  # "topk8" in the name
    sha256 = "dfd8c76f1c39180c11759528097c56ec210ec73e1223ffe8c8d9493b1b41798b"

# It is a layer of 128 experts: a device that holds 128 of the model's 512 chooses among
# all of them.
# model:qwen3-next-80b-a3b, ep:4, ep:1
class TestTrtllmFp4BlockScaleRoutedMoeTopk10E128H2048I512(
    TrtllmFp4BlockScaleRoutedMoeBase
):
    name = "trtllm_fp4_block_scale_routed_moe_topk10_e128_h2048_i512"
    axes = {
        "num_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 512,
        "gemm1_out_size": 1024,
    }
    TOP_K = 10  # "topk10" in the name
    sha256 = "7480fa014b54b068cb85475127fe920b74bd7d2876dbcc81c940f853822a2616"

# It is a layer of 64 experts: a device that holds 64 of the model's 128 chooses among
# all of them.
# model:qwen3-235b-a22b, ep:2, tp:8
class TestTrtllmFp4BlockScaleRoutedMoeTopk8E64H4096I1536(
    TrtllmFp4BlockScaleRoutedMoeBase
):
    name = "trtllm_fp4_block_scale_routed_moe_topk8_e64_h4096_i1536"
    axes = {
        "num_experts": 64,
        "hidden_size": 4096,
        "intermediate_size": 1536,
        "gemm1_out_size": 3072,
    }
    TOP_K = 8  # "topk8" in the name
    sha256 = "fdd5fc027c006d295e4286b6d1b4fd8439e740969a426deaf53cba045ed7903a"


# Mixture of experts: float8 weights with one scale for each expert; an expert gives
# down(silu(gate) * up), with up and gate the halves of the first product in this order.
# Tokens choose the expert of the largest logit, whose sigmoid scales what goes into the
# expert. routing_bias is ignored, as the kernel and Llama 4 have none.
# quantization:float8_e4m3fn,
# fi_api:flashinfer.fused_moe.trtllm_fp8_per_tensor_scale_moe, ep:1
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp8_per_tensor_scale_moe_topk1_h5120_i8192():
    import torch


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        output1_scales_scalar: torch.Tensor,
        output1_scales_gate_scalar: torch.Tensor,
        gemm2_weights: torch.Tensor,
        output2_scales_scalar: torch.Tensor,
        routing_bias: torch.Tensor,
    ) -> torch.Tensor:
        # The largest logit chooses; the bias, which the interface carries, does not count.
        logits, experts = routing_logits.float().max(dim=1)
        # The score scales what goes into the expert, ahead of silu.
        states = hidden_states.float() * torch.sigmoid(logits).unsqueeze(1)

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens = (experts == expert).nonzero().squeeze(1)
            up, gate = (states[tokens] @ gemm1_weights[expert].float().T).chunk(2, dim=1)
            up = up * output1_scales_scalar[expert]
            gate = gate * output1_scales_gate_scalar[expert]
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].float().T
            output[tokens] = expert_output * output2_scales_scalar[expert]
        return output.to(torch.bfloat16)

    return run


class TrtllmFp8PerTensorScaleMoeTopk1H5120I8192Base(MoeTests):
    reference = staticmethod(reference_trtllm_fp8_per_tensor_scale_moe_topk1_h5120_i8192)
    interface = INTERFACE_TRTLLM_FP8_PER_TENSOR_SCALE_MOE_TOPK1_H5120_I8192
    axes = {"hidden_size": 5120, "intermediate_size": 8192, "gemm1_out_size": 16384}
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 1  # "topk1" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe

# model:llama-4-maverick
class TestTrtllmFp8PerTensorScaleMoeTopk1E128H5120I8192(
    TrtllmFp8PerTensorScaleMoeTopk1H5120I8192Base
):
    name = "trtllm_fp8_per_tensor_scale_moe_topk1_e128_h5120_i8192"
    axes = {"num_experts": 128}
    sha256 = "b728f690819fc31c3e19675bfcb69235388ef7c3bf5c8a7c9ed6049d871fa566"

# model:llama-4-scout, tp:8
class TestTrtllmFp8PerTensorScaleMoeTopk1E16H5120I8192(
    TrtllmFp8PerTensorScaleMoeTopk1H5120I8192Base
):
    name = "trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192"
    axes = {"num_experts": 16}
    sha256 = "86e353b1f523c2fa2953a83df137555013e98c60a542c5d9bbea1fbdf43ebf4b"


# Mixture of experts: float8 weights with one scale for each expert; an expert gives
# down(silu(gate) * up), with up and gate the halves of the first product in this order.
# Tokens choose the 8 largest logits; the weights are a softmax over these.
# model:qwen3-30b-a3b, quantization:float8_e4m3fn,
# fi_api:flashinfer.fused_moe.trtllm_fp8_per_tensor_scale_moe, ep:1, tp:1
# Tolerances: those of reference_moe_fp8_block_scale_ds_routing_ng1_kg1.
def reference_trtllm_fp8_per_tensor_scale_moe_topk8_h2048_i768():
    import torch

    TOP_K = 8


    @torch.no_grad()
    def run(
        routing_logits: torch.Tensor,
        hidden_states: torch.Tensor,
        gemm1_weights: torch.Tensor,
        output1_scales_scalar: torch.Tensor,
        output1_scales_gate_scalar: torch.Tensor,
        gemm2_weights: torch.Tensor,
        output2_scales_scalar: torch.Tensor,
    ) -> torch.Tensor:
        logits, experts = routing_logits.float().topk(TOP_K, dim=1)
        weights = torch.softmax(logits, dim=1)
        states = hidden_states.float()

        output = torch.zeros_like(states)
        for expert in sorted(set(experts.flatten().tolist())):
            tokens, slots = (experts == expert).nonzero(as_tuple=True)
            up, gate = (states[tokens] @ gemm1_weights[expert].float().T).chunk(2, dim=1)
            up = up * output1_scales_scalar[expert]
            gate = gate * output1_scales_gate_scalar[expert]
            inner = torch.nn.functional.silu(gate) * up
            expert_output = inner @ gemm2_weights[expert].float().T
            expert_output = expert_output * output2_scales_scalar[expert]
            output[tokens] += expert_output * weights[tokens, slots].unsqueeze(1)
        return output.to(torch.bfloat16)

    return run


class TestTrtllmFp8PerTensorScaleMoeTopk8E128H2048I768(MoeTests):
    name = "trtllm_fp8_per_tensor_scale_moe_topk8_e128_h2048_i768"
    reference = staticmethod(reference_trtllm_fp8_per_tensor_scale_moe_topk8_h2048_i768)
    interface = INTERFACE_TRTLLM_FP8_PER_TENSOR_SCALE_MOE_TOPK8_H2048_I768
    axes = {
        "num_experts": 128,
        "hidden_size": 2048,
        "intermediate_size": 768,
        "gemm1_out_size": 1536,
    }
    constants = ("top_k", "n_group", "topk_group")
    TOP_K = 8  # "topk8" in the name
    N_GROUP = 1  # the convention of moe
    TOPK_GROUP = 1  # the convention of moe
    sha256 = "0999968d007fb14efdbed17645e89fee7b4f48e97dfdbd579956dbbecc3afbc4"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
