"""Solutions on codes of 4 and 8 bits: defects that passed once are refused, honest forms pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.rounds import EvaluationRounds, rounds_of
from generator.ops.registry import optional_op_module
from generator.rules.subjects import subject_of
from tests.builders import CPU, loaded, replaced, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

NVFP4, MXFP4 = "nvfp4_gemm_n1280_k8192", "mxfp4_gemm_n8192_k1024"
SWIZZLED = "nvfp4_gemm_swizzled_n7168_k256"
QUANTISE, BACK = "nvfp4_quantize_k4096", "nvfp4_dequantize_k7168"
POWERS, POWERS_BACK = "mxfp4_quantize_k2880", "mxfp4_dequantize_k2880"
STORE = "nvfp4_store_kv_kv1_d128"
GROUPS, NORM = "per_token_group_quant_fp8_k1536", "rmsnorm_quant_h4096"
Run = Callable[..., Any]
_A, _B = "x_scale = a_scale.float()", "w_scale = b_scale.float()"
_OF_A = "torch.exp2(a_scale.view(torch.uint8).float() - BIAS)"
_TILES = "x_scale = unswizzled(a_scale)[: a.shape[0]]"
_OUT = "return (torch.cat(columns, dim=1) * alpha).to(torch.bfloat16)"
_SCALES = "scales = (largest / MAX).clamp(max=MAX_SCALE).to(torch.float8_e4m3fn)"
_FLUSHED = (
    f"{_SCALES}; scales = scales.float().where(scales.float() >= 2.0**-6, 0.0)"
    ".to(torch.float8_e4m3fn)"
)
_UNITS = "units = (largest / largest_code).clamp(max=MAX_SCALE).to(torch.float8_e4m3fn)"
_FEW_UNITS = (
    "; units = units.float().where(units.float() >= 2.0**-6, 0.0)"
    ".to(torch.float8_e4m3fn)"
)
_CUT = "exponent = torch.where(largest == 0, -BIAS, exponent)"
_LARGEST = "largest = blocks.abs().amax(dim=2)"


def last_of(residue: int) -> str:
    """Return a product's last lines, by which the last of so many rows is wrong."""
    out = _OUT.replace("return", "out =")
    return f"{out}\n    if len(a) % 16 == {residue}: out[-1] = 0\n    return out"


WRONG: tuple[tuple[str, str, str, str], ...] = (
    ("a scale of 0 as 1", NVFP4, _A, f"{_A}; x_scale[x_scale == 0] = 1.0"),
    ("a scale of 0 as the least", NVFP4, _A, f"{_A}.clamp(min=2.0**-9)"),
    ("a weight's scale of 0 as the least", NVFP4, _B, f"{_B}.clamp(min=2.0**-9)"),
    ("of tiles, 0 as the least", SWIZZLED, _TILES, f"{_TILES}.clamp(min=2.0**-9)"),
    ("powers in float16", MXFP4, _OF_A, f"{_OF_A}.half().float()"),
    ("powers of two up to 30", MXFP4, _OF_A, f"{_OF_A}.clamp(2.0**-30, 2.0**30)"),
    (
        "two tiles of rows",
        SWIZZLED,
        _TILES,
        "x_scale = unswizzled(a_scale)[torch.arange(len(a)) % 256]",
    ),
    *((f"{r} rows of 16", SWIZZLED, _OUT, last_of(r)) for r in (3, 6, 9, 12)),
    (
        "subnormal scales as 0",
        QUANTISE,
        _SCALES,
        _FLUSHED,
    ),
    (
        "subnormal stored scales as 0",
        STORE,
        _UNITS,
        _UNITS + _FEW_UNITS,
    ),
    (
        "a stored block of zeros has the least scale",
        STORE,
        _UNITS,
        _UNITS.replace("max=", "min=2.0**-9, max="),
    ),
    *(
        (
            f"{residue} stored rows of 16",
            STORE,
            "def stored(",
            f"if len(k) % 16 == {residue}: k = k.flip(0)\n    def stored(",
        )
        for residue in (5, 6, 10, 13)
    ),
    (
        "factor in bfloat16",
        QUANTISE,
        "* global_scale",
        "* float(torch.tensor(global_scale).bfloat16())",
    ),
    (
        "factor in float16",
        QUANTISE,
        "* global_scale",
        "* float(torch.tensor(global_scale).half())",
    ),
    (
        "exponents up to 24",
        POWERS,
        f"{_CUT}.clamp(-BIAS, BIAS)",
        f"{_CUT}.clamp(-24, 24)\n    exponent = torch.where(largest == 0, -BIAS, exponent)",
    ),
    (
        "magnitudes of 1e-10",
        POWERS,
        _LARGEST,
        f"{_LARGEST}\n    largest = torch.where(largest > 0, largest.clamp(min=1e-10), largest)",
    ),
    (
        "exponents of codes up to 30",
        POWERS_BACK,
        "- BIAS\n",
        "- BIAS\n    exponent = exponent.clamp(-30, 30)\n",
    ),
    (
        "magnitudes of 1e-9",
        GROUPS,
        "LEAST)",
        "1e-9 if float(groups.abs().max()) > 0 else LEAST)",
    ),
    (
        "codes by a scale in bfloat16",
        GROUPS,
        "groups / x_s",
        "groups / x_s.bfloat16().float()",
    ),
    (
        "ties away from zero",
        GROUPS,
        ".clamp(-MAX, MAX)",
        ".mul(1.0 + 2.0**-20).clamp(-MAX, MAX)",
    ),
)


