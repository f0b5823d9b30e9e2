"""Reference tests of op_type quantization.

Rendered: don't edit. `gen-tests --op-type quantization` renders this file anew.

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
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.quantization.formats import (
    E2M1,
    e2m1_codes,
    format_of,
    packed,
    unpacked,
)
from generator.ops.op_types.quantization.relations import quantization_relations
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
# oracle: generator.ops.float8, generator.ops.op_types.quantization.formats
# relations: generator.ops.op_types.quantization.relations

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


# ---- the interfaces

INTERFACE_MXFP4_DEQUANTIZE = Interface(
    inputs={"quantized": "int8[M, K_packed]", "scales": "int8[M, num_blocks]"},
    outputs={"output": "bfloat16[M, K]"},
    constraints=("K_packed == K // 2", "num_blocks == K // 32"),
)
INTERFACE_MXFP4_QUANTIZE = Interface(
    inputs={"input": "bfloat16[M, K]"},
    outputs={"quantized": "int8[M, K_packed]", "scales": "int8[M, num_blocks]"},
    constraints=("K_packed == K // 2", "num_blocks == K // 32"),
)
INTERFACE_MXFP8_QUANTIZE = Interface(
    inputs={"input": "bfloat16[M, K]"},
    outputs={"quantized": "float8_e4m3fn[M, K]", "scales": "int8[M, num_blocks]"},
    constraints=("num_blocks == K // 32",),
)
INTERFACE_NVFP4_DEQUANTIZE = Interface(
    inputs={
        "quantized": "int8[M, K_packed]",
        "scales": "float8_e4m3fn[M, num_blocks]",
        "global_scale": "float32",
    },
    outputs={"output": "bfloat16[M, K]"},
    constraints=("K_packed == K // 2", "num_blocks == K // 16"),
)
INTERFACE_NVFP4_QUANTIZE = Interface(
    inputs={"input": "bfloat16[M, K]", "global_scale": "float32"},
    outputs={
        "quantized": "int8[M, K_packed]",
        "scales": "float8_e4m3fn[M, num_blocks]",
    },
    constraints=("K_packed == K // 2", "num_blocks == K // 16"),
)
INTERFACE_PER_TOKEN_GROUP_QUANT_FP8 = Interface(
    inputs={"x": "bfloat16[M, K]"},
    outputs={"x_q": "float8_e4m3fn[M, K]", "x_s": "float32[M, num_blocks]"},
    constraints=("num_blocks == K // 128",),
)

# ---- the tests


class QuantizationTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of quantization share."""

    op_type = "quantization"
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
# (1) products of float32, rounded to bfloat16.
# (2) kernels multiply by an approximate reciprocal of 6 or 448 and of the scale.
# (3) 0.97 of the elements are within atol and rtol, the cosine is 0.99 or more, the
# norm is 0.97 to 1.03 times the expected one.
# (4) products and quotients of these few bits are exact in float32 and in float64.
# (5) 0.97 of the elements are within atol and rtol.
# (6) the oracle rounds what IEEE 754 says of the quotients.
# (7) kernels multiply by a reciprocal, rounded once more.
# (8) one division in float32.


# Values of mxfp4: the e2m1 code, the first of two in the lower half of a byte, times
# two to the power of the scale's byte less 127, one for 32 elements.
# model:gpt-oss-20b, model:gpt-oss-120b, quantization:mxfp4
# Tolerances:
#   output  source                      rtol   atol   NMSE     reason
#   output  oracle, flashinfer, sglang  0.004  1e-30  1.6e-05  (1)
def reference_mxfp4_dequantize():
    import torch

    BLOCK = 32
    BIAS = 127
    VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


    @torch.no_grad()
    def run(quantized: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        # The first of two elements is in the lower half of a byte.
        halves = torch.stack((quantized & 15, (quantized >> 4) & 15), dim=2)
        codes = halves.flatten(1).long()
        table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=quantized.device)
        blocks = table[codes].view(len(codes), -1, BLOCK)
        exponent = scales.view(torch.uint8).to(torch.int32) - BIAS
        return torch.ldexp(blocks, exponent[:, :, None]).flatten(1).to(torch.bfloat16)

    return run


