"""gemm_fp4: products of e2m1 codes, two a byte, scaled in blocks of 16 or 32 of a row.

NVFP4 has float8 scales and one factor more, MXFP4 powers of two. Tensor cores take such
codes from compute capability 10 on, and scales in tiles of 128 rows and 4 blocks. Hopper
has no such instruction and the libraries no kernel for it: there the oracle alone judges.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart, with_factors
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm_fp4.layouts import places, random_bytes, swizzled
from generator.ops.op_types.gemm_fp4.relations import fp4_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_ONCE = "float32 sums of elements of about 1, rounded once: half an ulp is 2^-8 at most"
_BOTH = (
    "float32 sums in another order; both sides round once, to neighbours at most: 2^-7"
)
TOLERANCES = (
    Override("out", Tolerance(4e-3, 2e-4, 5e-6), _ONCE, source="oracle"),
    Override("out", Tolerance(8e-3, 4e-4, 5e-6), _BOTH),
)
# of e2m1 codes that are equally frequent
_MEAN_SQUARE = 8.5625
_LEAST, _MOST = 8.0, 32.0
# powers of two by which scales of e4m3 are mostly subnormal
SMALL_SCALES = {"a_scale": -12.0, "b_scale": -12.0, "alpha": 24.0}
# the bit of a code that is its sign
_SIGN = 8


def is_swizzled(definition: Definition) -> bool:
    """Return whether scales lie in tiles."""
    return "padded_m" in (definition.interface.input_specs["a_scale"].shape or ())


def is_mx(definition: Definition) -> bool:
    """Return whether scales are powers of two."""
    return "alpha" not in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return few rows, more than a tile has, the largest codes, and many rows."""
    tables: list[tuple[str, str, int, dict[str, Any]]] = [
        ("one-row", "small", 1, {}),
        ("odd-rows", "small", 7, {}),
        ("largest-codes", "small", 2, {"largest": True}),
        ("two-tiles", "medium", 130, {}),
        ("many-rows", "large", 2048, {}),
    ]
    if is_swizzled(definition):
        tables.append(("past-limits", LIMITS, 8_219, {}))
        usual = [Case(name, size, tiled(m), more) for name, size, m, more in tables]
    else:
        usual = [Case(name, size, {"M": m}, more) for name, size, m, more in tables]
        usual.append(past_limits("M", 8_219))
    return [*usual, *_far_apart(definition, usual[1])]


def _far_apart(definition: Definition, case: Case) -> list[Case]:
    """Return a case with scales far from the usual, in e4m3 up to its largest, 448."""
    if is_mx(definition):
        # beyond float16, and what it makes of scales around its largest
        return far_apart(case, "a_scale", against=("b_scale",), exponent=40.0)
    # 32 times 2^3.8 is 446
    up = {"a_scale": 3.8, "b_scale": 3.8, "alpha": -9.0}
    return [
        with_factors(case, "factors-up", **up),
        with_factors(case, "factors-down", **SMALL_SCALES),
    ]


def tiled(rows: int) -> dict[str, int]:
    """Return the axes of a case whose scales lie in whole tiles."""
    return {"M": rows, "padded_m": -(-rows // 128) * 128}


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return random codes, and scales of which elements of the product are about 1.

    Scales of rows that pad a tile are the largest that there are.
    """
    m, n, k = case.axes["M"], definition.axes["N"], 2 * definition.axes["bytes_k"]
    blocks = definition.axes["num_k_blocks"]
    a = random_bytes(stream.child("a"), m, k // 2)
    if case.params.get("largest"):
        # 6 or -6
        a = a | 0x77
    tensors: dict[str, Any] = {
        "a": a,
        "b": random_bytes(stream.child("b"), n, k // 2),
    }
    size = _MEAN_SQUARE * math.sqrt(k)
    if is_mx(definition):
        middle = 127 - round(math.log2(size))
        return {
            **tensors,
            "a_scale": _exponents(stream.child("a_scale"), m, blocks, 127),
            "b_scale": _exponents(stream.child("b_scale"), n, blocks, middle),
        }
    padded = case.axes.get("padded_m", m)
    scales = _scales(stream.child("a_scale"), padded, blocks)
    scales[m:] = 448.0
    pair = [scales, _scales(stream.child("b_scale"), n, blocks)]
    if is_swizzled(definition):
        pair = [swizzled(scale) for scale in pair]
    alpha = 1.0 / (size * 21.0**2)
    tensors |= zip(
        ("a_scale", "b_scale"), (s.to(torch.float8_e4m3fn) for s in pair), strict=True
    )
    return {**tensors, "alpha": torch.tensor(alpha)}


def _exponents(stream: Stream, rows: int, blocks: int, middle: int) -> torch.Tensor:
    """Return bytes of powers of two around one, two down and one up."""
    drawn = stream.integer_tensor(middle - 2, middle + 2, rows * blocks)
    return drawn.to(torch.uint8).view(torch.int8).view(rows, blocks)


def _scales(stream: Stream, rows: int, blocks: int) -> torch.Tensor:
    drawn = stream.integer_tensor(0, 2**16, rows * blocks).float() / 2**16
    return (_LEAST + (_MOST - _LEAST) * drawn).view(rows, blocks)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64 [M, N]: sums of each block first, then its scales."""
    codes = _decoded(inputs["a"]), _decoded(inputs["b"])
    blocks = definition.axes["num_k_blocks"]
    width = 2 * definition.axes["bytes_k"] // blocks
    pair = [_factors(definition, inputs[f"{name}_scale"]) for name in ("a", "b")]
    total = torch.zeros(len(codes[0]), len(codes[1]), dtype=torch.float64)
    total = total.to(codes[0].device)
    for block in range(blocks):
        part = slice(block * width, (block + 1) * width)
        rows, columns = pair[0][: len(total), block, None], pair[1][:, block]
        total += codes[0][:, part] @ codes[1][:, part].T * rows * columns
    return total * float(inputs.get("alpha", 1.0))


def _decoded(packed: torch.Tensor) -> torch.Tensor:
    """Return values of e2m1 by its bits: float64 [rows, 2 · bytes]."""
    octets = packed.view(torch.uint8)
    code = torch.stack((octets % 16, octets // 16), dim=2).flatten(1).int()
    exponent, mantissa = (code >> 1) % 4, code % 2
    hidden = (exponent > 0).int()
    size = torch.ldexp((2 * hidden + mantissa).double() / 2, exponent.clamp_min(1) - 1)
    return torch.where(code < _SIGN, size, -size)


def _factors(definition: Definition, scale: torch.Tensor) -> torch.Tensor:
    """Return the factor of each block of each row, float64."""
    if is_mx(definition):
        return torch.ldexp(
            torch.ones(scale.shape, dtype=torch.float64, device=scale.device),
            scale.view(torch.uint8).int() - 127,
        )
    wide = scale.double()
    if not is_swizzled(definition):
        return wide
    return wide.flatten()[places(*scale.shape).to(scale.device)]


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return CUTLASS's kernel for scales in tiles, of compute capability 10 on."""
    if is_swizzled(definition):
        return (Backend("cutlass", min_sm=100),)
    return ()


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's product; return bfloat16 [M, N]."""
    from flashinfer.gemm import mm_fp4

    a, b = (inputs[name].view(torch.uint8) for name in ("a", "b"))
    scales = [inputs[name].view(torch.uint8) for name in ("a_scale", "b_scale")]
    alpha = inputs["alpha"].view(1)
    out = torch.bfloat16
    return mm_fp4(a, b.T, scales[0], scales[1].T, alpha, out, backend=backend)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=fp4_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
