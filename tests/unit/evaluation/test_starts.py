"""Starts follow each other: who is closed, begun and refused, and what counts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from generator.evaluation import starts
from generator.evaluation.seconds_of import SecondsOf
from generator.evaluation.starts import Starts
from generator.evaluation.verdict import (
    COMPILE_ERROR,
    INCORRECT_NUMERICAL,
    PASSED,
    CaseVerdict,
    Refused,
)

CASES = [CaseVerdict("w", PASSED), CaseVerdict("v", PASSED), CaseVerdict("own", PASSED)]
TIMED = ("w", "v")
TIMING = {
    "latency_ms": 0.025,
    "error_ms": 1.9e-3,
    "spread_ms": 1e-3,
    "iterations": 60,
    "settled": True,
    "host_ms": 0.1,
    "empty_ms": 0.28,
    "kernel_ms": 3e-3,
    "void": 0,
    "rivals": {},
    "seconds_of": {"outputs": 0.1},
}


class Fakes:
    """Sessions and rivals that note what becomes of them, and what is timed of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cores: int = 16) -> None:
        self.events: list[str] = []
        self.timed: list[tuple[str, str, Any, tuple[str, ...], bool, bool]] = []
        self.answers: dict[int, Any] = {}
        self.sessions = self.fields = 0
        self.only_moves = False
        self.reference = SimpleNamespace(
            close=lambda: self.events.append("reference closed"),
            prepare=lambda: None,
        )
        monkeypatch.setattr(starts, "timed", self._timed)
        monkeypatch.setattr(starts, "layouts_of", lambda _: [])
        rounds = dict.fromkeys(TIMED)
        monkeypatch.setattr(starts, "timed_rounds", lambda _: rounds)
        monkeypatch.setattr(starts, "fractions_of", lambda *_: {"light": "of all"})
        monkeypatch.setattr(starts, "usable_cores", lambda: cores)

    def session(self) -> Any:
        self.sessions += 1
        name = f"session {self.sessions}"
        self.events.append(f"{name} open")
        return SimpleNamespace(
            name=name,
            allow=lambda seconds: self.events.append(f"{name} has {seconds:g} s"),
            close=lambda: self.events.append(f"{name} closed"),
        )

    def field(self) -> Any:
        self.fields += 1
        name = f"rivals {self.fields}"
        return SimpleNamespace(
            name=name,
            device="cpu",
            reference=self.reference,
            begin=lambda _: self.events.append(f"{name} there"),
            close=lambda: self.events.append(f"{name} closed"),
        )

    def _timed(
        self,
        session: Any,
        _asked: Any,
        cases: Any,
        _others: Any,
        _passes: bool,
        secret: Any,
        field: Any,
        notes: list[str],
        *,
        is_first: bool,
        is_last: bool,
    ) -> list[CaseVerdict]:
        names = tuple(case.case for case in cases)
        self.timed.append((session.name, field.name, secret, names, is_first, is_last))
        self.events.append("timed")
        answer = self.answers.get(len(self.timed), {})
        found = []
        for case in cases:
            one = answer.get(case.case, TIMING)
            if isinstance(one, CaseVerdict):
                found.append(one)
            elif case.case in TIMED and one is not None:
                found.append(replace(case, timing=one))
            else:
                notes += [f"{case.case}: not timed"] if case.case in TIMED else []
                found.append(replace(case, timing=None))
        return found

    def run(
        self, count: int, reopens: Any = None
    ) -> tuple[dict[str, CaseVerdict], list[str], Starts]:
        secrets = iter(range(100, 200))
        first = self.session()
        by_whom = (reopens or self.session, 7.0, self.field, lambda: next(secrets))
        op = SimpleNamespace(only_moves=self.only_moves)
        asked: Any = SimpleNamespace(subject=SimpleNamespace(op=op))
        one, notes = Starts(count, first, *by_whom), []  # type: ignore[var-annotated]
        about = (asked, CASES, {}, True, 5, self.field(), notes, SecondsOf())
        return {case.case: case for case in one.timed(*about)}, notes, one


