"""Domain defects that once passed as solutions are refused, each by the case that was added for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from generator.evaluation.rounds import rounds_of
from generator.mutation.audit_job import DOMAIN, prepare
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong


@pytest.mark.parametrize(
    ("name", "defect", "case"),
    [
        ("adaptive_layernorm_h1152", "norm rounded to bfloat16", "exact-gain"),
        ("lightning_decode_h16_d128", "slopes rounded to bfloat16", "keys-of-zero"),
        (
            "w8a8_fp8_n12800_k5120",
            "x_scale rounded to float16",
            "limits: factors-down",
        ),
        (
            "moe_bf16_shared_topk9_e129_h4096_i352",
            "topk_weights rounded to float16",
            "limits: factors-up",
        ),
        (
            "moe_fp8_block_scale_renorm_shard_topk10_e128_h2048_i512",
            "hidden_states_scale rounded to float16",
            "limits: factors-down",
        ),
        # 1/√64 is exact in float16; 1 + 2^-11 times that is halfway between two of its numbers
        (
            "gqa_ragged_prefill_noncausal_h16_kv16_d64",
            "sm_scale rounded to float16",
            "limits: scale-of-many-bits",
        ),
        (
            "gqa_single_decode_h16_kv2_d256",
            "sm_scale rounded to float16",
            "limits: scale-of-many-bits",
        ),
        (
            "gqa_causal_backward_h12_kv12_d64",
            "sm_scale rounded to float16",
            "factors-up",
        ),
        (
            "gqa_paged_decode_qe4m3_kve4m3_h32_kv8_d128_ps64",
            "k_cache: subnormal codes taken as 0",
            "smallest-codes",
        ),
        # refused by a bound: what four tokens or more share is less than what one has
        ("moe_fp8_block_shared_topk9_e257_h7168_i128", "output 1 % too large", "batch"),
    ],
)
@pytest.mark.parametrize("secret", [21, 22])
def test_defect_is_refused_by_its_case(name, defect, case, secret):
    job = prepare(loaded(name), None, None)
    (planned,) = (p for p in job.planned if p.result.name == f"{DOMAIN}: {defect}")
    asked = rounds_of(loaded(name), [], Path(), CPU, secret, axes=job.axes)
    asked = replace(asked, rounds=[r for r in asked.rounds if r[0] == case])
    with pytest.raises(Wrong, match=case):
        UntilWrong(InProcess(planned.load()), asked, CPU, False, secret).judge()
