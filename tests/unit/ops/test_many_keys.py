"""The log-sum-exp of many keys: what float32 sums of a thread lose, and the bound for it."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.attention.tolerances import LSE_OF_MANY_KEYS
from generator.rules.subjects import subject_of
from kernel_judge.comparison.tolerance import DEFAULTS, choose_tolerance
from tests.builders import loaded

_NAME = "mla_ragged_prefill_causal_h8_qk192_vo128"


def _lost(keys: int, rows: int = 8) -> float:
    """Return the mean of what four threads' float32 sums lose of a row's log2-sum-exp."""
    torch.manual_seed(0)
    logits = 3.6 * torch.randn(rows, keys, dtype=torch.float64)
    weights = (logits - logits.amax(1, keepdim=True)).exp().float()
    # a thread has two neighbours of each eight columns
    threads = weights.unflatten(1, (-1, 4, 2)).transpose(1, 2).flatten(2)
    sums = torch.zeros(threads.shape[:2])
    for column in threads.unbind(2):
        sums += column
    short = sums.double().sum(1) / weights.double().sum(1)
    return -short.log2().mean().item()


def test_bound_holds_what_a_threads_sum_loses_and_little_more():
    lost = _lost(131_072) / 26.3
    bias = LSE_OF_MANY_KEYS.tolerance.bias
    assert DEFAULTS["float32"].bias < lost < bias < 2.5 * lost
    assert _lost(32_768) / 24.5 < DEFAULTS["float32"].bias
    assert math.log2(1.0 / bias) == 18.0


@pytest.mark.parametrize(
    ("keys", "bias"), [(65_535, 2.0**-20), (65_536, 2.0**-18), (131_072, 2.0**-18)]
)
def test_fewer_keys_keep_the_bound_of_float32(keys, bias):
    op = subject_of(loaded(_NAME)).op
    chosen = choose_tolerance(
        op.tolerances, "lse", "float32", "flashinfer/fa3", axes={"total_kv": keys}
    )
    assert chosen.bias == bias
    assert (chosen.rtol, chosen.atol) == (1e-5, 1e-5)