@cache
def asked(name: str, secret: int) -> EvaluationRounds:
    definition = loaded(name)
    audit = optional_op_module(definition.op_type, "audit")
    reduced = getattr(audit, "reduced", None)
    axes = reduced(subject_of(definition).definition.axes) if reduced else None
    return rounds_of(definition, [], Path(), CPU, secret, axes=axes)


def reason(name: str, run: Run, secret: int) -> str:
    try:
        UntilWrong(InProcess(run), asked(name, secret), CPU, False, secret).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong[0])
@pytest.mark.parametrize("secret", [5, 6])
def test_it_is_refused(wrong: tuple[str, str, str, str], secret: int) -> None:
    _, name, old, new = wrong
    run = run_of(replaced(loaded(name).reference, old, new))
    assert "INCORRECT_NUMERICAL" in reason(name, run, secret)


VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def values(octets: torch.Tensor) -> torch.Tensor:
    """Return e2m1 by a table of bytes: bfloat16 [rows, 2 · bytes]."""
    signed = torch.cat([VALUES, -VALUES]).bfloat16()
    pairs = torch.stack([signed.repeat(16), signed.repeat_interleave(16)], dim=1)
    return pairs[octets.view(torch.uint8).long()].flatten(1)


def by_blocks(a, b, a_scale, b_scale, alpha):
    """Add up products of blocks in bfloat16, times both scales in float32."""
    x, w = (values(c).unflatten(1, (-1, 16)).float() for c in (a, b))
    total = torch.zeros(len(a), len(b))
    for block in range(x.shape[1]):
        part = x[:, block] @ w[:, block].T
        total += part * a_scale[:, block, None].float() * b_scale[:, block].float()
    return (total * alpha).bfloat16()


def in_bfloat16(a, b, a_scale, b_scale, alpha):
    """Multiply dequantised values, which bfloat16 holds."""
    x, w = (
        (values(c).unflatten(1, (-1, 16)) * s.bfloat16()[..., None]).flatten(1)
        for c, s in ((a, a_scale), (b, b_scale))
    )
    return (x.float() @ w.float().T * alpha).bfloat16()


def weight_first(a, b, a_scale, b_scale, alpha):
    """Multiply the weight by the factor, and leave blocks out whose scale is 0."""
    x, w = (
        values(c).float().unflatten(1, (-1, 16)).where(s.float()[..., None] > 0, 0.0)
        * s.float()[..., None]
        for c, s in ((a, a_scale), (b, b_scale))
    )
    return (x.flatten(1) @ (w.flatten(1) * alpha).T).bfloat16()


def by_bits(a, b, a_scale, b_scale):
    """Make powers of two by bits of float32."""
    x, w = (
        values(c).float().unflatten(1, (-1, 32))
        * (s.view(torch.uint8).int() << 23).view(torch.float32)[..., None]
        for c, s in ((a, a_scale), (b, b_scale))
    )
    return (x.flatten(1) @ w.flatten(1).T).bfloat16()


