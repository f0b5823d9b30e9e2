"""The sampling references on vocabularies small enough to count by hand."""

from __future__ import annotations

import pytest
import torch

from generator.ops.op_types.sampling.references.top_k_sampling_from_probs import (
    run as top_k,
)
from generator.ops.op_types.sampling.references.top_k_top_p_sampling_from_probs import (
    run as both,
)
from generator.ops.op_types.sampling.references.top_p_sampling_from_probs import (
    run as top_p,
)

ROW = [0.125, 0.5, 0.0, 0.25, 0.125]
BATCH = 4000


def shares(run, *limits):
    """Return how often each token is drawn of the same row, by tokens drawn at all."""
    torch.manual_seed(1)
    given = [torch.tensor([limit]).repeat(BATCH) for limit in limits]
    samples = run(torch.tensor([ROW]).repeat(BATCH, 1), *given)
    assert samples.shape == (BATCH,)
    assert samples.dtype == torch.int64
    counts = torch.bincount(samples, minlength=5) / BATCH
    return {token: share for token, share in enumerate(counts.tolist()) if share}


def close(found, expected):
    assert found == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize("k", [0, -1, 4, 5, 2**30])
def test_all_tokens_of_positive_probability_are_drawn(k):
    close(shares(top_k, k), {0: 0.125, 1: 0.5, 3: 0.25, 4: 0.125})
    close(shares(both, k, 1.0), {0: 0.125, 1: 0.5, 3: 0.25, 4: 0.125})
    close(shares(top_p, 1.0), {0: 0.125, 1: 0.5, 3: 0.25, 4: 0.125})


def test_k_keeps_the_most_probable():
    assert shares(top_k, 1) == {1: 1.0}
    close(shares(top_k, 2), {1: 2 / 3, 3: 1 / 3})


def test_the_token_that_crosses_p_is_kept():
    assert shares(top_p, 0.5) == {1: 1.0}
    close(shares(top_p, 0.51), {1: 2 / 3, 3: 1 / 3})
    close(shares(top_p, 0.75), {1: 2 / 3, 3: 1 / 3})


@pytest.mark.parametrize("p", [0.0, -0.5])
def test_no_p_is_argmax(p):
    assert shares(top_p, p) == {1: 1.0}
    assert shares(both, 3, p) == {1: 1.0}


def test_p_is_a_share_of_what_k_kept():
    assert shares(both, 2, 0.6) == {1: 1.0}
    close(shares(top_p, 0.6), {1: 2 / 3, 3: 1 / 3})
    close(shares(both, 2, 0.7), {1: 2 / 3, 3: 1 / 3})


def test_every_row_has_its_own_limits():
    probs = torch.tensor([ROW]).repeat(2 * BATCH, 1)
    k = torch.tensor([1, 2]).repeat(BATCH)
    assert set(top_k(probs, k)[::2].tolist()) == {1}
    p = torch.tensor([0.3, 0.6]).repeat(BATCH)
    samples = top_p(probs, p)
    assert set(samples[::2].tolist()) == {1}
    assert set(samples[1::2].tolist()) == {1, 3}


@pytest.mark.parametrize("vocab_size", [255, 256, 257, 5000])
def test_a_nucleus_of_nearly_all_tokens_is_found(vocab_size):
    torch.manual_seed(2)
    probs = torch.full((64, vocab_size), 1.0 / vocab_size)
    samples = top_p(probs, torch.full((64,), 0.99))
    assert len(samples.unique()) > 32
    assert int(samples.max()) > vocab_size // 2
