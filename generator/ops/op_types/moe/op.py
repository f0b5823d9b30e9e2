"""moe: the weighted sum of a token's experts, each down(silu(gate(x)) · up(x)).

Routing is DeepSeek's grouped top k, softmax over the top k, Llama 4's single expert, or
given as an input. Weights are float8 with a scale per block of 128·128, fp4 in blocks of
32, or float8 with one scale per expert.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from generator.ops.op_types.moe import flashinfer as moe_flashinfer
from generator.ops.op_types.moe import routing as moe_routing
from generator.ops.op_types.moe import sglang as moe_sglang
from generator.ops.op_types.moe.inputs import (
    remote_experts,
    routing_inputs,
    token_inputs,
    weight_inputs,
)
from generator.ops.op_types.moe.relations import moe_relations
from generator.ops.op_types.moe.weights import BLOCK
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.moved import with_factors
from kernel_judge.inputs.repeated import lengthened
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
_BELOW = "scales-below-midpoints"
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
        Override("output", bound, reason, source=source, case=_BELOW)
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
# size of a case → the most elements of the weights of its experts; 50 million take a CPU
# about half a second
_ELEMENTS = {"small": 90e6, "medium": 140e6, "large": 2500e6}


def cases(definition: Definition) -> list[Case]:
    """Return the cases: few tokens and few experts, so that a CPU can run them."""
    found = _few(definition)
    (batch,) = (case for case in found if case.name == "batch")
    return [*found, lengthened(batch, "seq_len", 8_219), *_far_apart(definition, found)]


def _far_apart(definition: Definition, found: list[Case]) -> list[Case]:
    """Return the cases whose scales are far from the usual, and outputs about 1.

    Where gate and up are large silu hardly bends, and where they are small it halves.
    """
    few = replace(found[0], axes={"seq_len": 3})
    exponents: list[dict[str, float]] = []
    if _weights_of(definition) == "fp8-block":
        scales = ("hidden_states_scale", "gemm1_weights_scale", "gemm2_weights_scale")
        # what a token's weights are multiplied by, where a factor is an input
        factor = 9.0 * ("routed_scaling_factor" in definition.interface.inputs)
        exponents = [
            dict(zip(scales, (14.0, -9.0, -9.0 - factor), strict=True))
            | {"routed_scaling_factor": factor},
            dict(zip(scales, (-14.0, 9.0, 10.0 + factor), strict=True))
            | {"routed_scaling_factor": -factor},
        ]
    elif _weights_of(definition) == "fp8-per-tensor":
        scales = (
            "output1_scales_scalar",
            "output1_scales_gate_scalar",
            "output2_scales_scalar",
        )
        exponents = [
            dict(zip(scales, powers, strict=True))
            for powers in ((9.0, 9.0, -18.0), (-9.0, -9.0, 19.0))
        ]
    names = ("factors-up", "factors-down")
    return [
        with_factors(few, name, **powers)
        for name, powers in zip(names, exponents, strict=False)
    ]


def _few(definition: Definition) -> list[Case]:
    method = moe_routing.routing_of(definition)
    experts, local = moe_routing.experts_of(definition)
    far = experts - local
    elsewhere = [_case(definition, "experts-elsewhere", "small", 2, away=True)]
    if method == moe_routing.DEEPSEEK:
        found = [
            _case(definition, "one-token", "small", 1),
            _case(definition, "last-experts", "small", 5, offset=far),
            _case(
                definition,
                "batch",
                "medium",
                24,
                offset=far // 2 // local * local,
                unusual=True,
                rivals=True,
            ),
            _case(definition, "large-batch", "large", 128, offset=far, unusual=True),
            _case(definition, "end-experts", "small", 2, offset=far, ends=True),
        ]
        return found + elsewhere * (far > 0) + _rounded_scales(definition, far)
    alone = method == moe_routing.LLAMA4
    middle = far // 2 // local * local
    found = [
        _case(definition, "one-token", "small", 1),
        _case(definition, "batch", "medium", 12, offset=far, uneven=not alone),
        _case(definition, "large-batch", "large", 128, offset=middle, uneven=not alone),
        _case(definition, "end-experts", "small", 2, offset=far, ends=True),
    ]
    found += _rounded_scales(definition, far)
    if far:
        return found + elsewhere
    if alone:
        # scores of 1 in float32, whose logits still differ
        found.append(_case(definition, "saturated", "small", 3, saturated=True))
    return found


def _rounded_scales(definition: Definition, offset: int) -> list[Case]:
    """Return the case that tells scales in bfloat16, if the definition has scales."""
    if _weights_of(definition) == "fp4":
        return []
    return [_case(definition, _BELOW, "medium", 24, offset=offset, below=True)]


def _case(
    definition: Definition,
    name: str,
    size: str,
    tokens: int,
    offset: int = 0,
    saturated: bool = False,
    away: bool = False,
    ends: bool = False,
    uneven: bool = False,
    unusual: bool = False,
    rivals: bool = False,
    below: bool = False,
) -> Case:
    """Return a case whose weights have at most `_ELEMENTS` elements in use.

    `offset` is the first local expert; with `away` no local expert is selected. With
    `saturated` the largest logits are about 24. With `ends` the first and the last local expert are
    selected. With `uneven` no two tokens have the same weights. With `rivals` bits of
    logits decide that bfloat16 does not have. With `unusual` the
    scaling factor is not the model's, and the bias makes all scores negative. float8
    scales have 4 significant bits in small cases, which are recorded, and 24 in others;
    with `below` they are below midpoints of bfloat16.
    """
    experts, local = moe_routing.experts_of(definition)
    top_k = definition.constants["top_k"]
    most = int(_ELEMENTS[size] // _expert_elements(definition))
    # with only top_k experts nothing would be left to select
    fewest = 0 if experts > local else top_k + 3
    here = 0 if away else min(local, max(most, fewest, 1))
    remote = remote_experts(definition, here)
    params = {"local": here, "remote": remote, "offset": offset}
    # whether the interface has a bias that nothing adds: recordings name it
    params["bias"] = moe_routing.routing_of(definition) == moe_routing.LLAMA4
    if saturated:
        params["top"] = 24.0
    if ends:
        params |= {"local": min(local, max(here, 2)), "ends": True}
    if uneven:
        params["uneven"] = True
    if rivals:
        params["rivals"] = True
    if below:
        # with DeepSeek's 2.5 outputs would be up to 15, more than bounds assume
        params |= {"below": True, "factor": 1.0}
    elif size != "small" and _weights_of(definition) != "fp4":
        params["all_bits"] = True
    if unusual:
        params |= {"factor": 1.5, "bias_mean": -1.5}
    return Case(name, size, {"seq_len": tokens}, params)


def _expert_elements(definition: Definition) -> int:
    axes = definition.axes
    return 3 * axes["hidden_size"] * axes["intermediate_size"]


def peak_bytes(definition: Definition, case: Case) -> int:
    """Return an upper bound of the bytes that run() or a kernel needs for a case.

    Counts the weights once, two float32 copies of the selected experts, and a float64
    copy of one expert.
    """
    first = 2 * definition.axes["intermediate_size"] * definition.axes["hidden_size"]
    local = moe_routing.experts_of(definition)[1]
    specs = definition.interface.input_specs
    width = 4 if specs["gemm1_weights"].dtype == "float32" else 1
    weights = width * local * _expert_elements(definition)
    rest = tensor_bytes(definition, case) - weights
    pairs: int = case.axes["seq_len"] * definition.constants["top_k"]
    local_experts: int = case.params["local"]
    chosen = min(local_experts, pairs) * _expert_elements(definition)
    return weights + COPIES * rest + 8 * chosen + 32 * first


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the interface's inputs; outputs are about 1.

    See `routing_inputs`, `token_inputs` and `weight_inputs` for shapes and dtypes. In
    small cases bfloat16 holds all dequantised values. The weights are lazy (`Tiled`).
    """
    made = {
        **routing_inputs(definition, case, stream),
        **token_inputs(definition, case, stream),
        **weight_inputs(definition, case, stream),
        "local_expert_offset": case.params["offset"],
        "routed_scaling_factor": case.params.get("factor", 2.5),
    }
    return {name: made[name] for name in definition.interface.inputs}


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
    for expert in sorted(e for e in tokens if 0 <= e < count):
        rows = [token for token, _ in tokens[expert]]
        weights = states.new_tensor([[weight] for _, weight in tokens[expert]])
        x = states[rows]
        if "hidden_states_scale" in inputs:
            scale = inputs["hidden_states_scale"][:, rows].double()
            x = x * scale.repeat_interleave(BLOCK, dim=0).T
        x = x * weights if weighs_input else x
        y = _expert(inputs, expert, x)
        output[rows] += y if weighs_input else y * weights
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
    total = x.new_zeros(len(x), len(weights))
    for block, scale in enumerate(scales.double().T):
        columns = slice(block * BLOCK, (block + 1) * BLOCK)
        part = x[:, columns] @ weights[:, columns].double().T
        total += part * scale.repeat_interleave(BLOCK)
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
    weights = _weights_of(definition)
    rewrites = _TO_MXFP4 if weights == "fp4" else ""
    if rewrites and moe_routing.routing_of(definition) == moe_routing.LLAMA4:
        rewrites += ", and hidden_states are multiplied by the token's score"
    return (Backend(f"trtllm-{weights}", min_sm=100, rewrites=rewrites),)


def _weights_of(definition: Definition) -> str:
    inputs = definition.interface.inputs
    if "gemm1_weights_scale" in inputs:
        return "fp8-block"
    return "fp8-per-tensor" if "output1_scales_scalar" in inputs else "fp4"


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
    if _weights_of(definition) == "fp8-block":
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
