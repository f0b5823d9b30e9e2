"""quantization: codes with a scale for each block of a row, and fp4 back to values.

Scales are float32, powers of two (mx), or float8 beside a factor of the whole tensor
(nvfp4). FlashInfer's kernels for mxfp8, mxfp4 and nvfp4 have a body for compute
capability 10 alone; before it they return what their buffers held.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.quantization.formats import (
    E2M1,
    e2m1_codes,
    format_of,
    packed,
    unpacked,
)
from generator.ops.op_types.quantization.relations import quantization_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_TIES = (
    "the oracle rounds what IEEE 754 says of the quotients; on a GPU the scale is a product "
    "with the inverse of 448, and quotients at a tie go to either neighbour, a step of 2^-3 "
    "of a value or of 2^-9: of a row of 1,536 that was 9e-5 of the power at most in 3,000 "
    "draws"
)
_ONE_STEP = (
    "kernels multiply by a reciprocal, rounded once more: quotients at a tie go to "
    "either neighbour, a step of 2^-3 of a value; few are that near to a tie"
)
_RECIPROCAL = (
    "kernels multiply by an approximate reciprocal of 6 or 448 and of the scale: "
    "blocks whose quotient is nearly a power of two, or a tie, may get the next scale"
)
_EXACT = "products and quotients of these few bits are exact in float32 and in float64"
_BYTES = (
    "; as int8 the bytes 127 and 128 are 127 and -128, so that neither cosine nor norm "
    "says anything"
)
_NEARLY_ALL = Tolerance(0.0, 0.0, hit_ratio=0.97)
_NEARLY = Tolerance(0.0, 0.0, hit_ratio=0.97, cosine=0.99, norm_ratio=(0.97, 1.03))
TOLERANCES = (
    Override("x_q", Tolerance(0.1251, 2e-3, 1.5e-4), _TIES, source="oracle"),
    Override("x_q", Tolerance(0.1251, 2e-3, 1e-4), _ONE_STEP),
    Override("x_s", Tolerance(2e-7, 0.0, 1e-13), "one division in float32: 2^-24"),
    *(
        Override(output, bound, _RECIPROCAL + more, source=source)
        for output, bound, more in (
            ("quantized", _NEARLY, ""),
            ("scales", _NEARLY_ALL, _BYTES),
        )
        for source in ("flashinfer", "sglang/triton")
    ),
    Override("quantized", EXACT, _EXACT),
    Override("scales", EXACT, _EXACT),
    Override(
        "output",
        Tolerance(4e-3, 1e-30, 1.6e-5),
        "products of float32, rounded to bfloat16: 2^-8 of a value at most",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, blocks of zeros, ties, and magnitudes at a scale's edge."""
    batches = [
        Case("batch", "medium", {"M": 67}),
        past_limits("M", 8_219),
        Case("long-batch", "large", {"M": 2048}),
    ]
    cases = [Case("one-row", "small", {"M": 1}), Case("odd-rows", "small", {"M": 5})]
    if format_of(definition).is_global:
        # codes are of the product; dequantised values are as far from the usual
        x = next(iter(definition.interface.inputs))
        batches += far_apart(
            cases[1], "global_scale", against=(x,) * (x != "quantized")
        )
    if format_of(definition).dequantises:
        return [
            *cases,
            Case("every-code", "small", {"M": 2}, {"rows": "every"}),
            *batches,
        ]
    kinds = {"zero-blocks": "zeros", "ties": "ties", "edges": "edges", "wide": "wide"}
    cases += [Case(n, "small", {"M": 3}, {"rows": r}) for n, r in kinds.items()]
    return [*cases, *batches]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 rows [M, K] of the case's kind, or codes and scales.

    A global scale has eight significant bits, so that its products are exact.
    """
    inputs = format_of(definition)
    rows, length = case.axes["M"], definition.axes["K"]
    if inputs.dequantises:
        return _codes(definition, case, stream)
    blocks = definition.axes["num_blocks"]
    x = stream.child("x").values((rows * blocks, inputs.block))
    which = case.params.get("rows")
    # of each block: a number that is another one for neighbours
    each = torch.tensor(stream.child("blocks").integers(-4, 5, len(x))).float()
    if which == "zeros":
        x[::3] = 0.0
    elif which == "ties":
        top = 24 if inputs.is_fp4 else 31
        drawn = stream.child("ties").integers(-top, top + 1, x.numel())
        x = torch.tensor(drawn).float().view(x.shape) / (4 if inputs.is_fp4 else 1)
        x[:, 0] = inputs.maximum
    elif which == "edges":
        # the largest of every other block is the first bfloat16 above the edge
        edge = torch.full((len(x),), inputs.maximum, dtype=torch.bfloat16)
        edge[1::2] = torch.nextafter(edge[1::2], torch.tensor(1e4).bfloat16())
        x = (x / 3.0).clamp(-0.9, 0.9) * inputs.maximum
        x[:, 0] = edge.float()
        x *= torch.exp2(each)[:, None]
    elif which == "wide":
        # a float8 scale that is zero leaves nothing to be divided by
        x *= torch.exp2(each if inputs.is_global else 5.0 * each)[:, None]
    else:
        x *= 1.0 + each.abs()[:, None]
    values = x.view(rows, length).to(torch.bfloat16)
    name = next(iter(definition.interface.inputs))
    if not inputs.is_global:
        return {name: values}
    factor = 448.0 * 6.0 / float(values.abs().max())
    factor = 1.0 if which == "ties" else factor * (4.0 if which == "edges" else 1.0)
    rounded = float(torch.tensor(factor).bfloat16())
    return {name: values, "global_scale": rounded}


def _codes(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bytes of two codes each, and scales of every size that codes can have."""
    rows, axes = case.axes["M"], definition.axes
    count = rows * axes["K_packed"]
    drawn = stream.child("codes").integers(0, 256, count)
    if case.params.get("rows") == "every":
        drawn = [place % 256 for place in range(count)]
    quantized = torch.tensor(drawn, dtype=torch.uint8).view(rows, -1).view(torch.int8)
    is_mx = format_of(definition).is_mx
    low, high = (97, 157) if is_mx else (0, 127)
    sizes = stream.child("scales").integers(low, high, rows * axes["num_blocks"])
    scales = torch.tensor(sizes, dtype=torch.uint8).view(rows, -1)
    if is_mx:
        return {"quantized": quantized, "scales": scales.view(torch.int8)}
    wide = scales.view(torch.float8_e4m3fn)
    return {"quantized": quantized, "scales": wide, "global_scale": 0.0123}


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return codes and scales, or values, computed in float64."""
    form = format_of(definition)
    if form.dequantises:
        return _values(definition, inputs)
    x = next(iter(inputs.values())).double()
    blocks = x.view(len(x), -1, form.block)
    if form.is_global:
        blocks = blocks * float(inputs["global_scale"])
    quotient = blocks.abs().amax(dim=2) / form.maximum
    if form.is_global:
        scales = quotient.clamp(max=448.0).float().to(torch.float8_e4m3fn)
        divisor = scales.double()
    elif form.is_mx:
        powers = torch.arange(-127, 128, dtype=torch.float64, device=x.device)
        # the first power of two that is not below the quotient
        places = torch.searchsorted(torch.exp2(powers), quotient)
        scales = places.to(torch.uint8).view(torch.int8)
        divisor = torch.exp2(powers)[places]
    else:
        scales = (quotient * form.maximum).clamp(min=1e-10) / form.maximum
        divisor = scales.float().double()
    divisor = divisor.masked_fill(divisor == 0, torch.inf)
    scaled = (blocks / divisor[:, :, None]).view(x.shape)
    if form.is_fp4:
        return packed(e2m1_codes(scaled)), scales
    if form.is_mx:
        return scaled.float().to(torch.float8_e4m3fn), scales
    # the float32 quotient, to the bit: 53 bits are more than twice 24 and two
    return e4m3_values(scaled.float().double()), scales


def _values(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    form, scales = format_of(definition), inputs["scales"]
    factors = scales.double()
    if form.is_mx:
        factors = torch.exp2(scales.view(torch.uint8).double() - 127.0)
    factors = factors * float(inputs.get("global_scale", 1.0))
    wide: torch.Tensor = factors.repeat_interleave(form.block, dim=1)
    return unpacked(inputs["quantized"]) * wide


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernel of the kind; mxfp4 is dequantised on the host alone."""
    form = format_of(definition)
    if form.dequantises:
        return (Backend("", min_sm=80),) if form.is_global else ()
    if form.is_mx or form.is_global:
        return (Backend("", min_sm=100),)
    return (Backend("cutile", min_sm=90, needs=("cuda.tile",)),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's kernel with scales row by row; return the outputs."""
    from flashinfer import quantization

    form, tensors = format_of(definition), list(inputs.values())
    if backend == "cutile":
        return quantization.per_token_group_quant_8bit(*tensors, form.block)
    factor = None
    if form.is_global:
        factor = torch.tensor(
            [tensors[-1]], dtype=torch.float32, device=tensors[0].device
        )
    if form.dequantises:
        scales = inputs["scales"].view(torch.uint8)
        codes = tensors[0].view(torch.uint8)
        return quantization.nvfp4_kv_dequantize(codes, scales, factor)
    if form.is_fp4:
        codes, scales = quantization.fp4_quantize(
            tensors[0], factor, form.block, form.is_mx, is_sf_swizzled_layout=False
        )
    else:
        codes, scales = quantization.mxfp8_quantize(
            tensors[0], is_sf_swizzled_layout=False
        )
    kind = torch.int8 if form.is_mx else torch.float8_e4m3fn
    scales = scales.view(kind).view(len(codes), -1)
    return codes.view(torch.int8) if form.is_fp4 else codes, scales


_ZEROS = "outputs rewritten: the scale of a block of zeros is set to 0"
_ENCODED = (
    "outputs rewritten: of the kernel are scales and rounding, the adapter divides by "
    "them and makes codes and bytes"
)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return Triton kernels for float8, PyTorch code for mxfp4, none for nvfp4."""
    form = format_of(definition)
    if form.is_global:
        return ()
    if form.is_fp4:
        rewrites = "" if form.dequantises else _ENCODED
        return (Backend("native", needs_cuda=False, rewrites=rewrites),)
    return (Backend("triton", min_sm=89, rewrites=_ZEROS if form.is_mx else ""),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call SGLang's function; return the outputs.

    It has a least magnitude of a block, so that a block of zeros has another scale,
    which says nothing: such a scale's byte is set to 0.
    """
    form = format_of(definition)
    if form.dequantises:
        from sglang.srt.layers.quantization.fp8_utils import dequant_mxfp4

        scales = inputs["scales"].view(torch.uint8)[None]
        blocks = inputs["quantized"].view(torch.uint8).view(*scales.shape, -1)
        return dequant_mxfp4(blocks, scales, torch.bfloat16)[0]
    (x,) = inputs.values()
    zeros = x.view(len(x), -1, form.block).abs().amax(dim=2) == 0
    if not form.is_mx:
        from sglang.kernels.ops.quantization.fp8_kernel import (
            _per_token_group_quant_8bit_raw,
        )

        return _per_token_group_quant_8bit_raw(x, form.block)
    if not form.is_fp4:
        from sglang.kernels.ops.quantization.mxfp8_quant import to_mxfp8

        codes, scales = to_mxfp8(x)
        return codes, scales.view(torch.uint8).masked_fill(zeros, 0).view(torch.int8)
    from sglang.kernels.ops.quantization import fp4_fake_quant as fp4

    factors = fp4.block_scale(x, form.block, fp4.FP4_MAX, fp4.FP4_AMAX_FLOOR)
    blocks = x.float().view(len(x), -1, form.block) / factors[:, :, None]
    values = fp4.round_fp4(blocks.clamp(-fp4.FP4_MAX, fp4.FP4_MAX)).flatten(1)
    table = torch.tensor(E2M1, device=x.device)
    codes = torch.searchsorted(table, values.abs()) + 8 * torch.signbit(x)
    bytes_ = (codes[:, 0::2] + 16 * codes[:, 1::2]).to(torch.uint8)
    exponents = torch.log2(factors).round() + 127
    scales = exponents.to(torch.uint8).masked_fill(zeros, 0)
    return bytes_.view(torch.int8), scales.view(torch.int8)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=quantization_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
