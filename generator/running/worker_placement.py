"""Spread a run's tests over xdist's workers and the GPUs: long cases early.

The tests of one case share its inputs, its reference's outputs and its kernels' answers,
so a worker gets whole cases. A worker sees one GPU, and gets a case when the GPU has room
for it beside the cases of its other workers.

Workers collect, and so know the cases; the parent hands them out (`case_scheduling`). A
worker leaves what it knows in a file, the plan, for which the parent makes a folder.
"""

from __future__ import annotations

import gc
import json
import math
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from generator.execution.cores import usable_cores
from generator.execution.gpus import Gpus, bind, visible_gpus
from generator.running.fork_server import ForkServer
from generator.running.run_plan import SHARE, Plan
from generator.running.sglang_light import FORK_SERVER_VARIABLE
from generator.running.warming import Compilation, Job, all_cold, cold, usual_jobs
from kernel_judge.definition import WORKLOAD, Backend, Case
from kernel_judge.provider import providers

# what a worker is told by xdist's parent
_GPU, _PLAN = "reference_gpu", "reference_plan"
_FORK_SERVER = "reference_sglang_fork_server"
# of a test whose duration nobody has measured yet, in seconds: any test, GiB that its
# case needs
_LEAST, _PER_GIB = 0.02, 0.3
_AGREE = "test_ground_truths_agree"
_ROUNDS = 10

Weighed = tuple[float, int, list[Any], int]
"""A case: its time, negative, its number, its tests, and the bytes that it needs."""


def bind_worker(config: pytest.Config) -> None:
    """Give a worker of xdist its GPU and its share of the cores, before it imports torch.

    PyTorch would start a thread for each core in each of the workers.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    if worker.get(_GPU) is not None:
        bind(worker[_GPU])
    if worker.get(_FORK_SERVER) is not None:
        os.environ[FORK_SERVER_VARIABLE] = worker[_FORK_SERVER]
    share = usable_cores() // worker["workercount"]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(share, 1)))


def live_definitions(items: Iterable[pytest.Item]) -> dict[str, list[str]]:
    """Return, by test file, the definitions of which some test calls a kernel."""
    live: dict[str, dict[str, None]] = defaultdict(dict)
    for item in items:
        if isinstance(case_of(item), Case) and _providers(item):
            live[str(item.path)][definition_of(item)] = None
    return {file: list(names) for file, names in live.items()}


def definition_of(item: Any) -> str:
    """Return the definition of a test that has a case, else nothing."""
    name: str = item.cls.name if isinstance(case_of(item), Case) else ""
    return name


def case_of(item: Any) -> Any:
    """Return a test's case, or the obstacle in its place; None for another test."""
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    return params.get("trial") or params.get("related")


def _providers(item: Any) -> tuple[str, ...]:
    """Return the providers that a test asks."""
    function = getattr(item, "originalname", "") or ""
    if function == _AGREE:
        return tuple(providers())
    if isinstance(item.callspec.params.get("backend"), Backend):
        return (function.removeprefix("test_matches_"),)
    return ()


def _needed(item: Any) -> int:
    """Return the bytes that a test's case needs on its device."""
    from generator.running.free_memory import needed_bytes

    case = case_of(item)
    if not isinstance(case, Case):
        return 0
    subject = item.cls.subject()
    return needed_bytes(subject.definition, case, subject.op.peak_bytes)


def _guessed_seconds(item: Any, needed: int) -> float:
    """Return how long a test may take that was never run here."""
    if not isinstance(case_of(item), Case):
        return 0.0
    known = providers()
    asked = sum(known[name].seconds for name in _providers(item) if name in known)
    return _LEAST + _PER_GIB * needed / 2**30 + asked


