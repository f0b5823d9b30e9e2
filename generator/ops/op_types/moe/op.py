"""moe: the weighted sum of a token's experts, each down(silu(gate(x)) · up(x)).

Routing is DeepSeek's grouped top k, softmax over the top k, Llama 4's single expert, or
given as an input. Weights are float8 with a scale per block of 128·128, fp4 in blocks of
32, or float8 with one scale per expert.
"""

from __future__ import annotations

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
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
