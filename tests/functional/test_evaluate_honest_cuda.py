"""No honest habit on a GPU is refused; skipped without one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.functional.audit_command import audit, dataset
from tests.functional.habit import Habit
from tests.functional.hacks import PASSED
from tests.functional.honest_cuda import HABITS
from tests.functional.test_evaluate_cuda import why_not
from tests.functional.test_evaluate_hacks import solution

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return name → verdict of the habits whose modules are here."""
    root = dataset(tmp_path_factory.mktemp("dataset"))
    folder = tmp_path_factory.mktemp("solutions")
    for number, habit in enumerate(HABITS):
        if not habit.lacks:
            value = solution(habit.name, habit.source)
            (folder / f"{number:03}.json").write_text(json.dumps(value))
    chosen = sorted(map(str, folder.glob("*.json")))
    options = ("--dataset", root, "--device", "cuda", "--timeout", "200", "--json")
    _, out, err = audit(*chosen, *options, command="evaluate")
    assert out, err
    return {v["solution"]: v for v in json.loads(out)["solutions"]}


@pytest.mark.parametrize("habit", HABITS, ids=[habit.name for habit in HABITS])
def test_honest_habit_passes(habit: Habit, verdicts: dict[str, Any]) -> None:
    if habit.lacks:
        pytest.skip(habit.lacks)
    found = verdicts[habit.name]
    assert found["verdict"] == PASSED, found["reason"]