def by_case(
    items: Sequence[Any], seconds: dict[str, float], on_gpu: bool
) -> tuple[list[Any], list[tuple[int, int, str]]]:
    """Return tests case by case, and the cases for the plan.

    On a GPU the longest come first, for many workers to end together; elsewhere the
    tests come in rounds of like work, and a definition's workloads stand together, the
    smallest first: what one takes says which larger ones are not asked. `seconds` are the
    durations of earlier runs by node id. The tests of a case keep their order.
    """
    cases: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        case, kind = case_of(item), ""
        if isinstance(case, Case):
            kind = "trial" if "trial" in item.callspec.params else "related"
        # what is skipped of a class goes together; what is no reference test, alone
        name = case.name if kind else item.nodeid if case is None else ""
        if kind and case.size == WORKLOAD and not on_gpu:
            name = WORKLOAD
        name += f" {case.seed}" if kind else ""
        cases[item.nodeid.partition("[")[0].rpartition("::")[0], kind, name].append(
            item
        )
    weighed: list[Weighed] = []
    for tests in cases.values():
        needed = max(_needed(item) for item in tests)
        cost = math.fsum(
            seconds.get(item.nodeid, _guessed_seconds(item, needed)) for item in tests
        )
        weighed.append((-cost, len(weighed), tests, needed if on_gpu else 0))
    weighed.sort()
    if not on_gpu:
        weighed = _in_rounds(weighed)
    ordered = [item for _, _, tests, _ in weighed for item in tests]
    return ordered, [
        (len(tests), needed, definition_of(tests[0])) for _, _, tests, needed in weighed
    ]


def _in_rounds(weighed: Sequence[Weighed]) -> list[Weighed]:
    """Return cases in rounds of like work, the longest of each first.

    So the share of the tests that have run is about that of the time that they take,
    and what is left for the end is short enough for all workers to end together.
    """
    return [one for first in range(_ROUNDS) for one in weighed[first::_ROUNDS]]


