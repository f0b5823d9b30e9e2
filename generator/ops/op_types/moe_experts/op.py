"""moe_experts: the sum of each token's experts, whose numbers and weights are given.

An expert is down(silu(gate) · up), of gpt-oss down(gate · sigmoid(1.702 · gate) · (up +
1)) with gate at most 7 and up in ±7. Llama 4 multiplies an expert's input by the weight.
Weights are bfloat16, mxfp4, or float8 with a scale for each block of 128 · 128.
"""

from __future__ import annotations

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
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