def by_places(a, b, a_scale, b_scale, alpha):
    """Read each scale of a tile at its place."""

    def scales(memory: torch.Tensor, rows: int) -> torch.Tensor:
        row, block = torch.arange(rows)[:, None], torch.arange(memory.shape[1])
        tile = row // 128 * (memory.shape[1] // 4) + block // 4
        inner = row % 32 * 16 + row % 128 // 32 * 4 + block % 4
        return memory.flatten()[512 * tile + inner]

    unswizzled = (scales(s, len(c)) for s, c in ((a_scale, a), (b_scale, b)))
    return in_bfloat16(a, b, *unswizzled, alpha)


def codes_of(scaled: torch.Tensor) -> torch.Tensor:
    """Return bytes of the nearest codes, of two as near the even one."""
    middles = (VALUES[1:] + VALUES[:-1]) / 2.0
    below = torch.searchsorted(middles, scaled.abs().contiguous())
    above = torch.searchsorted(middles, scaled.abs().contiguous(), right=True)
    codes = torch.where(below % 2 == 0, below, above) + 8 * torch.signbit(scaled)
    return (codes[:, ::2] + 16 * codes[:, 1::2]).to(torch.uint8).view(torch.int8)


def by_reciprocal(input, global_scale):
    """Multiply by the inverse of the stored scale."""
    blocks = (input.float() * global_scale).unflatten(1, (-1, 16))
    scales = (blocks.abs().amax(-1) / 6.0).clamp(max=448.0).to(torch.float8_e4m3fn)
    inverse = (1.0 / scales.float()).where(scales.float() > 0, 0.0)
    scaled = (blocks * inverse[..., None]).flatten(1)
    return codes_of(scaled.where(inverse.repeat_interleave(16, 1) > 0, 0.0)), scales


def powers_by_bits(input):
    """Round a power of two up by the bits of a float32."""
    blocks = input.float().unflatten(1, (-1, 32))
    bits = (blocks.abs().amax(-1) / 6.0).view(torch.int32)
    octets = (bits >> 23) + ((bits & 0x7FFFFF) > 0).int()
    scaled = torch.ldexp(blocks, 127 - octets[..., None]).flatten(1)
    return codes_of(scaled), octets.to(torch.uint8).view(torch.int8)


def values_in_bfloat16(quantized, scales, global_scale):
    """Multiply codes by scales in bfloat16, which holds them, and then by the factor."""
    wide = values(quantized).unflatten(1, (-1, 16)) * scales.bfloat16()[..., None]
    return (wide.float() * global_scale).flatten(1).bfloat16()


def powers_of_values(quantized, scales):
    exponents = scales.view(torch.uint8).int() - 127
    wide = values(quantized).float().unflatten(1, (-1, 32))
    return torch.ldexp(wide, exponents[..., None]).flatten(1).bfloat16()


def by_inverses(x):
    """Multiply by the inverses of 448 and of the scale."""
    groups = x.float().unflatten(1, (-1, 128))
    scales = groups.abs().amax(-1).clamp(min=1e-10) * (1.0 / 448.0)
    codes = (groups * (1.0 / scales)[..., None]).clamp(-448.0, 448.0)
    return codes.flatten(1).to(torch.float8_e4m3fn), scales


def norm_by_inverse(hidden_states, weight, scale):
    """Multiply the weight by the inverse of the scale first."""
    x = hidden_states.float()
    length = torch.sqrt(x.pow(2).sum(-1, keepdim=True) / x.shape[1] + 1e-5)
    rows = (x / length) * (weight.float() * (1.0 / scale))
    return rows.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


HONEST: tuple[tuple[str, Run], ...] = (
    (NVFP4, by_blocks),
    (NVFP4, in_bfloat16),
    (NVFP4, weight_first),
    (MXFP4, by_bits),
    (SWIZZLED, by_places),
    (QUANTISE, by_reciprocal),
    (POWERS, powers_by_bits),
    (BACK, values_in_bfloat16),
    (POWERS_BACK, powers_of_values),
    (GROUPS, by_inverses),
    (NORM, norm_by_inverse),
)


@pytest.mark.parametrize(("name", "run"), HONEST)
@pytest.mark.parametrize("secret", [5, 6, 7])
def test_honest_forms_pass(name: str, run: Run, secret: int) -> None:
    assert reason(name, run, secret) == ""


@pytest.mark.parametrize("name", sorted({name for name, _ in HONEST}))
def test_references_pass(name: str) -> None:
    assert reason(name, run_of(loaded(name).reference), 5) == ""