class TestMxfp4DequantizeK2880(QuantizationTests):
    name = "mxfp4_dequantize_k2880"
    reference = staticmethod(reference_mxfp4_dequantize)
    interface = INTERFACE_MXFP4_DEQUANTIZE
    axes = {"K": 2880, "K_packed": 1440, "num_blocks": 90}
    sha256 = "91acc04008979e45b76cbbcf846d1047b905cff37856711e67ede5245ee8a300"


# Quantise activations to mxfp4: each 32 elements of a row share a power of two, a sixth
# of their largest magnitude rounded up; its exponent plus 127 is the scale's byte, 0
# for a block of zeros. Codes are e2m1, ties go to even; the first of two is in the
# lower half of a byte. Scales lie row by row. On GPUs before compute capability 10
# FlashInfer's kernel writes nothing to its outputs: there it is no source.
# quantization:mxfp4, gpu:sm100, layout:linear,
# fi_api:flashinfer.quantization.mxfp4_quantize
# Tolerances:
#   output     source                     rtol   atol  NMSE  reason
#   quantized  flashinfer, sglang/triton  0      0           (2) (3)
#   quantized  oracle, sglang             exact              (4)
#   scales     flashinfer, sglang/triton  0      0           (2) (5)
#   scales     oracle, sglang             exact              (4)
def reference_mxfp4_quantize():
    import torch

    BLOCK = 32
    MAX = 6.0
    BIAS = 127


    @torch.no_grad()
    def run(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = input.float().view(len(input), -1, BLOCK)
        largest = blocks.abs().amax(dim=2)
        # frexp gives a mantissa of 0.5 to 1: exactly 0.5 is the power of two below.
        mantissa, exponent = torch.frexp(largest / MAX)
        exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
        # A block of zeros has the smallest scale.
        exponent = torch.where(largest == 0, -BIAS, exponent).clamp(-BIAS, BIAS)
        codes = e2m1(torch.ldexp(blocks, -exponent[:, :, None])).view(input.shape)
        # The first of two elements is in the lower half of a byte.
        quantized = codes[:, 0::2] | (codes[:, 1::2] << 4)
        scales = (exponent + BIAS).to(torch.uint8)
        return quantized.view(torch.int8), scales.view(torch.int8)


    def e2m1(values: torch.Tensor) -> torch.Tensor:
        magnitude = values.abs().clamp(max=MAX)
        # The step is 0.5 below 2, 1 below 4 and 2 above; round() takes ties to even.
        low = (magnitude * 2).round()
        middle = magnitude.round() + 2
        high = (magnitude / 2).round() + 4
        codes = torch.where(magnitude < 2, low, torch.where(magnitude < 4, middle, high))
        return codes.to(torch.uint8) | (torch.signbit(values).to(torch.uint8) << 3)

    return run


class Mxfp4QuantizeBase(QuantizationTests):
    reference = staticmethod(reference_mxfp4_quantize)
    interface = INTERFACE_MXFP4_QUANTIZE

class TestMxfp4QuantizeK2880(Mxfp4QuantizeBase):
    name = "mxfp4_quantize_k2880"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"K": 2880, "K_packed": 1440, "num_blocks": 90}
    sha256 = "972dd636442285b8f37755f392f64d920ea9726c97d1bfca6281423489dece67"

class TestMxfp4QuantizeK4096(Mxfp4QuantizeBase):
    name = "mxfp4_quantize_k4096"  # model:llama-3.1-8b
    axes = {"K": 4096, "K_packed": 2048, "num_blocks": 128}
    sha256 = "e2059fec0e3d77e38ac80f7d93d7f45148bda8772b74b71d4cf6dc1cb43cb5c6"


