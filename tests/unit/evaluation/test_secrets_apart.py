"""What a solution is shown of the judge's draws says nothing of what it is not shown.

Python's generator gives its state away: its first numbers are what they are for a seed,
and 624 words are all of it. So seeds that calls are told come from another one than values.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.clock.fresh_inputs import FreshInputs
from generator.evaluation.draws import draws_of
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of, shuffled
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess

NAME = "rmsnorm_h128"


def seeds_seen(secret: int, count: int) -> list[int]:
    """Return the seeds of a judge's first calls, as a solution reads them."""
    asked = rounds_of(loaded(NAME), [], Path(), CPU, 5)
    seen: list[int] = []

    def run(hidden_states: torch.Tensor, weight: torch.Tensor) -> Any:
        seen.append(torch.initial_seed())
        return torch.empty_like(hidden_states)

    judge = Judge(InProcess(run), asked, CPU, False, secret)
    one = asked.rounds[0][1][0]
    for _ in range(count):
        judge.called(one.inputs, one.filled, 0, one.case.axes)
    return seen


def seed_of_values_from_two_calls(secret: int) -> bool:
    """Take two words that calls told for the two that seed the values of timed calls."""
    draws = [{"x": torch.arange(8.0)}, {"x": torch.arange(8.0) + 1.0}]
    hidden = FreshInputs(draws, "cpu", secret)._bits.initial_seed()
    first, second = seeds_seen(secret, 2)
    return first | (second >> 1) << 32 == hidden


def seed_of_values_by_trying(secret: int) -> bool:
    """Try as many seeds as a GPU hashes in seconds."""
    asked = rounds_of(loaded(NAME), [], Path(), CPU, secret)
    shifts = [one.shift for _, rounds in asked.rounds for one in rounds]
    return any(shift < 2**40 for shift in shifts)


def state_from_what_was_told(secret: int) -> bool:
    """Copy the generator of the seeds by 624 words, and look for what is hidden in it."""
    told, hidden = draws_of(secret, "seeds"), draws_of(secret, "timed values")
    words = [told.getrandbits(32) for _ in range(624)]
    copied = random.Random()
    copied.setstate((3, (*map(untempered, words), 624), None))
    ahead = [copied.getrandbits(32) for _ in range(2_000)]
    assert ahead[:50] == [told.getrandbits(32) for _ in range(50)], "it is a copy"
    return not {hidden.getrandbits(32) for _ in range(2_000)}.isdisjoint(ahead)


GUESSES = (
    seed_of_values_from_two_calls,
    seed_of_values_by_trying,
    state_from_what_was_told,
)


@pytest.mark.parametrize("secret", range(12))
@pytest.mark.parametrize("guess", GUESSES)
def test_what_is_hidden_does_not_follow_from_what_is_shown(guess, secret):
    assert not guess(secret)


def test_order_of_the_questions_does_not_begin_as_the_rounds_do():
    order = shuffled(range(600), 21)
    assert order != shuffled(range(600), 22)
    same = random.Random(21)
    known = list(range(600))
    same.shuffle(known)
    assert order != known


def test_one_secret_makes_other_numbers_for_each_purpose():
    purposes = ("places", "seeds", "timed values", "timed calls", "rounds", "order")
    first = {draws_of(3, purpose).getrandbits(64) for purpose in purposes}
    assert len(first) == len(purposes)
    again = {draws_of(3, purpose).getrandbits(64) for purpose in purposes}
    assert first == again


def untempered(word: int) -> int:
    """Return the state of MT19937 that a number of it comes from."""
    word ^= word >> 18
    word ^= word << 15 & 0xEFC60000
    low = word
    for _ in range(4):
        low = word ^ (low << 7 & 0x9D2C5680)
    high = low
    for _ in range(2):
        high = low ^ high >> 11
    return high
