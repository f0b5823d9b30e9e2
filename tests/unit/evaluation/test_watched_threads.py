"""A thread's state and count of runs are read whatever its name is, and without counts."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from generator.evaluation.worker import thread_in

STAT = "7 ({name}) T 1 7 7 0 -1 64 1 2 3 4 {user} {system} 0 0 20 0 1 0 9 4096 1"


def folder(at: Path, name: str, *, counts: bool, user: int = 5) -> str:
    (at / "stat").write_text(STAT.format(name=name, user=user, system=6))
    if counts:
        (at / "schedstat").write_text("100 200 31\n")
    return str(at)


@pytest.mark.parametrize("name", ["python", ") R 1 (x", "a b) Z", "\n"])
def test_a_name_is_no_state(tmp_path: Path, name: str) -> None:
    assert thread_in(folder(tmp_path, name, counts=True)) == (name, "T", "31")


def test_without_counts_its_time_says_that_it_ran(tmp_path: Path) -> None:
    before = thread_in(folder(tmp_path, "x", counts=False))
    assert before == ("x", "T", "5 6")
    assert thread_in(folder(tmp_path, "x", counts=False, user=9)) != before


def test_what_is_gone_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        thread_in(str(tmp_path))


def test_a_thread_that_runs_has_another_count() -> None:
    me = f"/proc/self/task/{threading.get_native_id()}"
    before = thread_in(me)
    time.sleep(0.01)
    assert thread_in(me)[2] != before[2]
