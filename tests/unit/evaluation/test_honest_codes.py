"""Kernels of 8-bit caches that round as tensor cores do pass where codes or scales are moved."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest
import torch

from generator.evaluation.rounds import EvaluationRounds, rounds_of
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess, UntilWrong

DECODE = "gqa_paged_decode_kve4m3_h32_kv4_d128_ps64"


@cache
def moved(secret: int) -> EvaluationRounds:
    asked = rounds_of(loaded(DECODE), [], Path(), CPU, secret)
    chosen = [
        (name, rounds)
        for name, rounds in asked.rounds
        if name.startswith(("beside ", "smallest-codes"))
    ]
    assert len(chosen) > 2
    return EvaluationRounds(asked.subject, chosen, [], [])


def decode(*, rounds_codes: bool, rounds_weights: bool):
    def run(q, k_cache, v_cache, k_scale, v_scale, indptr, indices, last, sm_scale):
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf)
        for number in range(len(q)):
            pages = indices[indptr[number] : indptr[number + 1]].long()
            if not len(pages):
                continue
            length = (len(pages) - 1) * k_cache.shape[1] + int(last[number])
            k, v = (
                stored.float()[pages].flatten(0, 1)[:length] * scale
                for stored, scale in ((k_cache, k_scale), (v_cache, v_scale))
            )
            if rounds_codes:
                k, v = k.bfloat16().float(), v.bfloat16().float()
            heads = q[number].float().unflatten(0, (k.shape[1], -1))
            bits = torch.einsum("hgd,khd->hgk", heads, k) * (
                sm_scale * math.log2(math.e)
            )
            most = bits.amax(-1, keepdim=True)
            shares = torch.exp2(bits - most)
            total = shares.sum(-1, keepdim=True)
            if rounds_weights:
                shares = shares.bfloat16().float()
            rows = torch.einsum("hgk,khd->hgd", shares, v) / total
            output[number] = rows.flatten(0, 1).to(q.dtype)
            lse[number] = (most + total.log2()).flatten()
        return output, lse

    return run


@pytest.mark.parametrize("secret", [5, 6, 7])
@pytest.mark.parametrize(
    ("codes", "weights"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_it_passes(secret: int, codes: bool, weights: bool) -> None:
    run = decode(rounds_codes=codes, rounds_weights=weights)
    UntilWrong(InProcess(run), moved(secret), CPU, False, secret).judge()
