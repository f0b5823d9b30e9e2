"""One call between two processes, on memory of the host: the same code as on a GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.arena import Layout, laid_out
from generator.evaluation.clock import callee as callees
from generator.evaluation.clock.outputs import in_arena
from generator.evaluation.clock.page import Page, Silent
from generator.evaluation.clock.rivals import places
from generator.evaluation.clock.shared_memory import SharedMemory, create
from generator.evaluation.clock.timed_calls import (
    CalleeLink,
    TimedCalls,
    _copy,
)
from kernel_judge.definition import TensorSpec

FOLDER = Path(callees.__file__).parent
CHILD = """
import json, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import torch, callee, page, shared_memory

def doubles(x, out):
    out.copy_(2 * x)

def nothing(x, out):
    pass

def late(x, out):
    threading.Timer(0.2, lambda: out.copy_(2 * x)).start()

def spoils(x, out):
    out.copy_(2 * x)
    x.zero_()

def beyond(x, out):
    torch.as_strided(out, (out.numel() + 3,), (1,)).fill_(7.0)

def fails(x, out):
    raise ValueError("no such thing")

def leaves(x, out):
    os._exit(3)

def draws(x, out):
    out.copy_(torch.rand(out.shape))

def returns(x):
    return 2 * x

def number(x):
    return 3.5

def aliases(x):
    return x.view(-1)[: x.numel()].view(x.shape)

def narrow(x):
    return (2 * x).double()

KNOWN, SEEN, READY = [], [], page.Page.ready

def ready(self, number):
    SEEN[:] = [x.clone() for x in KNOWN]
    READY(self, number)

def early(x, out):
    out.fill_(bool(SEEN) and torch.equal(SEEN[0], x))
    KNOWN[:] = [x]

page.Page.ready = ready

CALLS = [globals()[name] for name in sys.argv[6].split()]
memory = shared_memory.attach("cpu", int(sys.argv[3]), int(sys.argv[4]))
callee.Callee("cpu", None).serve(
    page.Page(int(sys.argv[2])), memory, json.loads(sys.argv[5]), CALLS
)
"""
SPECS = {"out": TensorSpec(("n", "m"), "float32")}


class Table:
    """Timed calls, and a callee's process with some functions."""

    def __init__(self, names: str, passes: bool, beside: Table | None = None) -> None:
        import json

        self.inputs = {"x": torch.randn(5, 3)}
        self.layout = laid_out(self.inputs, SPECS, {"n": 5, "m": 3})
        self.calls = beside.calls if beside else TimedCalls("cpu", self.layout)
        file = Page.file()
        how = json.dumps(places(self.layout, passes_outputs=passes))
        memory = self.calls.apart() if beside else self.calls.memory
        given = [str(FOLDER), str(file), str(memory.file), str(memory.size), how, names]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, *given], pass_fds=[file, memory.file]
        )
        is_there = lambda: self.process.poll() is None
        self.link = CalleeLink(Page(file), is_there=is_there, memory=memory)
        self.calls.stage(self.inputs)

    def call(self, which: int, seed: int = 1) -> Any:
        return self.calls.call(self.link, which, seed)

    def end(self) -> None:
        self.link.end()
        self.process.wait(20.0)
        self.calls.close()


PASSED = "doubles nothing spoils beyond fails draws leaves early"
RETURNED = "returns number aliases narrow"


@pytest.fixture(scope="module")
def passed() -> Iterator[Table]:
    table = Table(PASSED, True)
    yield table
    table.end()


@pytest.fixture(scope="module")
def returned() -> Iterator[Table]:
    table = Table(RETURNED, False)
    yield table
    table.end()


def which(name: str) -> int:
    return (PASSED.split() + RETURNED.split()).index(name) % len(PASSED.split()) + 1


def test_outputs_are_what_the_call_wrote(passed: Table) -> None:
    timed = passed.call(which("doubles"))
    (out,) = passed.calls.outputs()
    assert torch.equal(out, 2 * passed.inputs["x"])
    assert not passed.calls.changed()
    assert timed.raw > 0.0
    assert timed.said == {}


def test_what_is_not_there_at_the_answer_is_poison(passed: Table) -> None:
    # the last answer lies there no more
    passed.call(which("doubles"))
    passed.call(which("nothing"))
    (out,) = passed.calls.outputs()
    assert bool(out.isnan().all())


def test_what_comes_after_the_answer_is_not_read() -> None:
    # a process of its own: on a busy machine the late write meets another test's call
    table = Table("late", True)
    try:
        table.call(1)
        (out,) = table.calls.outputs()
        assert bool(out.isnan().all())
    finally:
        table.end()


def test_values_of_anothers_call_are_not_there_before_the_reveal(passed: Table) -> None:
    # as a rival is called on the same values just before
    for name in ("early", "doubles", "early"):
        passed.call(which(name))
    (out,) = passed.calls.outputs()
    assert not out.any()


