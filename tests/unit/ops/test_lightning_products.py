"""What SGLang's kernel of lightning attention rounds: products of keys and values."""

from __future__ import annotations

from generator.rules.subjects import subject_of
from kernel_judge.comparison.compare import compare
from tests.builders import loaded


def test_products_in_bfloat16_share_a_factor_that_the_limit_states():
    subject = subject_of(loaded("lightning_decode_h16_d128"))
    (case,) = (c for c in subject.cases() if c.name == "no-history")
    tolerance = subject.tolerance("new_state", "sglang/triton", case)
    off = []
    for seed in range(12):
        inputs = subject.trial(case, shift=seed).inputs
        k, v = inputs["k"][..., None], inputs["v"][..., None, :]
        exact, kernel = k.double() * v.double(), (k * v).float()
        result = compare(exact.float(), kernel, tolerance)
        assert result.passed, result.findings
        off.append(result.metrics.factor - 1.0)
        assert not compare((exact * 1.0003).float(), kernel, tolerance).passed
    assert 3e-5 < sum(off) / len(off) < 5e-5
    assert max(off) < 8e-5
