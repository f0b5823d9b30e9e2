"""Whether a case fits: the estimate, and the one sentence where it does not."""

from __future__ import annotations

import pytest
import torch

from generator.running import free_memory
from generator.running.free_memory import needed_bytes
from kernel_judge.definition import Case, Definition, Interface
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from tests.builders import CPU

CUDA = torch.device("cuda:0")
GIB = 2**30
DEFINITION = Definition(
    "d", "op", Interface({"x": "bfloat16[rows, columns]"}, {}), {"columns": 1024}
)


def case(rows: int) -> Case:
    return Case("c", "small", {"rows": rows})


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Run as the only process, also where pytest-xdist runs these tests."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)


def test_workers_share_the_memory_of_a_cpu(monkeypatch):
    needed = needed_bytes(DEFINITION, case(10))
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: 2 * needed - 1)
    assert free_memory.shortage(DEFINITION, case(10), CPU) is None
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    assert str(free_memory.shortage(DEFINITION, case(10), CPU)).endswith(
        " for 2 workers"
    )
    assert free_memory.shortage(DEFINITION, case(10), torch.device("cuda")) is None


def test_what_fits_has_no_shortage(monkeypatch):
    needed = COPIES * tensor_bytes(DEFINITION, case(10))
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: needed)
    assert free_memory.shortage(DEFINITION, case(10), CPU) is None
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: needed - 1)
    assert free_memory.shortage(DEFINITION, case(10), CPU) is not None


def test_the_sentence_has_both_numbers(monkeypatch):
    monkeypatch.setattr(free_memory, "tensor_bytes", lambda *_: int(8.05 * 2**30))
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: 24 * 2**30)
    found = free_memory.shortage(DEFINITION, case(10), CPU)
    assert str(found) == "needs 64.4 GiB, device has 24.0"


def test_nothing_is_allocated_to_judge_a_case_of_petabytes(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: 2**30)
    found = free_memory.shortage(DEFINITION, case(2**40), CPU)
    assert found is not None
    assert str(found).endswith("GiB, device has 1.0")


def test_a_system_that_does_not_say_never_falls_short(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: None)
    assert free_memory.shortage(DEFINITION, case(2**40), CPU) is None


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return a function that says what the system and its container's limit say."""
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "_CGROUP", tmp_path)

    def say(meminfo: str | None = None, limit: str = "", used: str = "") -> None:
        texts = {"meminfo": meminfo, "memory.max": limit, "memory.current": used}
        for name, text in texts.items():
            if text:
                (tmp_path / name).write_text(text)

    return say


def test_the_free_memory_of_the_cpu_is_what_proc_says(system):
    system("MemTotal:  9 kB\nMemAvailable:     2048 kB\n")
    assert free_memory.available_bytes(CPU) == 2 * 2**20


@pytest.mark.parametrize(
    ("limit", "free"), [("700000\n", 400000), ("9999999999\n", 2**21), ("max\n", 2**21)]
)
def test_a_container_may_leave_less_than_the_system(system, limit, free):
    system("MemAvailable: 2048 kB\n", limit, "300000\n")
    assert free_memory.available_bytes(CPU) == free


@pytest.mark.parametrize("text", [None, "MemTotal: 9 kB\n", "MemAvailable: many\n"])
def test_a_system_without_the_figure_says_nothing(system, text):
    system(text)
    assert free_memory.available_bytes(CPU) is None


def test_a_container_says_it_where_the_system_does_not(system):
    system(None, "700000\n", "300000\n")
    assert free_memory.available_bytes(CPU) == 400000


def test_the_free_memory_of_a_gpu_is_asked_of_its_driver(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (5, 9))
    assert free_memory.available_bytes(torch.device("cuda:0")) == 5


def test_an_op_may_count_its_bytes_itself(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda device: 3 * 2**30)

    def peak_bytes(definition, case):
        return case.axes["rows"] * 2**30

    assert needed_bytes(DEFINITION, case(3), peak_bytes) == 3 * 2**30
    assert free_memory.shortage(DEFINITION, case(3), CPU, peak_bytes) is None
    reason = free_memory.shortage(DEFINITION, case(4), CPU, peak_bytes)
    assert str(reason) == "needs 4.0 GiB, device has 3.0"


def test_what_torch_keeps_of_freed_gpu_memory_counts_as_free(monkeypatch):
    cuda = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 70)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 5)
    assert free_memory.available_bytes(cuda) == 75


@pytest.fixture
def shared(monkeypatch):
    """Let two workers share a GPU of 10 GiB; return what is free at each look."""
    free, slept = [], []
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, 10 * GIB))
    monkeypatch.setattr(
        free_memory,
        "available_bytes",
        lambda device: (free.pop(0) if len(free) > 1 else free[0]) * GIB,
    )
    monkeypatch.setattr(free_memory.time, "sleep", slept.append)
    monkeypatch.setattr(free_memory.time, "monotonic", lambda: sum(slept))
    return free, slept


def shortage_after_waiting(gib, device=CUDA):
    return free_memory.shortage_after_waiting(
        DEFINITION, case(1), device, lambda definition, case: gib * GIB
    )


def test_a_case_waits_until_another_worker_gives_memory_back(shared):
    free, slept = shared
    free += [2, 2, 2, 8]
    assert shortage_after_waiting(6) is None
    assert len(slept) == 3


def test_after_the_limit_it_is_skipped_with_both_numbers(shared):
    free, slept = shared
    free += [2]
    assert str(shortage_after_waiting(6)) == "needs 6.0 GiB, device has 2.0"
    assert free_memory.WAIT_SECONDS <= sum(slept) <= free_memory.WAIT_SECONDS + 1


def test_what_can_never_fit_does_not_wait(shared, monkeypatch):
    free, slept = shared
    free += [2]
    assert str(shortage_after_waiting(11)) == "needs 11.0 GiB, device has 2.0"
    # contexts of the workers hold more than what is left beside it
    assert str(shortage_after_waiting(9.5)) == "needs 9.5 GiB, device has 2.0"
    assert shortage_after_waiting(6, CPU) is not None
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "1")
    assert shortage_after_waiting(6) is not None
    assert slept == []
