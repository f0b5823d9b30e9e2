"""χ²: the p-values, the pooling, and how often it is wrong."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.chi_squared import (
    FEWEST,
    Score,
    bins,
    coincidences,
    goodness,
    homogeneity,
    share_score,
    tempered,
    total,
    unseen,
)


@pytest.mark.parametrize("statistic", [0.1, 1.0, 3.84, 20.0, 60.0])
def test_p_values_are_those_known_in_closed_form(statistic):
    one = Score(statistic, 1).p_value
    assert one == pytest.approx(math.erfc(math.sqrt(statistic / 2)), rel=1e-9)
    two = Score(statistic, 2).p_value
    assert two == pytest.approx(math.exp(-statistic / 2), rel=1e-9)
    assert Score(0.0, 0).p_value == 1.0


def test_scores_of_independent_samples_add_up():
    assert total([Score(3.0, 2), Score(4.5, 1)]) == Score(7.5, 3)


@pytest.mark.parametrize("seed", range(5))
def test_every_bin_is_expected_often_enough(seed):
    torch.manual_seed(seed)
    expected = torch.rand(3000).double() ** 4 * 20
    where = bins(expected)
    sums = torch.zeros(int(where.max()) + 1).double().index_add_(0, where, expected)
    assert bool((sums >= FEWEST).all())
    assert sums.sum() == pytest.approx(expected.sum())
    # what is expected often has a bin of its own, and no pool is large
    often = expected >= FEWEST
    assert where[often].unique().numel() == int(often.sum())
    assert float(sums[int(often.sum()) :].max()) < 6 * FEWEST


def test_little_that_is_rare_joins_a_bin():
    assert bins(torch.tensor([9.0, 8.0, 1.0, 2.0])).tolist() == [0, 1, 1, 1]
    assert bins(torch.tensor([1.0, 2.0])).tolist() == [0, 0]
    assert bins(torch.tensor([4.0, 3.0])).tolist() == [0, 0]


def test_a_score_by_hand():
    score = goodness(torch.tensor([30, 50, 20]), torch.tensor([1.0, 2.0, 1.0]).double())
    ratio = 2 * (30 * math.log(30 / 25) + 20 * math.log(20 / 25))
    williams = 1 + (1 / 25 + 1 / 50 + 1 / 25 - 1 / 100) / (6 * 2)
    assert score.statistic == pytest.approx(ratio / williams)
    assert (score.freedom, score.both) == (2, True)
    assert goodness(torch.tensor([0, 0]), torch.ones(2).double()) == Score(0.0, 0)


def test_two_samples_by_hand():
    weights = torch.ones(2).double()
    score = homogeneity(torch.tensor([60, 40]), torch.tensor([40, 60]), weights)
    assert score.statistic == pytest.approx(8.0)
    assert score.freedom == 1
    same = homogeneity(torch.tensor([60, 40]), torch.tensor([120, 80]), weights)
    assert same.statistic == pytest.approx(0.0)


def test_a_share_is_held_against_the_nearer_bound():
    assert share_score(30, 100, 0.2, 0.4).p_value == 1.0
    distance = 0.5 * math.log(0.5 / 0.4) + 0.5 * math.log(0.5 / 0.6)
    above = share_score(50, 100, 0.2, 0.4).p_value
    assert above == pytest.approx(min(1.0, 2 * math.exp(-100 * distance)))
    assert share_score(0, 100, 0.2, 0.4).p_value == pytest.approx(2 * 0.8**100)
    # what is certain never fails, what is impossible never comes
    assert share_score(9, 9, 1.0, 1.0).p_value == 1.0
    assert share_score(1, 9, 0.0, 0.0).p_value < 1e-200


@pytest.mark.parametrize(("count", "chance"), [(7, 0.3), (2, 0.01), (0, 0.2)])
def test_a_share_is_never_called_less_probable_than_it_is(count, chance):
    draws = 30
    masses = [
        math.comb(draws, n) * chance**n * (1 - chance) ** (draws - n)
        for n in range(draws + 1)
    ]
    exact = min(sum(masses[: count + 1]), sum(masses[count:]))
    assert share_score(count, draws, chance, chance).p_value >= min(1.0, exact)


def test_both_tails_of_many_bins_count_and_one_of_few():
    assert Score(1.0, 40, both=True).p_value < 1e-12
    assert Score(1.0, 40).p_value == pytest.approx(1.0)
    assert Score(0.0, 3, both=True).p_value == 1.0
    even = torch.full((64,), 100)
    assert goodness(even, torch.ones(64).double()).p_value < 1e-30


def test_temperature_is_seen_in_both_directions():
    weights = torch.cat([torch.tensor([2048.0]), torch.ones(2048)]).double()
    for power in (0.95, 1.05):
        counts = torch.zeros(2049, dtype=torch.int64)
        tail = 2048.0 / (2048.0 + 2048.0**power)
        counts[0], counts[1] = round(4000 * (1 - tail)), round(4000 * tail)
        assert tempered(counts, weights).p_value < 1e-15
    counts[0], counts[1] = 2010, 1990
    assert tempered(counts, weights).p_value > 0.1
    assert tempered(counts, torch.ones(2049).double()).freedom == 0


def test_tempered_is_chernoffs_bound_of_a_coin():
    # of two tokens the mean of ln w is how often the first came
    weights = torch.tensor([3.0, 1.0]).double()
    one = tempered(torch.tensor([90, 10]), weights).p_value
    assert one == pytest.approx(share_score(90, 100, 0.75, 0.75).p_value, rel=1e-6)


def test_coincidences_are_too_many_or_too_few():
    weights = torch.ones(8192).double()
    torch.manual_seed(0)
    draws = torch.randint(8192, (1000,))
    honest = torch.bincount(draws, minlength=8192)
    assert coincidences(honest, weights).p_value > 1e-3
    few_bits = torch.bincount(draws // 4 * 4, minlength=8192)
    assert coincidences(few_bits, weights).p_value < 1e-9
    avoiding = torch.zeros(8192, dtype=torch.int64)
    avoiding[:1000] = 1
    assert coincidences(avoiding, weights).p_value < 1e-9


def drawn(weights, draws):
    tokens = torch.multinomial(weights, draws, replacement=True)
    return torch.bincount(tokens, minlength=len(weights))


@pytest.mark.parametrize(
    ("counts", "chance"),
    [
        ([0, 3, 1], 0.5**4),
        ([2, 0, 2], 0.5**4 + 2 * 0.75**4),
        ([4, 0, 0], 0.5**4 + 2 * 0.75**4),
        ([2, 1, 1], 1.0),
        ([0, 0, 0], 1.0),
    ],
)
def test_a_missing_token_is_as_probable_as_the_sum_of_chances_at_most(counts, chance):
    weights = torch.tensor([4.0, 2.0, 2.0], dtype=torch.float64)
    assert unseen(torch.tensor(counts), weights).p_value == pytest.approx(chance)


def test_honest_samples_miss_tokens_no_more_often_than_is_said():
    torch.manual_seed(0)
    weights = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0, 1.0], dtype=torch.float64)
    below = {0.5: 0, 0.1: 0, 0.02: 0}
    for _ in range(1000):
        counts = torch.multinomial(weights, 20, True).bincount(minlength=6)
        p_value = unseen(counts, weights).p_value
        for level in below:
            below[level] += p_value <= level
    assert below[0.5] > below[0.02] > 0
    # within three standard deviations
    for level, count in below.items():
        assert count <= 1000 * level + 3 * math.sqrt(1000 * level)


def test_honest_samples_have_evenly_spread_p_values():
    torch.manual_seed(1)
    weights = torch.rand(40).double() + 0.1
    p = torch.tensor(
        [goodness(drawn(weights, 500), weights).p_value for _ in range(1000)]
    )
    assert float(p.mean()) == pytest.approx(0.5, abs=0.03)
    assert float((p < 0.1).double().mean()) == pytest.approx(0.1, abs=0.03)
    assert float(p.min()) > 1e-6


# what generator/ops/op_types/sampling/op.py promises: draws, weights, from which token to which
EVEN = [38 - rank // 2 for rank in range(32)]
POWER = {
    "large": (49152, [481, 479], 0, 1),
    "medium": (6272, EVEN, 0, 1),
    "medium from light to heavy": (6272, EVEN, 31, 0),
}


@pytest.mark.parametrize("name", POWER)
def test_two_percent_are_nearly_always_seen(name):
    draws, weights, source, target = POWER[name]
    torch.manual_seed(2)
    law = torch.tensor(weights).double()
    shifted = law / law.sum()
    shifted[source] -= 0.02
    shifted[target] += 0.02
    seen = [goodness(drawn(shifted, draws), law).p_value for _ in range(300)]
    # ten tests share the significance, more than a case has
    assert sum(p <= 1e-6 / 10 for p in seen) >= 297
