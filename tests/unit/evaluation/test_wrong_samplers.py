"""Samplers whose every row has nearly the right law, and the judge refuses them.

Each is a function that a solution could be; the vocabulary is smaller than a
definition's, since a judge's laws have 8,192 tokens at most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.batch import COLUMNS, batch
from generator.evaluation.conditions.condition import BROKEN, HOLDS
from generator.evaluation.rounds import EvaluationRounds, rounds_of
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

PLAIN, TOP_K = "sampling_from_probs_v128256", "top_k_sampling_from_probs_v128256"
SECRET = 35
Sampler = Callable[..., torch.Tensor]


@cache
def asked(name: str) -> EvaluationRounds:
    return rounds_of(loaded(name), [], Path(), CPU, SECRET, axes={"vocab_size": 9216})


def verdict(name: str, run: Callable[..., Any], secret: int = SECRET) -> str:
    try:
        UntilWrong(InProcess(run), asked(name), CPU, False, secret).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


def inverse(probs: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Draw by u float64 [batch_size] from the sums of probs, in the tokens' order."""
    sums = probs.double().cumsum(1)
    found = torch.searchsorted(sums, (u[:, None] * sums[:, -1:]), right=True)
    # a sum may be rounded to less than the last token's
    last = (probs > 0).double().mul(torch.arange(1, probs.shape[1] + 1)).argmax(1)
    return torch.minimum(found.squeeze(1), last)


def uniform(rows: int) -> torch.Tensor:
    return torch.rand(rows, dtype=torch.float64)


def honest(probs):
    return inverse(probs, uniform(len(probs)))


def honest_in_float32(probs):
    # 24 bits, as most kernels have
    return inverse(probs, torch.rand(len(probs)).double())


def honest_by_race(probs):
    clocks = torch.empty_like(probs, dtype=torch.float64).exponential_()
    return (clocks / probs.double()).masked_fill(probs == 0, float("inf")).argmin(1)


def one_number_for_all_rows(probs):
    return inverse(probs, uniform(1).expand(len(probs)))


def one_number_for_two_rows(probs):
    return inverse(
        probs, uniform(-(-len(probs) // 2)).repeat_interleave(2)[: len(probs)]
    )


def mirrored_numbers(probs):
    u = uniform(-(-len(probs) // 2))
    return inverse(probs, torch.stack([u, 1 - u], 1).flatten()[: len(probs)])


def evenly_spaced_rows(probs):
    rows = len(probs)
    return inverse(probs, (torch.arange(rows) + uniform(rows)) / rows)


def hotter(probs):
    return honest(probs.double() ** 0.95)


def colder(probs):
    return honest(probs.double() ** 1.05)


def no_token_beyond_1024(probs):
    weights, tokens = probs.topk(1024, dim=1)
    return tokens.gather(1, honest(weights)[:, None]).squeeze(1)


def numbers_of_11_bits(probs):
    return inverse(probs, (uniform(len(probs)) * 2048).floor() / 2048)


def numbers_of_12_bits(probs):
    return inverse(probs, (uniform(len(probs)) * 4096).floor() / 4096)


def numbers_of_13_bits(probs):
    return inverse(probs, (uniform(len(probs)) * 8192).floor() / 8192)


def of_half_the_seed(probs):
    generator = torch.Generator().manual_seed(torch.initial_seed() & 0xFFFF)
    u = torch.rand(len(probs), dtype=torch.float64, generator=generator)
    return inverse(probs, u)


def of_the_inputs_alone(probs):
    generator = torch.Generator().manual_seed(int(probs.sum(0).argmax()))
    u = torch.rand(len(probs), dtype=torch.float64, generator=generator)
    return inverse(probs, u)


class LowDiscrepancy:
    """No random number at all: the multiples of the golden ratio, in turn."""

    def __init__(self) -> None:
        self.next = 0

    def __call__(self, probs):
        place = torch.arange(self.next, self.next + len(probs), dtype=torch.float64)
        self.next += len(probs)
        return inverse(probs, (place * 0.6180339887498949) % 1.0)


class RememberedBySeed:
    """Return what the same seed got before."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], torch.Tensor] = {}

    def __call__(self, probs):
        key = torch.initial_seed(), len(probs)
        return self.known.setdefault(key, honest(probs))


WRONG: list[Any] = [
    one_number_for_all_rows,
    one_number_for_two_rows,
    mirrored_numbers,
    evenly_spaced_rows,
    hotter,
    colder,
    no_token_beyond_1024,
    numbers_of_11_bits,
    numbers_of_12_bits,
    numbers_of_13_bits,
    of_half_the_seed,
    of_the_inputs_alone,
    LowDiscrepancy,
    RememberedBySeed,
]


# which case is refused first, and why, depends on the secret and on the cases
@pytest.mark.parametrize("sampler", WRONG)
def test_a_wrong_sampler_is_refused(sampler: Any) -> None:
    run = sampler() if isinstance(sampler, type) else sampler
    assert verdict(PLAIN, run)


@pytest.mark.parametrize("secret", range(4))
def test_what_a_seed_got_before_is_refused_by_any_secret(secret: int) -> None:
    assert verdict(PLAIN, RememberedBySeed(), secret)


@pytest.mark.parametrize(
    ("sampler", "secret"), [(honest, 0), (honest_in_float32, 1), (honest_by_race, 2)]
)
def test_an_honest_sampler_passes(sampler: Sampler, secret: int) -> None:
    assert verdict(PLAIN, sampler, secret) == ""


def filtered(sampler: Sampler) -> Sampler:
    """Return a sampler of the k most probable tokens."""

    def run(probs, top_k):
        vocabulary = probs.shape[1]
        k = torch.where(top_k > 0, top_k, vocabulary).clamp(max=vocabulary)
        weights, tokens = probs.topk(int(k.max()), dim=1)
        rank = torch.arange(weights.shape[1])
        kept = weights.masked_fill(rank >= k[:, None], 0.0)
        return tokens.gather(1, sampler(kept)[:, None]).squeeze(1)

    return run


@pytest.mark.parametrize(
    "sampler", [one_number_for_all_rows, colder, numbers_of_13_bits, LowDiscrepancy()]
)
def test_a_wrong_filtered_sampler_is_refused(sampler: Any) -> None:
    assert verdict(TOP_K, filtered(sampler))


def test_an_honest_filtered_sampler_passes() -> None:
    assert verdict(TOP_K, filtered(honest)) == ""


_SECOND_STREAM = torch.Generator().manual_seed(3)


def seeded_by_itself(probs):
    u = torch.rand(len(probs), dtype=torch.float64, generator=_SECOND_STREAM)
    return inverse(probs, u)


@pytest.mark.parametrize(
    ("run", "column"), [(honest_in_float32, "yes"), (seeded_by_itself, "no")]
)
def test_a_sampler_is_asked_for_the_tokens_of_one_seed(run, column):
    session: Any = InProcess(run)
    asking = Asking(session, asked(PLAIN), CPU, False, SECRET, lambda: session, 0.0)
    found = batch(asking)
    others = dict.fromkeys(COLUMNS[1:], "-")
    assert found.details == {"repeats": column, **others}
    assert found.verdict == {"yes": HOLDS, "no": BROKEN}[column]
