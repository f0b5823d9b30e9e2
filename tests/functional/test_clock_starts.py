"""Several starts of solutions in their sandbox, on a CPU: new processes, no memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.evaluation import task
from generator.evaluation.session import Session
from generator.evaluation.solution import Solution
from tests.functional.hacks import RIGHT
from tests.functional.hacks_of_state import LEAVES
from tests.functional.test_clock import LIES, WRITES, timed
from tests.functional.test_evaluate_hacks import solution

pytestmark = pytest.mark.slow

# right, unless something of an earlier start is there; it leaves all that it can
REMEMBERS = f"""{RIGHT}{LEAVES}
KNOWN, LEFT = found(), []

def run(x, weight, out):
    if not LEFT:
        LEFT.append(everywhere(b"mark" * 3000))
        assert found() is not None, "what it leaves is not there"
    if KNOWN is None:
        out.copy_(norm(x, weight))
"""


def _opens_another_in_start(
    number: int, source: str, monkeypatch: pytest.MonkeyPatch
) -> list[Session]:
    """Have one start build another source, as one does whose behaviour is of a start."""
    usual, sessions = task._Bench._opened, []

    def opened(bench: Any, one: Solution, asked: Any) -> Session:
        text = source if len(sessions) == number - 1 else one.value["sources"][0]
        if isinstance(text, str):
            path = one.value["sources"][0]["path"]
            sources = [{"path": path, "content": text}]
            one = Solution({**one.value, "sources": sources}, one.path)
        sessions.append(usual(bench, one, asked))
        return sessions[-1]

    monkeypatch.setattr(task._Bench, "_opened", opened)
    return sessions


def test_a_start_has_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = _opens_another_in_start(0, "", monkeypatch)
    values = solution("first", WRITES, True), solution("second", WRITES, True)
    verdicts = timed(tmp_path, *values, starts=2)
    for name in ("first", "second"):
        assert verdicts[name]["verdict"] == "PASSED", verdicts[name]["reason"]
        (case,) = verdicts[name]["cases"]
        timing = case["timing"]
        assert (timing["starts"], len(timing["by_start"])) == (2, 2)
        assert timing["iterations"] == sum(s["iterations"] for s in timing["by_start"])
        assert set(timing["rivals"]) == {"reference"}
        assert timing["speedup_error"] > 0.0
    assert len(sessions) == 4


def test_no_start_remembers_another(tmp_path: Path) -> None:
    verdicts = timed(tmp_path, solution("remembers", REMEMBERS, True), starts=2)
    one = verdicts["remembers"]
    assert one["verdict"] == "PASSED", one["reason"]
    assert one["cases"][0]["timing"]["starts"] == 2


def test_a_lie_in_one_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _opens_another_in_start(2, LIES["stops"], monkeypatch)
    one = timed(tmp_path, solution("lies", WRITES, True), starts=2)["lies"]
    assert one["verdict"] in ("INCORRECT_NUMERICAL", "REWARD_HACK"), one
    assert "start 2: in a timed call: " in one["reason"]
    assert one["cases"][0]["timing"] is None