# Quantise activations to mxfp8: each 32 elements of a row share a power of two, a 448th
# of their largest magnitude rounded up; its exponent plus 127 is the scale's byte, 0
# for a block of zeros. Scales lie row by row. On GPUs before compute capability 10
# FlashInfer's kernel writes nothing to its outputs: there it is no source.
# quantization:mxfp8, gpu:sm100, layout:linear,
# fi_api:flashinfer.quantization.mxfp8_quantize
# Tolerances: those of reference_mxfp4_quantize.
def reference_mxfp8_quantize():
    import torch

    BLOCK = 32
    MAX = 448.0
    BIAS = 127


    @torch.no_grad()
    def run(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = input.float().view(len(input), -1, BLOCK)
        largest = blocks.abs().amax(dim=2)
        # frexp gives a mantissa of 0.5 to 1: exactly 0.5 is the power of two below.
        mantissa, exponent = torch.frexp(largest / MAX)
        exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
        # A block of zeros has the smallest scale.
        exponent = torch.where(largest == 0, -BIAS, exponent).clamp(-BIAS, BIAS)
        codes = torch.ldexp(blocks, -exponent[:, :, None]).clamp(-MAX, MAX)
        quantized = codes.to(torch.float8_e4m3fn).view(input.shape)
        return quantized, (exponent + BIAS).to(torch.uint8).view(torch.int8)

    return run


class Mxfp8QuantizeBase(QuantizationTests):
    reference = staticmethod(reference_mxfp8_quantize)
    interface = INTERFACE_MXFP8_QUANTIZE

class TestMxfp8QuantizeK2880(Mxfp8QuantizeBase):
    name = "mxfp8_quantize_k2880"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"K": 2880, "num_blocks": 90}
    sha256 = "cd56df15a3143af3719b9cc7445265bd9d37b13b6ea83b7582246c25dd7195d2"

class TestMxfp8QuantizeK4096(Mxfp8QuantizeBase):
    name = "mxfp8_quantize_k4096"  # model:llama-3.1-8b
    axes = {"K": 4096, "num_blocks": 128}
    sha256 = "e4927f7bad11b7fa6aeff534d2be79a42c3316562f0415b5ce18348cec6beb73"


# Values of nvfp4: the e2m1 code, the first of two in the lower half of a byte, times
# the scale of its 16 elements, times global_scale, which is the reciprocal of the
# factor that they were quantised with.
# model:deepseek-r1, quantization:nvfp4,
# fi_api:flashinfer.quantization.nvfp4_kv_dequantize
# Tolerances: those of reference_mxfp4_dequantize.
def reference_nvfp4_dequantize():
    import torch

    BLOCK = 16
    VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


    @torch.no_grad()
    def run(
        quantized: torch.Tensor, scales: torch.Tensor, global_scale: float
    ) -> torch.Tensor:
        # The first of two elements is in the lower half of a byte.
        halves = torch.stack((quantized & 15, (quantized >> 4) & 15), dim=2)
        codes = halves.flatten(1).long()
        table = torch.tensor([*VALUES, *(-v for v in VALUES)], device=quantized.device)
        blocks = table[codes].view(len(codes), -1, BLOCK) * scales.float()[:, :, None]
        return (blocks * global_scale).flatten(1).to(torch.bfloat16)

    return run


class TestNvfp4DequantizeK7168(QuantizationTests):
    name = "nvfp4_dequantize_k7168"
    reference = staticmethod(reference_nvfp4_dequantize)
    interface = INTERFACE_NVFP4_DEQUANTIZE
    axes = {"K": 7168, "K_packed": 3584, "num_blocks": 448}
    sha256 = "076447ee688ff4a12d3f5ae1c5840d8f1416ad045a00abfe07e1880394ba8d5c"


