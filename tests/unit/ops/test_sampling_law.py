"""The exact law of a draw, against loops over sorted tokens with fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from generator.ops.op_types.sampling.law import SLACK, law_of, laws_of


def by_hand(weights, top_k, top_p):
    """Return {token: probability} of a row without ties, exactly."""
    ranked = sorted(range(len(weights)), key=lambda i: -weights[i])
    ranked = [i for i in ranked if weights[i] > 0][: top_k if top_k else None]
    mass = sum(Fraction(weights[i]) for i in ranked)
    kept, before = [], Fraction(0)
    for i in ranked:
        if top_p is not None and kept and not before < Fraction(top_p) * mass:
            break
        kept.append(i)
        before += Fraction(weights[i])
    return {i: Fraction(weights[i]) / before for i in kept}


ROW = [8, 1, 64, 0, 32, 16, 7, 0]  # of 128


@pytest.mark.parametrize("top_k", [None, 1, 2, 3, 4, 6, 7, 100])
@pytest.mark.parametrize("top_p", [None, 0.0, 0.3, 0.6, 0.82, 0.97, 1.0])
def test_a_row_without_ties_has_one_law(top_k, top_p):
    law = law_of(torch.tensor(ROW) / 128, top_k, top_p)
    expected = by_hand(ROW, top_k, top_p)
    assert dict(zip(law.tokens.tolist(), range(len(law.tokens)), strict=True)) == {
        token: rank for rank, token in enumerate(expected)
    }
    assert len(law.free) == 0
    assert law.free_share == (0.0, 0.0)
    exact = [float(value) for value in expected.values()]
    found = law.weights / law.weights.sum()
    torch.testing.assert_close(
        found, torch.tensor(exact, dtype=torch.float64), rtol=1e-12, atol=0
    )


def law(weights, top_k=None, top_p=None):
    total = sum(weights)
    assert total & (total - 1) == 0
    return law_of(torch.tensor(weights) / total, top_k, top_p)


def test_a_token_whose_predecessors_reach_p_is_out_and_the_crossing_one_is_in():
    assert law([4, 2, 1, 1], top_p=0.5).tokens.tolist() == [0]
    assert law([4, 2, 1, 1], top_p=0.5000001).tokens.tolist() == [0, 1]


def test_of_a_tie_at_k_as_many_as_fit_or_all_may_be_kept():
    found = law([4, 4, 8, 4, 4, 8], top_k=3)
    assert found.tokens.tolist() == [2, 5]
    assert sorted(found.free.tolist()) == [0, 1, 3, 4]
    assert found.free_share == (4 / 20, 16 / 32)
    assert not len(law([4, 4, 8, 4, 4, 8], top_k=6).free)
    assert not len(law([4, 4, 8, 4, 4, 8], top_k=2).free)


def test_of_a_tie_at_p_as_many_as_reach_it_or_all_may_be_kept():
    found = law([8, 2, 2, 2, 2], top_p=0.7)
    assert found.tokens.tolist() == [0]
    assert found.free_share == (4 / 12, 8 / 16)
    # the last of them is needed, so they are all kept for sure
    assert not len(law([8, 2, 2, 2, 2], top_p=0.95).free)


def test_argmax_may_be_any_of_those_that_tie():
    found = law([1, 3, 3, 1], top_p=0.0)
    assert found.tokens.tolist() == []
    assert sorted(found.free.tolist()) == [1, 2]
    assert found.free_share == (1.0, 1.0)
    assert law([1, 4, 2, 1], top_p=-1.0).tokens.tolist() == [1]


def test_p_is_a_share_of_what_k_kept():
    # 0.6 of 96 is crossed by the first; 0.6 of 128 by the second
    assert law([64, 32, 16, 16], top_k=2, top_p=0.6).tokens.tolist() == [0]
    assert law([64, 32, 16, 16], top_p=0.6).tokens.tolist() == [0, 1]


def test_near_the_boundary_inexact_tokens_are_free():
    probs = torch.tensor([0.1, 0.6, 0.3])
    near = law_of(probs, None, 0.6 + SLACK / 2)
    assert near.tokens.tolist() == [1]
    assert near.free.tolist() == [2]
    assert law_of(probs, None, 0.6 + 2 * SLACK).tokens.tolist() == [1, 2]
    assert law_of(probs, None, 0.6 - 2 * SLACK).tokens.tolist() == [1]
    # p behind k divides, which rounds; p alone adds multiples of 2^-24 exactly
    assert law([2, 1, 1], top_k=2, top_p=2 / 3).free.tolist() != []
    assert law([4, 2, 1, 1], top_k=None, top_p=0.75).free.tolist() == []


@pytest.mark.parametrize(
    ("weights", "top_k"),
    [
        ([4, 3, 1, *[0.5] * 16], 3),
        ([6, 4, 3, 2, 1], 5),
        ([6, 4, 3, 2, 1], 9),
        ([6, 4, 3, 2, 1], 0),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_a_power_of_two_that_k_kept_is_divided_by_exactly(weights, top_k, count):
    # half of all, or everything
    top_p = sum(weights[:count]) / sum(weights[: top_k or None])
    found = law_of(torch.tensor(weights) / 16, top_k, top_p)
    assert found.free.tolist() == []
    assert found.tokens.tolist() == list(range(count))


def test_inexact_probabilities_that_add_up_to_a_power_of_two_keep_their_slack():
    probs = torch.tensor([0.25, 0.125 + 2**-26, 0.125 - 2**-26, *[0.05] * 10])
    assert float(probs[:3].double().sum()) == 0.5
    assert law_of(probs, 3, 0.5).free.tolist() == [1]


def test_an_illegal_token_is_objected_to():
    found = law([8, 4, 0, 2, 2], top_k=2, top_p=0.5)
    assert str(found) == "k = 2, p = 0.5"
    assert found.is_legal(torch.tensor([0, 1, 2, 9])).tolist() == [True] + 3 * [False]
    assert found.objection(9) == "is none of the 5 tokens"
    assert found.objection(2) == "has probability 0"
    assert found.objection(3) == "is number 3 by probability"
    assert found.objection(1) == "comes after tokens that hold 0.5 of all"


def test_each_kind_of_row_has_a_law():
    probs = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])
    top_k = torch.tensor([1, 3, 1], dtype=torch.int32)
    made = laws_of({"probs": probs, "top_k": top_k})
    assert made.row_law.tolist() == [0, 1, 0]
    assert [len(law.tokens) for law in made.laws] == [1, 3]
    assert [law.top_k for law in made.laws] == [1, 3]
    assert made.laws[0].top_p is None
