"""Sharing GPUs: each task has a place, and who times has the GPU alone."""

import tempfile
import threading
from functools import partial
from pathlib import Path

import pytest

from generator.evaluation.sharing import free_gpu, using


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_tasks_are_spread_over_all_gpus() -> None:
    places = ("0", "1", "0", "1")
    assert [free_gpu(places) for _ in places] == list(places)
    # more tasks than places
    assert free_gpu(places) == "0"


@pytest.mark.parametrize(
    ("first", "second", "gpu", "waits"),
    [
        (False, False, "0", False),
        (True, False, "0", True),
        (False, True, "0", True),
        (True, True, "0", True),
        (True, True, "MIG-GPU-1/0", False),
    ],
)
def test_who_times_is_alone(first: bool, second: bool, gpu: str, waits: bool) -> None:
    asked, entered = threading.Event(), threading.Event()

    def other() -> None:
        with using(gpu, second, asked.set):
            entered.set()

    thread = threading.Thread(target=other)
    with using("0", first, lambda: None):
        thread.start()
        assert asked.wait(5.0 if waits else 0.05) == waits
        assert entered.wait(0.05 if waits else 5.0) != waits
    assert entered.wait(60.0)
    thread.join()


def test_without_a_gpu_nobody_waits() -> None:
    waited: list[str] = []
    first, second = (partial(waited.append, name) for name in ("first", "second"))
    with using("", True, first), using("", True, second):
        assert waited == []


def test_who_waits_to_be_alone_comes_before_those_who_ask_later() -> None:
    order: list[str] = []
    waits = {name: threading.Event() for name in ("alone", "later")}

    def other(name: str, is_alone: bool) -> None:
        with using("0", is_alone, waits[name].set):
            order.append(name)

    threads = []
    with using("0", False, lambda: None):
        for name, waiting in waits.items():
            threads.append(threading.Thread(target=other, args=(name, name == "alone")))
            threads[-1].start()
            assert waiting.wait(60.0)
    for thread in threads:
        thread.join()
    assert order == ["alone", "later"]