# Quantise activations to nvfp4: the scale of each 16 elements of a row is a sixth of
# their largest magnitude times global_scale, as float8_e4m3fn. Codes are e2m1 of the
# elements times global_scale divided by the stored scale, ties go to even; the first of
# two is in the lower half of a byte. Scales lie row by row. On GPUs before compute
# capability 10 FlashInfer's kernel writes nothing to its outputs: there it is no
# source.
# quantization:nvfp4, gpu:sm100, layout:linear,
# fi_api:flashinfer.quantization.nvfp4_quantize
# Tolerances: those of reference_mxfp4_quantize.
def reference_nvfp4_quantize():
    import torch

    BLOCK = 16
    MAX = 6.0
    MAX_SCALE = 448.0


    @torch.no_grad()
    def run(input: torch.Tensor, global_scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = input.float().view(len(input), -1, BLOCK) * global_scale
        largest = blocks.abs().amax(dim=2)
        scales = (largest / MAX).clamp(max=MAX_SCALE).to(torch.float8_e4m3fn)
        # Codes are of the scale as it is stored; where it is zero they are zeros.
        stored = scales.float()[:, :, None]
        scaled = torch.where(stored == 0, torch.zeros_like(blocks), blocks / stored)
        codes = e2m1(scaled).view(input.shape)
        # The first of two elements is in the lower half of a byte.
        quantized = codes[:, 0::2] | (codes[:, 1::2] << 4)
        return quantized.view(torch.int8), scales


    def e2m1(values: torch.Tensor) -> torch.Tensor:
        magnitude = values.abs().clamp(max=MAX)
        # The step is 0.5 below 2, 1 below 4 and 2 above; round() takes ties to even.
        low = (magnitude * 2).round()
        middle = magnitude.round() + 2
        high = (magnitude / 2).round() + 4
        codes = torch.where(magnitude < 2, low, torch.where(magnitude < 4, middle, high))
        return codes.to(torch.uint8) | (torch.signbit(values).to(torch.uint8) << 3)

    return run


class Nvfp4QuantizeBase(QuantizationTests):
    reference = staticmethod(reference_nvfp4_quantize)
    interface = INTERFACE_NVFP4_QUANTIZE

class TestNvfp4QuantizeK4096(Nvfp4QuantizeBase):
    name = "nvfp4_quantize_k4096"  # model:llama-3.1-8b
    axes = {"K": 4096, "K_packed": 2048, "num_blocks": 256}
    sha256 = "c2033fe2c22c258190c070f3f5d8e8401de910878f0722a730619576049c62dc"

class TestNvfp4QuantizeK7168(Nvfp4QuantizeBase):
    name = "nvfp4_quantize_k7168"  # model:deepseek-r1
    axes = {"K": 7168, "K_packed": 3584, "num_blocks": 448}
    sha256 = "54412d899d6e3a21c5af604b65c37bcd1a23f2a7924dfc56994f16896cab8cfa"


# Quantise activations to float8_e4m3fn: the scale of each 128 elements of a row is
# their largest magnitude, at least 1e-10, divided by 448; the codes are the elements
# divided by it.
# quantization:float8_e4m3fn, fi_api:flashinfer.quantization.per_token_group_quant_8bit
# Tolerances:
#   output  source                      rtol   atol   NMSE     reason
#   x_q     oracle                      0.125  0.002  0.00015  (6)
#   x_q     flashinfer, sglang          0.125  0.002  0.0001   (7)
#   x_s     oracle, flashinfer, sglang  2e-07  0      1e-13    (8)
def reference_per_token_group_quant_fp8():
    import torch

    GROUP = 128
    MAX = 448.0
    LEAST = 1e-10


    @torch.no_grad()
    def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        groups = x.float().view(len(x), -1, GROUP)
        # A group of zeros gets a scale that can be divided by.
        largest = groups.abs().amax(dim=2).clamp(min=LEAST)
        x_s = largest / MAX
        codes = (groups / x_s[:, :, None]).clamp(-MAX, MAX).to(torch.float8_e4m3fn)
        return codes.view(x.shape), x_s

    return run


class PerTokenGroupQuantFp8Base(QuantizationTests):
    reference = staticmethod(reference_per_token_group_quant_fp8)
    interface = INTERFACE_PER_TOKEN_GROUP_QUANT_FP8

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestPerTokenGroupQuantFp8K1536(PerTokenGroupQuantFp8Base):
    name = "per_token_group_quant_fp8_k1536"
    axes = {"K": 1536, "num_blocks": 12}
    sha256 = "34ffa7d290c666fb33dc9795c4babbcae98fd55afe758b8d9ae375d2b2da6f2c"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestPerTokenGroupQuantFp8K2048(PerTokenGroupQuantFp8Base):
    name = "per_token_group_quant_fp8_k2048"
    axes = {"K": 2048, "num_blocks": 16}
    sha256 = "9bb72360b4f6ddb4d4bda804c947d8618ad8e3ff43015ac65ae8051cb945f42a"

class TestPerTokenGroupQuantFp8K3072(PerTokenGroupQuantFp8Base):
    name = "per_token_group_quant_fp8_k3072"  # model:minimax-m2
    axes = {"K": 3072, "num_blocks": 24}
    sha256 = "cbb754a11dc215be25a554b24eaa804524241830d0964d2fc8667d977c0d0cbb"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestPerTokenGroupQuantFp8K7168(PerTokenGroupQuantFp8Base):
    name = "per_token_group_quant_fp8_k7168"
    axes = {"K": 7168, "num_blocks": 56}
    sha256 = "e5c1bc6c8129854b6d3502c412be8ea5069b935c62f05cd21a602007089b4260"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
