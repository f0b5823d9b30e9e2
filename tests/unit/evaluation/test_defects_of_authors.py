"""Defects that authors of kernels make, and that no published case shows, are refused by a case.

Each reference with the defect passed once; its text with nothing changed passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch

from generator.evaluation.rounds import EvaluationRounds, Round, far_cases
from generator.ops.registry import optional_op_module
from generator.rules.subjects import subject_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

DECODE = "gqa_paged_decode_h32_kv8_d128_ps64"
CROSS = "cross_attention_padding_h16_d72"
ADDED = "attention_float_mask_h12_d64"
STORE = "store_kv_e4m3_kv4_d128"
NVFP4 = "nvfp4_store_kv_kv1_d128"
EXPAND, SHRINK = "lora_expand_r16_n1024", "lora_shrink_r16_k12288"
SEGMENTS = "segment_gemm_fp16_k16_n4096"
APPEND = "append_paged_mla_kv_cache_ckv512_kpe64"
ROUTING = "fused_topk_deepseek_e160_k8_ng1_kg1"
COMBINE, LOSSES = "moe_combine_ep16_h7168", "linear_cross_entropy_v50257_h1600"
BLOCKS, MASKED = (
    "block_sparse_run_r64_c64_h12_kv12_d128",
    "block_sparse_run_mask_r1_c128_h16_kv1_d128",
)
VARIABLE = "variable_block_sparse_run_h12_kv12_d128"
QUANTISED = "mla_rope_quantize_fp8_gptj_h16_rope64_nope512"
# whose texts give masked keys minus infinity
MASKS = (
    "gqa_ragged_prefill_causal_h32_kv8_d128",
    "gqa_paged_prefill_causal_h32_kv8_d128_ps64",
    "gqa_paged_prefill_causal_kve4m3_h32_kv4_d128_ps64",
    "gqa_paged_prefill_custom_mask_h32_kv8_d128_ps64",
    "mla_paged_prefill_causal_kve4m3_h16_ckv512_kpe64_ps64",
    "mla_ragged_prefill_causal_h128_qk192_vo128",
    "pod_causal_h32_kv4_d128_ps64",
    MASKED,
    VARIABLE,
)
_COLUMNS = "columns = indices[bounds[row] : bounds[row + 1]]"
Run = Callable[..., Any]


def refused(name: str, case: str, run: Run, secret: int) -> str:
    """Return why a solution is refused in a case, empty where it passes."""
    subject = subject_of(loaded(name))
    known = subject.definition
    judged = optional_op_module(known.op_type, "judged")
    own = getattr(judged, "cases", lambda _: [])(known)
    every = (*own, *far_cases(known, subject.op.cases(known)))
    (found,) = (one for one in every if one.name == case)
    asked = EvaluationRounds(
        subject, [(case, [Round(subject, found, secret, CPU)])], [], []
    )
    try:
        UntilWrong(InProcess(run), asked, CPU, False, secret).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


def edited(name: str, old: str = "", new: str = "") -> Run:
    text = loaded(name).reference
    assert old in text
    return run_of(text.replace(old, new) if old else text)


def online(largest: float, masked: float = -math.inf) -> Run:
    """Return a decode by blocks, whose largest logit begins, or masked keys are, at a number."""

    def run(q, k_cache, v_cache, indptr, indices, last, sm_scale):
        output, lse = torch.zeros_like(q), torch.zeros(q.shape[:2])
        for number in range(len(q)):
            pages = indices[indptr[number] : indptr[number + 1]]
            k, v = (cache[pages].flatten(0, 1).float() for cache in (k_cache, v_cache))
            length = len(k) - k_cache.shape[1] + int(last[number])
            heads = q[number].float().unflatten(0, (k.shape[1], -1))
            logits = torch.einsum("hgd,khd->hgk", heads, k) * sm_scale
            logits[..., length:] = masked
            most = logits.amax(-1).clamp(min=largest)
            shares = torch.exp(logits - most[..., None])
            total = shares.sum(-1)
            rows = torch.einsum("hgk,khd->hgd", shares, v) / total[..., None]
            output[number] = rows.flatten(0, 1).to(q.dtype)
            lse[number] = ((most + total.log()) / math.log(2.0)).flatten()
        return output, lse

    return run


def ties_away(k, v, k_cache, v_cache, slots, k_scale, v_scale):
    def stored(rows: torch.Tensor, cache: torch.Tensor, scale: float) -> torch.Tensor:
        values = (rows.float() / scale).clamp(-448, 448)
        sizes = values.abs()
        step = torch.exp2(sizes.clamp(min=2.0**-6).log2().floor() - 3)
        codes = ((sizes / step + 0.5).floor() * step).copysign(values)
        out = cache.clone()
        octets = codes.to(torch.float8_e4m3fn).view(torch.uint8)
        out.view(torch.uint8)[slots] = octets
        return out

    return stored(k, k_cache, k_scale), stored(v, v_cache, v_scale)


@cache
def defects() -> dict[str, tuple[str, str, Run]]:
    """Return title → definition, case and run."""
    away = "low = (magnitude * 2 + 0.5).floor()"
    halved = "float(torch.tensor(routed_scaling_factor).bfloat16())"
    first = "for adapter, weight in enumerate(weights[:32])"
    return {
        "largest logit of 0": (DECODE, "lone-keys", online(0.0)),
        "largest logit of -100": (DECODE, "lone-keys", online(-100.0)),
        "masked at -100": (DECODE, "lone-keys", online(-math.inf, -100.0)),
        "largest logit of -10,000": (DECODE, "low-logits", online(-1e4)),
        "masked at -10,000": (DECODE, "low-logits", online(-math.inf, -1e4)),
        **{
            f"masked at -10,000, {name}": (
                name,
                "low-logits",
                edited(name, "-math.inf", "-1e4"),
            )
            for name in MASKS
        },
        "padding at -10,000": (
            CROSS,
            "lowest-logits",
            edited(CROSS, "-torch.inf", "-10_000.0"),
        ),
        "minus infinity at -10,000": (
            ADDED,
            "lowest-logits",
            edited(
                ADDED,
                "softmax(logits",
                "softmax(logits.masked_fill(logits.isneginf(), -1e4)",
            ),
        ),
        "masked at -100, of text": (
            CROSS,
            "low-logits",
            edited(CROSS, "-torch.inf", "-100.0"),
        ),
        "mean without a key": (
            CROSS,
            "no-keys",
            edited(CROSS, "mask.any(dim=1)[:, None, None, None]", "True"),
        ),
        "all hidden is no key": (
            ADDED,
            "finite-mask",
            edited(
                ADDED,
                "torch.softmax(",
                "0.0 * mask[:, None].clamp(max=0) + (mask[:, None] > -200) * torch.softmax(",
            ),
        ),
        "ties away from zero": (STORE, "ties", ties_away),
        "ties of e2m1 away from zero": (
            NVFP4,
            "ties",
            edited(NVFP4, "low = (magnitude * 2).round()", away),
        ),
        "scalings in float16": (
            EXPAND,
            "scalings-of-many-bits",
            edited(EXPAND, "* scalings[adapter]", "* scalings[adapter].half().float()"),
        ),
        "32 adapters": (
            SHRINK,
            "many-adapters",
            edited(SHRINK, "for adapter, weight in enumerate(weights)", first),
        ),
        "32 weights": (
            SEGMENTS,
            "many-weights",
            edited(SEGMENTS, "weights[index]", "weights[index % 32]"),
        ),
        "pages of 128 at most": (
            APPEND,
            "long-pages",
            edited(APPEND, "= ckv_cache.shape[1]", "= min(128, ckv_cache.shape[1])"),
        ),
        "strangers are the last token": (
            COMBINE,
            "strangers",
            edited(
                COMBINE,
                "is_token =",
                "numbers = numbers.clamp(max=num_places - 1)\n    is_token =",
            ),
        ),
        "-1 is the first token": (
            LOSSES,
            "labels-below",
            edited(LOSSES, "is_ignored = labels < 0", "is_ignored = labels == -100"),
        ),
        "scales in bfloat16": (
            QUANTISED,
            "scales-of-many-bits",
            edited(
                QUANTISED,
                "(x.float() * scale)",
                "(x.float() * float(torch.tensor(scale).bfloat16()))",
            ),
        ),
        "numbers of blocks in 8 bits": (
            MASKED,
            "many-blocks",
            edited(MASKED, _COLUMNS, f"{_COLUMNS} % 256"),
        ),
        "256 blocks of a row": (
            BLOCKS,
            "many-blocks",
            edited(BLOCKS, _COLUMNS, f"{_COLUMNS}[:256]"),
        ),
        "rows of blocks in 8 bits": (
            VARIABLE,
            "many-blocks",
            edited(
                VARIABLE,
                "block_mask[head].",
                "block_mask[head][torch.arange(block_mask.shape[1]) % 256].",
            ),
        ),
        "sizes of blocks in 8 bits": (
            VARIABLE,
            "large-blocks",
            edited(
                VARIABLE,
                "seen = seen.repeat_interleave(block_col_sz[head], dim=1)",
                "seen = seen.repeat_interleave(block_col_sz[head] % 256, dim=1)\n"
                "        seen = torch.cat([seen, torch.zeros_like(k[head, :, :1]).bool()"
                ".T.expand(len(seen), -1)], dim=1)[:, : k.shape[1]]",
            ),
        ),
        "factor in bfloat16": (
            ROUTING,
            "factor-of-many-bits",
            edited(ROUTING, "* routed_scaling_factor", f"* {halved}"),
        ),
    }


@pytest.mark.parametrize("title", defects())
@pytest.mark.parametrize("secret", [5, 6])
def test_it_is_refused_by_its_case(title: str, secret: int) -> None:
    name, case, run = defects()[title]
    assert refused(name, case, run, secret)


@pytest.mark.parametrize(
    ("name", "case"), sorted({(name, case) for name, case, _ in defects().values()})
)
@pytest.mark.parametrize("secret", [5, 6, 7])
def test_the_reference_passes_there(name: str, case: str, secret: int) -> None:
    assert refused(name, case, edited(name), secret) == ""


@pytest.mark.parametrize("secret", [5, 6, 7])
def test_a_decode_by_blocks_passes(secret: int) -> None:
    assert refused(DECODE, "lone-keys", online(-math.inf), secret) == ""


@pytest.mark.parametrize("name", [DECODE, *MASKS])
@pytest.mark.parametrize("secret", [5, 6])
def test_masked_keys_at_what_flashinfer_gives_them_pass(name: str, secret: int) -> None:
    run = online(-5e4, -5e4)
    if name != DECODE:
        run = edited(name, "-math.inf", "-5e4")
    assert refused(name, "low-logits", run, secret) == ""
