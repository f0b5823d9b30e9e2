"""The order of a run's cases, and the GPUs of its workers."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from generator.execution.gpus import Gpu, Gpus
from generator.running import sglang, sglang_process, worker_placement
from generator.running.run_plan import Plan
from generator.running.sglang_light import FORK_SERVER_VARIABLE
from generator.running.worker_placement import (
    WorkerPlacement,
    by_case,
    live_definitions,
)
from kernel_judge.definition import WORKLOAD, Backend, Case
from kernel_judge.obstacle import Kind, Obstacle
from tests.builders import CPU, known

CUDA = torch.device("cuda:0")
GIB = 2**30
DEFINITION = known("rmsnorm_h128")
FA2 = Backend("fa2")


def item(name, rows, function="test_contract", backend=None, kind="trial", cls="TestA"):
    """Return a test of a case of so many rows; None for one without a case."""
    params = {kind: rows and Case(name, "small", {"batch_size": rows})}
    params |= {"backend": backend} if backend is not None else {}
    op = SimpleNamespace(peak_bytes=lambda d, case: rows * GIB)
    subject = SimpleNamespace(definition=DEFINITION, op=op)
    test_class = SimpleNamespace(name=cls, subject=lambda: subject)
    return SimpleNamespace(
        nodeid=f"test_x.py::{cls}::{function}[{name}]",
        path="test_x.py",
        cls=test_class,
        originalname=function,
        callspec=SimpleNamespace(params=params),
    )


def skipped(name):
    made = item(name, 0)
    made.callspec.params["trial"] = Obstacle(Kind.NO_ADAPTER, "none")
    return made


def names(items):
    return [test.nodeid.rpartition("::")[2] for test in items]


def test_the_cases_that_took_longest_come_first_and_stay_together():
    tests = [item("a", 1), item("b", 1), item("a", 1, "test_x"), item("b", 1, "test_x")]
    seconds = {tests[0].nodeid: 1.0, tests[1].nodeid: 0.5, tests[3].nodeid: 3.0}
    ordered, cases = by_case(tests, {**seconds, tests[2].nodeid: 0.1}, on_gpu=True)
    expected = ["test_contract[b]", "test_x[b]", "test_contract[a]", "test_x[a]"]
    assert names(ordered) == expected
    assert cases == [(2, GIB, "TestA"), (2, GIB, "TestA")]


def test_of_what_never_ran_the_large_cases_and_the_slow_providers_come_first():
    tests = [
        skipped("absent"),
        item("small", 1),
        item("large", 40),
        item("asked", 1, "test_matches_sglang", FA2),
        item("agreeing", 1, "test_ground_truths_agree"),
    ]
    ordered, cases = by_case(tests, {}, on_gpu=False)
    assert [name.partition("[")[2] for name in names(ordered)] == [
        "large]",
        "agreeing]",
        "asked]",
        "small]",
        "absent]",
    ]
    # a CPU's memory is shared in another way
    assert sorted(cases) == [(1, 0, "")] + [(1, 0, "TestA")] * 4


def test_on_a_cpu_the_share_of_tests_that_ran_is_that_of_the_time():
    tests = [item(str(n), 1, cls=f"Test{n}") for n in range(200)]
    # most are short, a few take most of the time
    seconds = {t.nodeid: 0.01 + (n / 200) ** 8 for n, t in enumerate(tests)}
    ordered, _ = by_case(tests, seconds, on_gpu=False)
    whole = sum(seconds.values())
    for share in (0.2, 0.5, 0.8):
        ran = sum(seconds[t.nodeid] for t in ordered[: int(200 * share)])
        assert abs(ran / whole - share) < 0.12
    assert sorted(names(ordered)) == sorted(names(tests))


def test_a_case_of_relations_is_another_case_and_so_is_another_class_s():
    related = item("a", 1, "test_metamorphic", kind="related")
    tests = [item("a", 1), related, item("a", 1, cls="TestB"), item("a", 1, "test_x")]
    _, cases = by_case(tests, {}, on_gpu=True)
    assert sorted(cases) == [(1, GIB, "TestA"), (1, GIB, "TestB"), (2, GIB, "TestA")]


def test_a_definition_s_workloads_stand_together_on_a_cpu_in_their_order():
    small, large = (item(f"workload {n}", n) for n in (1, 40))
    for test in (small, large):
        case = test.callspec.params["trial"]
        test.callspec.params["trial"] = replace(case, size=WORKLOAD)
    tests = [small, item("a", 1), large]
    ordered, cases = by_case(tests, {small.nodeid: 9.0}, on_gpu=False)
    assert names(ordered) == names([small, large, tests[1]])
    assert cases == [(2, 0, "TestA"), (1, 0, "TestA")]
    # there each waits for its own room
    assert len(by_case(tests, {}, on_gpu=True)[1]) == 3


def test_tests_of_others_are_spread_one_by_one():
    other = SimpleNamespace(nodeid="test_own.py::test_a")
    another = SimpleNamespace(nodeid="test_own.py::test_b[x]")
    ordered, cases = by_case([other, another], {}, on_gpu=True)
    assert ordered == [other, another]
    assert cases == [(1, 0, ""), (1, 0, "")]


def test_definitions_are_live_whose_tests_call_kernels():
    tests = [
        item("a", 1, cls="TestA"),
        item("a", 1, "test_matches_flashinfer", FA2, cls="TestB"),
        item("b", 1, "test_matches_flashinfer", FA2, cls="TestB"),
        item("a", 1, "test_ground_truths_agree", cls="TestC"),
        item("a", 0, "test_matches_flashinfer", FA2, cls="TestD"),
        SimpleNamespace(nodeid="test_own.py::test_a"),
    ]
    assert live_definitions(tests) == {"test_x.py": ["TestB", "TestC"]}


class Cache(dict):
    def set(self, key, value):
        self[key] = json.loads(json.dumps(value))


class Config:
    """Stand in for pytest's config of xdist's parent, or of a worker."""

    pluginmanager = SimpleNamespace(get_plugin=lambda name: None)

    def __init__(self, device=None, dist="load", workerinput=None):
        self.options = {"--device": device, "numprocesses": 4, "dist": dist}
        self.cache = Cache()
        if workerinput is not None:
            self.workerinput = workerinput

    def getoption(self, name, default=None):
        return self.options.get(name, default)

    getvalue = getoption


def node(name, popen=True):
    gateway = SimpleNamespace(id=name, spec=SimpleNamespace(popen=popen))
    return SimpleNamespace(gateway=gateway, workerinput={"workercount": 4})


@pytest.fixture(autouse=True)
def begun(monkeypatch):
    """Return the fork servers that were asked for; SGLang seems to be installed, lightly."""
    asked = []

    def fork_server(package, gpu):
        asked.append(gpu)
        return SimpleNamespace(address="there", stop=lambda: "it fell over")

    monkeypatch.setattr(sglang_process, "fork_server", fork_server)
    monkeypatch.setattr(sglang, "absence", lambda: None)
    monkeypatch.setattr(sglang, "note", lambda cuda: "light")
    return asked


@pytest.fixture
def two(monkeypatch):
    """Pretend two GPUs, of which the second is the smaller one."""
    gpus = (Gpu("4", "A", 90, 100, 100), Gpu("GPU-b", "B", 90, 50, 40))
    monkeypatch.setattr(worker_placement, "visible_gpus", lambda: Gpus(gpus))


@pytest.mark.usefixtures("two")
def test_workers_get_the_gpus_in_turn_and_a_share_of_their_free_memory():
    parent = WorkerPlacement(Config(), CUDA)
    workers = [node(f"gw{n}") for n in range(4)]
    for worker in workers:
        parent.pytest_configure_node(worker)
    given = [worker.workerinput["reference_gpu"] for worker in workers]
    assert given == ["4", "GPU-b", "4", "GPU-b"]
    assert [parent.room(worker) for worker in workers] == [(0, 90.0), (1, 36.0)] * 2
    parent.pytest_testnodedown(workers[1])
    fresh = node("gw4")
    parent.pytest_configure_node(fresh)
    assert fresh.workerinput["reference_gpu"] == "GPU-b"
    assert parent.pytest_report_header() == ["  workers spread over GPUs 4, GPU-b"]
    parent.pytest_unconfigure()


@pytest.mark.usefixtures("two")
def test_the_gpu_that_the_user_names_is_the_one():
    parent = WorkerPlacement(Config(device="cuda:1"), torch.device("cuda:1"))
    worker = node("gw0")
    parent.pytest_configure_node(worker)
    # CUDA numbers it so in a worker that sees both
    assert "reference_gpu" not in worker.workerinput
    assert parent.room(worker) == (0, 36.0)
    assert parent.pytest_report_header() == []
    parent.pytest_unconfigure()


@pytest.mark.usefixtures("two")
def test_on_the_cpu_and_on_another_machine_nobody_gets_a_gpu():
    for parent, worker in [
        (WorkerPlacement(Config(), CPU), node("gw0")),
        (WorkerPlacement(Config(), CUDA), node("gw0", popen=False)),
    ]:
        parent.pytest_configure_node(worker)
        assert "reference_gpu" not in worker.workerinput
        assert parent.room(worker) == (-1, float("inf"))
        parent.pytest_unconfigure()


def test_workers_share_one_import_of_sglang(begun, monkeypatch):
    gpus = tuple(Gpu(name, "A", 90, 100, 100) for name in "01")
    monkeypatch.setattr(worker_placement, "visible_gpus", lambda: Gpus(gpus))
    parent = WorkerPlacement(Config(), CUDA)
    workers = [node("gw0"), node("gw1")]
    for worker in workers:
        parent.pytest_configure_node(worker)
        assert worker.workerinput["reference_sglang_fork_server"] == "there"
    assert begun == [(90, "A")]
    said = []
    for _ in range(2):
        parent.pytest_terminal_summary(SimpleNamespace(write_line=said.append))
    assert said == ["each worker imported SGLang itself: it fell over"]
    parent.pytest_unconfigure()


class Compilation:
    """Pretend the process that compiles."""

    made: ClassVar[list[Compilation]] = []

    def __init__(self, package, folder, say, environment):
        assert (folder / package.replace(".", "/") / "warm_worker.py").exists()
        self.environment, self.jobs, self.closed = environment, [], 0
        self.begin = self.jobs.append
        Compilation.made.append(self)

    def close(self):
        self.closed += 1


@pytest.fixture
def compilations(monkeypatch):
    """Return the processes that were started to compile; all is cold."""
    monkeypatch.setattr(Compilation, "made", [])
    monkeypatch.setattr(worker_placement, "Compilation", Compilation)
    monkeypatch.setattr(worker_placement, "all_cold", lambda: True)
    monkeypatch.setattr(worker_placement, "cold", lambda live: live)
    gpus = (Gpu("0", "A", 90, 100, 100),)
    monkeypatch.setattr(worker_placement, "visible_gpus", lambda: Gpus(gpus))
    return Compilation.made


def test_where_all_is_cold_compilers_start_before_the_tests_are_collected(compilations):
    parent = WorkerPlacement(Config(), CUDA)
    for worker in (node("gw0"), node("gw1")):
        parent.pytest_configure_node(worker)
    (only,) = compilations
    assert only.environment == {FORK_SERVER_VARIABLE: "there"}
    assert only.jobs == []
    assert parent.warm({"test_x.py": ["a"]}) is only
    assert [job.files for job in only.jobs] == [{"test_x.py": ["a"]}]
    parent.pytest_unconfigure()
    assert only.closed


def test_compilers_that_find_nothing_to_do_end(compilations):
    parent = WorkerPlacement(Config(), CUDA)
    parent.pytest_configure_node(node("gw0"))
    assert parent.warm({}) is None
    assert [(one.jobs, one.closed) for one in compilations] == [([], 1)]
    parent.pytest_unconfigure()


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_where_something_is_compiled_they_start_when_tests_need_them(
    compilations, monkeypatch, device
):
    if device is CUDA:
        monkeypatch.setattr(worker_placement, "all_cold", lambda: False)
    parent = WorkerPlacement(Config(), device)
    parent.pytest_configure_node(node("gw0"))
    assert compilations == []
    parent.warm({"test_x.py": ["a"]})
    assert [len(one.jobs) for one in compilations] == [1]
    parent.pytest_unconfigure()


@pytest.mark.parametrize("why", ["absent", "complete", "one worker", "two models"])
def test_each_worker_imports_sglang_where_forks_would_not_serve(
    begun, two, monkeypatch, why
):
    device, worker = CPU, node("gw0")
    if why == "absent":
        monkeypatch.setattr(sglang, "absence", lambda: Obstacle(Kind.BROKEN, "no"))
    if why == "one worker":
        worker.workerinput["workercount"] = 1
    if why in ("two models", "complete"):
        device = CUDA
    if why == "complete":
        gpus = (Gpu("0", "A", 90, 100, 100),)
        monkeypatch.setattr(worker_placement, "visible_gpus", lambda: Gpus(gpus))
        monkeypatch.setattr(sglang, "note", lambda cuda: "")
    parent = WorkerPlacement(Config(), device)
    parent.pytest_configure_node(worker)
    assert begun == []
    assert "reference_sglang_fork_server" not in worker.workerinput
    parent.pytest_unconfigure()


def test_a_worker_leaves_the_plan_that_the_parent_reads(tmp_path):
    parent = WorkerPlacement(Config(device="cpu"), CPU)
    assert parent.plan() == Plan()
    worker = node("gw0")
    parent.pytest_configure_node(worker)
    config = Config(device="cpu", workerinput=worker.workerinput)
    tests = [item("a", 1), item("b", 9), item("a", 1, "test_x")]
    config.cache["reference-tests/seconds-cpu"] = {tests[1].nodeid: 0.001}
    WorkerPlacement(config, CPU).pytest_collection_modifyitems(tests)
    assert names(tests) == ["test_contract[a]", "test_x[a]", "test_contract[b]"]
    assert parent.plan().of_each_test() == [(n, 0, "TestA") for n in (0, 0, 1)]
    parent.pytest_unconfigure()
    assert parent.plan() == Plan()


def test_durations_are_kept_beside_those_of_tests_that_did_not_run():
    config = Config()
    config.cache["reference-tests/seconds-cpu"] = {"a": 1.0, "b": 2.0}
    parent = WorkerPlacement(config, CPU)
    for seconds in (0.25, 0.5):
        report = SimpleNamespace(nodeid="b", duration=seconds)
        parent.pytest_runtest_logreport(report)
    parent.pytest_sessionfinish()
    assert config.cache["reference-tests/seconds-cpu"] == {"a": 1.0, "b": 0.75}
    worker = WorkerPlacement(Config(workerinput={}), CPU)
    worker.pytest_runtest_logreport(report)
    worker.pytest_sessionfinish()
    assert worker._config.cache == {}


def test_another_way_of_spreading_is_the_user_s():
    parent = WorkerPlacement(Config(dist="worksteal"), CPU)
    assert parent.pytest_xdist_make_scheduler(Config(dist="worksteal"), None) is None