def test_each_start_has_new_processes_and_a_secret_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fakes = Fakes(monkeypatch)
    found, notes, run = fakes.run(3)
    sessions, fields, secrets, _, first, last = zip(*fakes.timed, strict=True)
    assert sessions == ("session 1", "session 2", "session 3")
    assert fields == ("rivals 1", "rivals 2", "rivals 3")
    assert secrets == (5, 100, 101)
    assert first == (True, False, False)
    assert last == (False, False, True)
    assert fakes.events.count("reference closed") == 2
    assert run.session.name == "session 3"
    timing = found["w"].timing
    assert timing is not None
    assert timing["starts"] == 3
    assert timing["light"] == "of all"
    assert timing["seconds_of"] == {"outputs": 0.3}
    assert len(timing["by_start"]) == 3
    assert found["own"].timing is None
    assert notes == []


def test_nothing_of_one_start_is_there_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fakes = Fakes(monkeypatch)
    fakes.run(3)
    events = fakes.events
    for number in (2, 3):
        opened = events.index(f"session {number} open")
        assert events.index(f"session {number - 1} closed") < opened
        assert events.index(f"rivals {number - 1} closed") < opened
        assert f"session {number} has 7 s" in events
    # the last session is its owner's to close
    assert events.count("session 3 closed") == 0
    assert "rivals 3 closed" in events


@pytest.mark.parametrize(
    ("cores", "waves"), [(16, [1, 3]), (4, [1, 2, 1]), (1, [1, 1, 1, 1])]
)
def test_nobody_imports_while_another_is_timed(
    cores: int, waves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = Fakes(monkeypatch, cores)
    fakes.run(4)
    begun, counts = 0, []
    for event in fakes.events:
        begun += "there" in event
        if event == "timed" and begun:
            counts.append(begun)
            begun = 0
    assert counts == waves


def test_what_one_start_refuses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = Fakes(monkeypatch)
    wrong = CaseVerdict("v", INCORRECT_NUMERICAL, "in a timed call: off")
    fakes.answers[2] = {"v": wrong}
    found, _, _ = fakes.run(5)
    assert len(fakes.timed) == 2
    assert found["v"] == replace(wrong, reason="start 2: in a timed call: off")
    # nor has another workload of it a time, and no process is left
    assert [case.timing for case in found.values()] == [None] * 3
    for number in range(1, 6):
        assert f"rivals {number} closed" in fakes.events


def test_what_is_not_built_in_one_start_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fakes = Fakes(monkeypatch)

    def reopens() -> Any:
        raise Refused(COMPILE_ERROR, "no")

    found, _, run = fakes.run(2, reopens)
    assert found["build"] == CaseVerdict("build", COMPILE_ERROR, "start 2: no")
    assert run.session.name == "session 1"
    assert fakes.events.count("rivals 2 closed") == 1


def test_a_start_of_four_may_be_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = Fakes(monkeypatch)
    fakes.answers[2] = {"w": None}
    found, notes, _ = fakes.run(4)
    assert notes == ["start 2: w: not timed"]
    timings = [found[name].timing for name in TIMED]
    assert all(timing is not None for timing in timings)
    assert [(t["starts"], t["starts_untimed"]) for t in timings if t] == [
        (3, 1),
        (4, 0),
    ]


@pytest.mark.parametrize("count", [3, 4, 8])
def test_a_solution_does_not_choose_which_of_its_starts_count(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = Fakes(monkeypatch)
    # one more than may be disturbed, from the first on
    more = count // 4 + 1
    fakes.answers.update({number + 1: {"w": None} for number in range(more)})
    found, notes, _ = fakes.run(count)
    assert found["w"].timing is None
    assert found["v"].timing is not None
    assert len(notes) == more
    # and no further start is spent on it, nor a second one on what is never timed
    names = [names for *_, names, _, _ in fakes.timed]
    assert names[0] == ("w", "v", "own")
    assert names[1:more] == [("w", "v")] * (more - 1)
    assert names[more:] == [("v",)] * (count - more)


def test_nothing_is_started_for_what_is_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fakes = Fakes(monkeypatch)
    fakes.only_moves = True
    fakes.answers[1] = {"w": None, "v": None}
    found, _, _ = fakes.run(8)
    assert len(fakes.timed) == 1
    assert [case.timing for case in found.values()] == [None] * 3


def test_one_start_is_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = Fakes(monkeypatch)
    fakes.answers[1] = {"v": None}
    found, notes, _ = fakes.run(1)
    assert found["w"].timing == {**TIMING, "starts": 1}
    assert notes == ["v: not timed"]
    # its rivals are the next solution's as well
    assert "rivals 1 closed" not in fakes.events
    wrong = CaseVerdict("v", INCORRECT_NUMERICAL, "off")
    fakes.answers[2] = {"v": wrong}
    found, _, _ = fakes.run(1)
    assert found["v"] == wrong
