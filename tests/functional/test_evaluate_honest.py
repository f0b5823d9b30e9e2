"""No honest habit is refused: each is a right solution, and PASSED."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.functional.audit_command import audit, dataset
from tests.functional.habit import Habit
from tests.functional.hacks import PASSED
from tests.functional.honest import HABITS
from tests.functional.test_evaluate_hacks import solution


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return name → verdict of all habits."""
    root = dataset(tmp_path_factory.mktemp("dataset"))
    folder = tmp_path_factory.mktemp("solutions")
    for number, habit in enumerate(HABITS):
        if habit.lacks:
            continue
        value = solution(habit.name, habit.source, habit.passes_outputs)
        (folder / f"{number:03}.json").write_text(json.dumps(value))
    chosen = sorted(map(str, folder.glob("*.json")))
    options = ("--dataset", root, "--timeout", "120", "--jobs", "2", "--json")
    _, out, err = audit(*chosen, *options, command="evaluate")
    assert out, err
    return {v["solution"]: v for v in json.loads(out)["solutions"]}


@pytest.mark.slow
@pytest.mark.parametrize("habit", HABITS, ids=[habit.name for habit in HABITS])
def test_honest_habit_passes(habit: Habit, verdicts: dict[str, Any]) -> None:
    if habit.lacks:
        pytest.skip(habit.lacks)
    found = verdicts[habit.name]
    assert found["verdict"] == PASSED, found["reason"]
