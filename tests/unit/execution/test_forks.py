"""Tasks in forks: in order on request, and another's fault is no task's own."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from generator.execution.child import Link
from generator.execution.forks import Forks
from generator.execution.outcome import CONTEXT_LOST, CRASHED, DONE, OUT_OF_MEMORY


def test_outcomes_come_in_order_and_no_fork_runs_far_ahead(tmp_path):
    def work(place: int, link: Link) -> int:
        (tmp_path / str(place)).touch()
        if place == 0:
            time.sleep(1.0)
        return place * place

    forks = Forks(2, 30.0, in_order=True)
    outcomes = forks.run(work, range(200))
    assert next(outcomes)[1].value == 0
    assert len(list(tmp_path.iterdir())) < 40
    assert [(place, o.value) for place, o in outcomes] == [
        (n, n * n) for n in range(1, 200)
    ]


def test_one_that_dies_by_what_another_left_behind_runs_again(tmp_path):
    began = tmp_path / "began"

    def work(place: int, link: Link) -> int:
        if place == 0:

            def leave() -> None:
                while not began.exists():
                    time.sleep(0.01)
                os._exit(3)

            threading.Thread(target=leave, daemon=True).start()
        elif place == 1 and not began.exists():
            began.touch()
            signal.pause()
        (tmp_path / f"{place} {os.getpid()}").touch()
        return place

    outcomes = dict(Forks(1, 30.0).run(work, range(4)))
    assert {p: (o.status, o.value) for p, o in outcomes.items()} == {
        p: (DONE, p) for p in range(4)
    }


def test_its_own_fault_is_told_at_once(tmp_path):
    def work(place: int, link: Link) -> int:
        with (tmp_path / str(place)).open("a") as file:
            file.write("x")
        os._exit(4)

    outcomes = dict(Forks(2, 30.0, per_fork=1).run(work, range(3)))
    assert {o.status for o in outcomes.values()} == {CRASHED}
    assert [Path(tmp_path, str(p)).read_text() for p in range(3)] == ["x"] * 3


def test_one_that_is_killed_again_and_again_is_told():
    def work(place: int, link: Link) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    ((_, outcome),) = Forks(1, 30.0).run(work, range(1))
    assert (outcome.status, outcome.why) == (CRASHED, "ended its process by SIGKILL")


def test_memory_that_another_kept_is_there_for_a_second_attempt():
    kept: list[int] = []

    def work(place: int, link: Link) -> int:
        kept.append(place)
        if len(kept) > 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return place

    outcomes = dict(Forks(1, 30.0).run(work, range(2)))
    assert {o.status for o in outcomes.values()} == {DONE}

    def always(place: int, link: Link) -> int:
        raise MemoryError

    ((_, outcome),) = Forks(1, 30.0).run(always, range(1))
    assert (outcome.status, outcome.why) == (OUT_OF_MEMORY, "MemoryError: ")


def test_a_lost_cuda_context_is_told_and_costs_no_other_task(monkeypatch):
    from generator.execution import forks

    broken: list[int] = []
    monkeypatch.setattr(forks, "_lost_context", lambda: "gone" if broken else "")

    def work(place: int, link: Link) -> int:
        if place == 1:
            broken.append(place)
        return place

    outcomes = dict(Forks(1, 30.0).run(work, range(3)))
    assert outcomes[1].status == CONTEXT_LOST
    assert outcomes[1].why == "CUDA context lost: gone"
    assert [outcomes[place].value for place in (0, 2)] == [0, 2]


def test_the_end_of_a_task_can_t_be_told_for_another():
    def work(place: int, link: Link) -> int:
        if place == 0:
            link.send({"event": "done", "place": 1, "value": 7})
            signal.pause()
        return place

    outcomes = dict(Forks(1, 30.0).run(work, range(2)))
    assert outcomes[0].why == "code of the definition reported the end of the work"
    assert outcomes[1].value == 1


@pytest.mark.parametrize("stay", [True, False])
def test_forks_stay_for_the_next_run_where_that_is_asked(stay):
    def work(task: str, link: Link) -> tuple[int, str]:
        return os.getpid(), task

    forks = Forks(1, 30.0, per_fork=3, stay=stay)
    pids = []
    for tasks in (["a", "b"], ["c", "d"]):
        outcomes = [outcome for _, outcome in forks.run(work, tasks)]
        assert [outcome.value[1] for outcome in outcomes] == tasks
        pids += [outcome.value[0] for outcome in outcomes]
    forks.close()
    # the third task is its last
    assert (len({*pids[:3]}), len({*pids})) == (1 if stay else 2, 2)


def test_a_fork_that_died_while_it_waited_costs_no_task():
    def work(task: int, link: Link) -> int:
        return os.getpid() if task else -1

    forks = Forks(1, 30.0, stay=True)
    ((_, first),) = forks.run(work, [1])
    os.kill(first.value, signal.SIGKILL)
    ((_, second),) = forks.run(work, [1])
    forks.close()
    assert second.status == DONE
    assert second.value != first.value


def test_no_tasks_are_no_trouble():
    assert list(Forks(4, 1.0).run(lambda place, link: place, [])) == []