def test_empty_call_calls_nothing(passed: Table) -> None:
    passed.call(callees.EMPTY)
    (out,) = passed.calls.outputs()
    assert bool(out.isnan().all())


@pytest.mark.parametrize("name", ["spoils", "beyond"])
def test_what_is_no_output_may_not_change(passed: Table, name: str) -> None:
    passed.call(which(name))
    assert passed.calls.changed()
    passed.call(which("doubles"))
    assert not passed.calls.changed()


def test_error_is_said_and_the_next_call_is_made(passed: Table) -> None:
    timed = passed.call(which("fails"))
    assert timed.said["raised"].startswith("ValueError: no such thing")
    assert passed.call(which("doubles")).said == {}


def test_seed_is_the_judges(passed: Table) -> None:
    found = []
    for seed in (4, 4, 5):
        passed.call(which("draws"), seed)
        found.append(passed.calls.outputs()[0])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_returned_output_is_copied_to_its_place(returned: Table) -> None:
    for _ in range(2):
        returned.inputs["x"].normal_()
        returned.calls.stage(returned.inputs)
        timed = returned.call(1)
        (out,) = returned.calls.outputs()
        assert torch.equal(out, 2 * returned.inputs["x"])
    (one,) = timed.said["outputs"]
    assert (one["dtype"], one["shape"]) == ("float32", [5, 3])
    assert one["aliases"] is False


def test_what_was_returned_is_described(returned: Table) -> None:
    assert returned.call(2).said == {"outputs": [{"value": 3.5}]}
    assert returned.call(3).said["outputs"][0]["aliases"] is True
    # of another dtype nothing is copied
    assert returned.call(4).said["outputs"][0]["dtype"] == "float64"
    (out,) = returned.calls.outputs()
    assert bool(out.isnan().all())


def test_process_that_ends_is_noticed() -> None:
    table = Table("leaves", True)
    with pytest.raises(Silent, match="gone"):
        table.call(1)
    table.end()


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ({"outputs": [{"arena": 0}]}, 1),
        ({"outputs": [{"arena": -8}]}, 0),
        ({"outputs": [{"arena": 1 << 40}]}, 0),
        ({"outputs": [{"arena": True}]}, 0),
        ({"outputs": [{"arena": "0"}]}, 0),
        ({"outputs": [3]}, 0),
        ({"outputs": 3}, 0),
        ([], 0),
        (None, 0),
    ],
)
def test_only_places_within_the_arena_are_read(said: Any, count: int) -> None:
    layout = laid_out({}, SPECS, {"n": 5, "m": 3})
    arena = create("cpu", 4096)
    assert len(in_arena(said, layout, arena)) == count
    # the last byte that an output can begin at
    last = arena.size - layout.outputs[0]["bytes"]
    assert in_arena({"outputs": [{"arena": last}]}, layout, arena)
    assert not in_arena({"outputs": [{"arena": last + 1}]}, layout, arena)
    assert not in_arena({"outputs": [{"arena": 0}]}, layout, None)


def test_output_in_the_arena_is_read_there() -> None:
    layout: Layout = laid_out({}, SPECS, {"n": 5, "m": 3})
    calls, arena = TimedCalls("cpu", layout), create("cpu", 4096)
    link = CalleeLink(Page(Page.file()), arena=arena)
    wanted = torch.arange(15.0)
    arena.bytes[512:572].view(torch.float32).copy_(wanted)
    _copy(calls._copies(link, {"outputs": [{"arena": 512}]}))
    assert torch.equal(calls.outputs()[0].flatten(), wanted)


def test_filled_inputs_are_taken_and_may_change() -> None:
    inputs = {"x": torch.zeros(4), "cache": torch.zeros(6)}
    layout = laid_out(inputs, {}, {})
    calls = TimedCalls("cpu", layout, filled=[1])
    calls.stage(inputs)
    calls._write()
    memory: SharedMemory = calls.memory
    place = layout.inputs[1]
    memory.bytes[place["at"] : place["at"] + 8].view(torch.float32).fill_(2.0)
    assert not calls.changed()
    _copy(calls._copies(CalleeLink(Page(Page.file())), None))
    assert calls.input(1).tolist() == [2.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    memory.bytes[layout.inputs[0]["at"]] = 1
    assert calls.changed()


def test_what_others_are_called_with_is_nowhere_in_a_solutions_memory() -> None:
    # a copy engine goes on while its processes are stopped
    solution = Table("doubles", True)
    other = Table("doubles spoils", True, beside=solution)
    calls, x = solution.calls, solution.inputs["x"]
    calls.stage(solution.inputs)
    left = calls.memory.bytes.clone()
    other.call(1)
    assert torch.equal(calls.outputs()[0], 2 * x)
    assert not calls.changed()
    assert torch.equal(calls.memory.bytes, left)
    other.call(2)
    assert calls.changed()
    solution.call(1)
    assert torch.equal(calls.outputs()[0], 2 * x)
    assert not calls.changed()
    for table in (other, solution):
        table.end()
    assert all(memory.file == -1 for memory in calls._memories)
