"""Other seeds are other inputs and other draws; what chance explains is no alarm."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from generator.dataset.definition import LoadedAxis, LoadedDefinition
from generator.dataset.paths import DatasetFile
from generator.mutation.seeds import Seeded, seeded
from generator.mutation.seeds_result import LOW, Alarm, SeedsResult, most_by_chance
from generator.mutation.tasks import seeds_task
from tests.builders import loaded, replaced, resized_json, write_dataset

NORM = loaded("rmsnorm_h128")
PAGES, SINGLE = (f"gqa_paged_decode_h6_kv1_d128_ps{size}" for size in (64, 1))


def nothing(case: str, seed: int) -> None:
    """Stand in for who wants to know where it is."""


def of(definition: LoadedDefinition, *siblings: LoadedDefinition) -> Seeded:
    return seeded(definition, [definition, *siblings])[0]


def red(text: str, *seeds: int) -> list[Alarm]:
    asked = of(replace(NORM, reference=text))
    return list(asked.alarms(seeds, nothing))


def test_a_seed_decides_what_inputs_are():
    # red where the first bits are those that the seed made them
    text = replaced(
        NORM.reference,
        "    x = hidden_states.float()\n",
        "    x = hidden_states.float()\n"
        "    raise ValueError(hidden_states.flatten()[0].item())\n",
    )
    found = {
        (alarm.case, alarm.seed): alarm.why
        for alarm in red(text, 1, 2, 3)
        if alarm.test == "test_determinism"
    }
    (batch,) = {case for case, _ in found if case == "batch"}
    assert len({found[batch, seed] for seed in (1, 2, 3)}) == 3
    assert {
        (alarm.case, alarm.seed): alarm.why
        for alarm in red(text, 2)
        if alarm.test == "test_determinism"
    } == {place: why for place, why in found.items() if place[1] == 2}


def test_a_seed_and_a_case_decide_what_is_drawn():
    text = replaced(
        NORM.reference,
        "    x = hidden_states.float()\n",
        "    x = hidden_states.float()\n    raise ValueError(torch.initial_seed())\n",
    )
    alarms = red(text, 1, 2)
    drawn = {
        (alarm.case, alarm.seed): alarm.why
        for alarm in alarms
        if alarm.test == "test_output_shape"
    }
    assert len(drawn) == len(set(drawn.values())) > 2


def small(name: str) -> LoadedDefinition:
    """Return a definition of few heads and columns."""
    definition = loaded(name)
    axes = {**definition.axes, "head_dim": LoadedAxis("head_dim", 16)}
    return replace(definition, axes=axes)


def test_relations_hold_a_reference_against_others_of_its_file():
    alone = of(small(PAGES))
    assert not list(alone.alarms([1], nothing))
    beside = of(small(PAGES), small(SINGLE))
    assert not list(beside.alarms([1], nothing))
    assert beside.tests["test_metamorphic"] > alone.tests["test_metamorphic"] > 0
    assert beside.tests["test_matches_oracle"] == alone.tests["test_matches_oracle"]


def test_what_does_not_fit_is_skipped_with_its_size():
    asked = of(NORM)
    asked.share = 0.0
    assert not list(asked.alarms([1, 2], nothing))
    assert not asked.tests
    assert all(re.search(r"needs \d\.\d GiB", reason) for reason in asked.skipped)
    assert asked.skipped


def tail(count: int, probability: float, above: int) -> float:
    return sum(
        math.comb(count, k) * probability**k * (1 - probability) ** (count - k)
        for k in range(above + 1, count + 1)
    )


@pytest.mark.parametrize(
    ("count", "probability", "rare"),
    [
        (0, LOW, 1e-6),
        (1, LOW, 1e-6),
        (500, LOW, 1e-6),
        (40, 0.3, 0.01),
        (10500, LOW, 1e-6),
    ],
)
def test_the_most_that_chance_explains_is_the_binomial_bound(count, probability, rare):
    most = most_by_chance(count, probability, rare)
    if count < 1000:
        assert tail(count, probability, most) <= rare
        assert most == 0 or tail(count, probability, most - 1) > rare
    assert count * probability <= most + 1 <= count + 1


RIGHT = SeedsResult("d", "op", "key", (1, 50), {"test_contract": 50}, statistical=500)


def test_small_p_values_that_chance_does_not_explain_are_an_alarm():
    most = RIGHT.low_by_chance
    assert replace(RIGHT, low=most).is_fine
    assert not replace(RIGHT, low=most + 1).is_fine
    assert 1 <= most <= 10


@pytest.mark.parametrize(
    "change",
    [
        {"alarms": (Alarm("test_contract", "c", 3, "why"),)},
        {"error": "ended its process"},
        {"tests": {}},
    ],
)
def test_a_definition_is_fine_only_where_all_was_asked_and_nothing_is_red(change):
    assert RIGHT.is_fine
    result = replace(RIGHT, **change)
    assert not result.is_fine
    assert SeedsResult.from_dict(result.as_dict()) == result


def test_another_question_or_another_sibling_has_another_key(tmp_path):
    values = [resized_json("rmsnorm_h128", name) for name in ("first", "second")]
    root = write_dataset(tmp_path, values)
    file = DatasetFile("rmsnorm", "first", "definitions/rmsnorm/first.json")
    keys = {
        seeds_task(root, *asked).key(file)
        for asked in ((1, 50), (1, 49), (2, 50), (1, 50, True))
    }
    assert len(keys) == 4
    assert seeds_task(root, 1, 50).key(file) in keys
    other = root / Path("definitions/rmsnorm/second.json")
    other.write_text(other.read_text("utf-8") + " ", "utf-8")
    assert seeds_task(root, 1, 50).key(file) not in keys