class WorkerPlacement:
    """The xdist plug-in that gives workers their GPUs and tests an order by duration."""

    def __init__(self, config: pytest.Config, device: Any) -> None:
        self._config = config
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._on_gpu = device.type == "cuda"
        # of `--device cuda:1` too CUDA numbers what it shows: nobody is bound then
        self._chosen = config.getoption("--device") not in (None, "cuda")
        self._is_parent = bool(config.getoption("numprocesses", None))
        gpus = visible_gpus() if self._on_gpu and self._is_parent else Gpus()
        first = device.index or 0
        self._gpus = gpus.found[first : first + 1] if self._chosen else gpus.found
        self._said = self._sentence(gpus) if self._on_gpu and self._is_parent else ""
        # by worker: the place of its GPU
        self._places: dict[str, int] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._fork_server: ForkServer | None = None
        self._compilation: Compilation | None = None
        self._seconds: dict[str, float] = defaultdict(float)
        self._key = f"reference-tests/seconds-{device.type}"

    def _sentence(self, gpus: Gpus) -> str:
        if gpus.shortage():
            return gpus.shortage()
        if not gpus.is_known and not self._chosen:
            return "all workers use cuda:0: nvidia-ml-py, which counts GPUs, is missing"
        return ""

    def pytest_report_header(self) -> list[str]:
        """Say which GPUs the workers use, and where they are fewer than asked for."""
        names = ", ".join(gpu.name for gpu in self._gpus)
        spread = [f"  workers spread over GPUs {names}"] if len(self._gpus) > 1 else []
        return [*spread, *filter(None, [self._said and f"  {self._said}"])]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker the GPU that has fewest, and a place for its plan.

        A fresh worker takes the GPU of the one that it replaces. A worker on another
        machine gets nothing: nobody knows that machine's GPUs.
        """
        if not node.gateway.spec.popen:
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="reference-tests-")
            self._fork_server = self._started_fork_server(
                node.workerinput["workercount"]
            )
            if self._on_gpu and all_cold():
                # its imports take as long as collecting the tests
                self._compilation = self._started_compilation()
        if self._fork_server is not None:
            node.workerinput[_FORK_SERVER] = self._fork_server.address
        node.workerinput[_PLAN] = os.path.join(self._folder.name, "plan.json")
        if self._gpus:
            used = Counter(self._places.values())
            place = min(range(len(self._gpus)), key=lambda n: used[n])
            self._places[node.gateway.id] = place
            if not self._chosen:
                node.workerinput[_GPU] = self._gpus[place].name

    def _started_fork_server(self, workers: int) -> ForkServer | None:
        """Start one import of SGLang for all workers, None where it would not serve.

        A complete SGLang initialises CUDA where it sees a GPU, and can't be forked then.
        """
        from generator.running import sglang, sglang_process

        if workers < 2 or sglang.absence() is not None:
            return None
        package = __name__.rpartition(".")[0]
        if not self._on_gpu:
            return sglang_process.fork_server(package, None)
        models = {(gpu.capability, gpu.model) for gpu in self._gpus}
        if len(models) != 1 or not sglang.note(cuda=True):
            return None
        return sglang_process.fork_server(package, models.pop())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Free the place of a worker that is gone."""
        self._places.pop(node.gateway.id, None)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Order a worker's tests, and write the plan; all workers write the same."""
        path = (self._worker or {}).get(_PLAN)
        if path is None:
            return
        items[:], cases = by_case(items, self.known_seconds(), self._on_gpu)
        live = live_definitions(items) if self._on_gpu else {}
        draft = Path(f"{path}.{os.getpid()}")
        draft.write_text(json.dumps(asdict(Plan(cases, live))), "ascii")
        draft.replace(path)

    def pytest_collection_finish(self) -> None:
        """Let the garbage collector pass over the tests, which live to the end."""
        gc.freeze()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Hand out whole cases where xdist is to balance the load, its default."""
        if config.getvalue("dist") != "load":
            return None
        from generator.running.case_scheduling import CaseScheduling

        return CaseScheduling(config, log, self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Compile kernels before a run in one process; xdist's waits for its workers."""
        alone = self._worker is None and not self._is_parent
        if alone and self._on_gpu and not session.config.option.collectonly:
            compilation = self.warm(live_definitions(session.items))
            if compilation is not None:
                compilation.finish()

    def warm(self, live: Mapping[str, list[str]]) -> Compilation | None:
        """Begin to compile kernels of definitions that nobody compiled yet; say so."""
        files = cold(live)
        if not files:
            self._end_compilation()
            return None
        if self._compilation is None:
            self._compilation = self._started_compilation()
        self._compilation.begin(Job(files, usual_jobs()))
        return self._compilation

    def _started_compilation(self) -> Compilation:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        say = (lambda _: None) if reporter is None else reporter.write_line
        fork_server = self._fork_server
        address = (
            {} if fork_server is None else {FORK_SERVER_VARIABLE: fork_server.address}
        )
        package = __name__.rpartition(".")[0]
        folder = Path(__file__).parents[len(package.split("."))]
        return Compilation(package, folder, say, address)

    def _end_compilation(self) -> None:
        if self._compilation is not None:
            self._compilation.close()

    def known_seconds(self) -> dict[str, float]:
        """Return how long tests took in earlier runs on such a device, by node id."""
        cache = getattr(self._config, "cache", None)
        return {} if cache is None else dict(cache.get(self._key, {}))

    def plan(self) -> Plan:
        """Return the workers' plan, an empty one where none of them made it."""
        try:
            assert self._folder is not None
            text = Path(self._folder.name, "plan.json").read_text("ascii")
        except (AssertionError, FileNotFoundError):
            return Plan()
        return Plan(**json.loads(text))

    def room(self, node: Any) -> tuple[int, float]:
        """Return the place of a worker's GPU, and the bytes that cases may take there."""
        place = self._places.get(node.gateway.id)
        if place is None or not self._gpus[place].free:
            return -1 if place is None else place, math.inf
        return place, SHARE * self._gpus[place].free

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up how long each test takes."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Keep the durations for the next run's order, beside those of other tests."""
        # pytest collects garbage when it ends: there is none worth a pass over all
        gc.freeze()
        cache = getattr(self._config, "cache", None)
        if self._worker is None and self._seconds and cache is not None:
            known = cache.get(self._key, {})
            new = {name: round(value, 2) for name, value in self._seconds.items()}
            cache.set(self._key, {**known, **new})

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """End the fork server; say so where it was no help."""
        why = self._end_fork_server()
        if why:
            terminalreporter.write_line(f"each worker imported SGLang itself: {why}")

    def _end_fork_server(self) -> str:
        fork_server, self._fork_server = self._fork_server, None
        return "" if fork_server is None else fork_server.stop()

    def pytest_unconfigure(self) -> None:
        """Remove the plan; end the fork server and compilers of a run that was interrupted."""
        self._end_fork_server()
        self._end_compilation()
        if self._folder is not None:
            self._folder.cleanup()
