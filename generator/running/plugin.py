"""The pytest options, fixtures and reports of the rendered tests.

`conftest.py` imports the hooks from here by name. torch is imported inside the hooks,
so that a machine without it gets one line instead of a traceback.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import generator.running.sglang  # noqa: F401 - has SGLang called in its process
from generator.execution.gpus import sleep_while_waiting
from generator.running.figures import Figures
from generator.running.run_options import SIZES, pytest_addoption
from generator.running.skipped_test import Broken
from generator.running.summary_table import WIDTH, SummaryTable
from generator.running.worker_placement import WorkerPlacement, bind_worker
from kernel_judge.obstacle import Obstacle

__all__ = ["pytest_addoption"]
# Idle OpenMP threads spin for a while before they sleep. On a machine that is busy
# otherwise that made a run of small cases 4 times longer; so short a while, 1.8 times.
# libgomp reads it when torch loads, which is after conftest.py.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
_TOO_LONG: pytest.StashKey[Any] = pytest.StashKey()
_WORKLOADS: pytest.StashKey[dict[Path, Any]] = pytest.StashKey()
_WATCHDOG: pytest.StashKey[Any] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    if not __debug__:
        raise pytest.UsageError(
            "python -O (or PYTHONOPTIMIZE) removes the assertions that these tests are "
            "made of, and all would pass: run them without it"
        )
    bind_worker(config)
    if str(config.getoption("--device")).startswith("cuda"):
        # huge pages for inputs of GiB; small ones on a CPU take longer with them
        os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    config.addinivalue_line("markers", "slow: a large case, or one over ten seconds")
    for module in ("torch", "numpy"):
        if importlib.util.find_spec(module) is None:
            raise pytest.UsageError(
                f"the reference tests need {module}: pip install {module}"
            )
    sizes = config.getoption("--sizes")
    unknown = sorted(set((sizes or "").split(",")) - {*SIZES, ""})
    if unknown or sizes == "":
        raise pytest.UsageError(
            f"--sizes {sizes!r}: choose out of {', '.join(SIZES)}, comma-separated"
        )
    device = _device(config)
    if device.type == "cuda":
        sleep_while_waiting()
    from generator.running.context import ContextGuard
    from generator.running.evidence import EvidencePlugin
    from generator.running.exhaustion import MemoryGuard
    from generator.running.logs import UncapturedLogs
    from generator.running.watchdog import Watchdog

    register = config.pluginmanager.register
    register(ComparedDefinitions(config, device), "reference-comparisons")
    register(ContextGuard(config, device), "reference-context")
    register(MemoryGuard(device), "reference-memory")
    register(UncapturedLogs(), "reference-logs")
    register(EvidencePlugin(config, device), "reference-evidence")
    placement = WorkerPlacement(config, device)
    register(placement, "reference-placement")
    config.stash[_WATCHDOG] = Watchdog(config, placement.known_seconds())
    register(config.stash[_WATCHDOG], "reference-watchdog")
    if failures := config.getoption("--keep-failures"):
        from generator.running.kept_failures import KeptFailures

        register(KeptFailures(Path(failures)), "reference-failures")
    wanted = set(config.getoption("--definition"))
    # where tests are named, one of each reference is chosen among these alone
    each = config.getoption("--each-reference") and not (
        wanted or any("::" in text for text in config.args)
    )
    if wanted or each:
        register(ChosenDefinitions(wanted), "reference-chosen")


def _is_strict(config: pytest.Config) -> bool:
    """Return whether pytest got --strict, an ini value since pytest 9.

    pytest owns the option, so it can't be added; beside what pytest makes strict, here
    it demands that something was compared.
    """
    try:
        return bool(config.getini("strict"))
    except (KeyError, ValueError):
        return bool(config.getoption("strict", default=False))


def _device(config: pytest.Config) -> Any:
    """Return the torch.device of the run; UsageError where it can't be used."""
    import torch

    name = config.getoption("--device")
    usable = torch.cuda.is_available()
    if name is None:
        return torch.device("cuda:0" if usable else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise pytest.UsageError(f"--device {name!r}: choose cpu, cuda or cuda:N")
    if device.type == "cpu":
        return torch.device("cpu")
    if not usable:
        raise pytest.UsageError(f"--device {name}: no usable CUDA device here")
    index, count = device.index or 0, torch.cuda.device_count()
    if index >= count:
        raise pytest.UsageError(f"--device {name}: there are {count} CUDA devices")
    return torch.device("cuda", index)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which device and versions the run has, and why a provider is not used."""
    import torch

    from generator.running.provider_versions import describe
    from kernel_judge.provider import providers

    device = _device(config)
    hardware = ""
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        name = torch.cuda.get_device_name(device)
        hardware = f" ({name}, SM{major}{minor}, CUDA {torch.version.cuda})"
    sizes = config.getoption("--sizes") or "as rendered"
    seeds = ", ".join(map(str, config.getoption("--seed") or ()))
    inputs = f", inputs of seed {seeds}" if seeds else ""
    return [
        f"reference tests: device {device}{hardware}",
        f"  torch {torch.__version__}, sizes {sizes}{inputs}",
        *(f"  {describe(provider, device)}" for provider in providers()),
    ]


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Keep the tests of the definitions that --definition and --each-reference choose."""
    wanted = set(config.getoption("--definition"))
    if wanted:
        _keep(config, items, lambda item: _name_of(item) in wanted)
    if config.getoption("--each-reference"):
        classes = {_name_of(item): _class_of(item) for item in items if _name_of(item)}
        smallest = smallest_of_each_reference(classes.values())
        _keep(config, items, lambda item: _name_of(item) in smallest)


def smallest_of_each_reference(classes: Iterable[Any]) -> set[str]:
    """Return for each reference function of an op_type its smallest definition's name.

    The smallest has the least product of constant axes.
    """
    smallest: dict[Any, tuple[int, str]] = {}
    for cls in classes:
        size = math.prod(cls.definition().axes.values())
        key, sized = (cls.op_type, cls.reference), (size, cls.name)
        smallest[key] = min(smallest.get(key, sized), sized)
    return {name for _, name in smallest.values()}


class ChosenDefinitions:
    """A plug-in that collects no test of what --definition or --each-reference leaves out.

    Most are: to make their tests, only to deselect them, takes longer than some files run.
    Without names, one of each reference is chosen.
    """

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted
        self._seen: set[str] = set()
        self._kept: dict[Path, set[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: Any, obj: object) -> Any:
        """Return no tests for a class that is left out, None for any other object."""
        if not isinstance(collector, pytest.Module) or not _is_of_a_definition(obj):
            return None
        name = _name(obj)
        assert name is not None
        self._seen.add(name)
        if self._wanted:
            return None if name in self._wanted else []
        if collector.path not in self._kept:
            classes = filter(_is_of_a_definition, vars(collector.obj).values())
            self._kept[collector.path] = smallest_of_each_reference(classes)
        return None if name in self._kept[collector.path] else []

    def pytest_collection_modifyitems(self) -> None:
        """Raise UsageError where a definition that is named has no tests."""
        missing = sorted(self._wanted - self._seen)
        if missing:
            import difflib

            near = difflib.get_close_matches(missing[0], sorted(self._seen), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise pytest.UsageError(
                f"--definition {missing[0]}: not among the tests{hint}"
            )


def _is_of_a_definition(value: object) -> bool:
    from generator.running.harness import ReferenceTests

    is_class = isinstance(value, type) and issubclass(value, ReferenceTests)
    return is_class and _name(value) is not None


def _keep(
    config: pytest.Config,
    items: list[pytest.Item],
    chosen: Callable[[pytest.Item], bool],
) -> None:
    """Deselect the tests that are not chosen."""
    selected = [item for item in items if chosen(item)]
    left_out = [item for item in items if not chosen(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = selected


def _name_of(item: pytest.Item) -> str | None:
    """Return the name of the definition that a test is about, None without one."""
    return _name(_class_of(item))


def _name(cls: Any) -> str | None:
    name: str | None = getattr(cls, "name", None)
    return name


def _class_of(item: pytest.Item) -> Any:
    return getattr(item, "cls", None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Spread a test over its cases, and over the backends of its provider."""
    from generator.running.harness import ReferenceTests
    from generator.running.parametrize import spread
    from generator.running.workloads import Workloads

    cls = metafunc.cls
    if cls is None or not issubclass(cls, ReferenceTests):
        return
    if {"trial", "related"} & set(metafunc.fixturenames):
        chosen = metafunc.config.getoption("--sizes")
        sizes = tuple(chosen.split(",")) if chosen else cls.sizes
        recordings = _recordings(metafunc.config, cls)
        seeds = dict.fromkeys(metafunc.config.getoption("--seed") or ())
        device = _device(metafunc.config)
        chosen = metafunc.config.getoption("--workloads")
        of_datasets = metafunc.config.stash.setdefault(_WORKLOADS, {})
        dataset = _dataset(cls)
        workloads = of_datasets.setdefault(dataset, Workloads(dataset, chosen))
        spread(metafunc, cls, sizes, device, recordings, list(seeds), workloads)


@cache
def _dataset(cls: type) -> Path:
    """Return the root of the dataset that a class's rendered file lies in."""
    tests = Path(inspect.getfile(cls)).parent
    return tests.parent.parent


def _recordings(config: pytest.Config, cls: type) -> Path:
    """Return the folder of recordings, the user's or that of the tests' dataset."""
    from kernel_judge.recording.recording_file import FOLDER

    chosen = config.getoption("--recordings")
    if chosen is not None:
        return Path(chosen)
    return _dataset(cls) / FOLDER


@pytest.fixture(scope="class")
def recordings(request: pytest.FixtureRequest) -> Path:
    """Return the folder of recordings."""
    return _recordings(request.config, request.cls)


@pytest.fixture(scope="class")
def trial(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Make one case's inputs for one definition; skip what does not fit."""
    yield from _trial(request)


@pytest.fixture(scope="class")
def related(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Make a trial of a case of relations, which all relations of the case share.

    A fixture of its own: else pytest would put a test beside those of another case,
    and make both trials again for every test.
    """
    yield from _trial(request)


def _trial(request: pytest.FixtureRequest) -> Iterator[Any]:
    from generator.running.free_memory import shortage_after_waiting
    from generator.running.skipped_test import Skipped
    from generator.running.workloads import TooLong, why_not_asked
    from kernel_judge.definition import LIMITS, WORKLOAD

    case, device = request.param, _device(request.config)
    if isinstance(case, Broken):
        pytest.fail(case.reason, pytrace=False)
    if isinstance(case, Obstacle):
        raise Skipped(case)
    subject = request.cls.subject()
    definition = subject.definition
    limit, too_long = None, request.config.stash.setdefault(_TOO_LONG, TooLong())
    fitting = request.config.getoption("--workloads") != "all"
    if case.size in (WORKLOAD, LIMITS) and fitting:
        obstacle = why_not_asked(definition, case, device)
        obstacle = obstacle or too_long.obstacle(definition, case)
        if obstacle is not None:
            raise Skipped(obstacle)
        if device.type == "cpu":
            limit = request.config.getoption("--workload-seconds")
    peak_bytes = subject.op.peak_bytes
    watchdog = request.config.stash.get(_WATCHDOG, None)
    with nullcontext() if watchdog is None else watchdog.not_counting():
        obstacle = shortage_after_waiting(definition, case, device, peak_bytes)
    if obstacle is not None:
        raise Skipped(obstacle)
    error_maps = request.config.getoption("--error-maps")
    fresh = subject.trial(
        case, device, shift=case.seed, error_maps=error_maps, cpu_seconds=limit
    )
    yield fresh
    if fresh.took_too_long:
        too_long.add(definition, case)
    fresh.release()


class ComparedDefinitions:
    """The run's results and its table; under xdist the parent writes both."""

    def __init__(self, config: pytest.Config, device: Any) -> None:
        from generator.running.evidence import FinishedTests, ResultsFile

        self._strict = _is_strict(config)
        self._worker = hasattr(config, "workerinput")
        self._table = SummaryTable()
        self._figures = Figures() if config.getoption("--figures") else None
        self._finished = FinishedTests()
        path = None if self._worker else config.getoption("--results")
        self._results = None if path is None else ResultsFile(Path(path), device)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a test once its last report has arrived."""
        test = self._finished.add(report)
        if test is None:
            return
        self._table.add(test)
        if self._figures is not None:
            self._figures.add(test)
        if self._results is not None:
            self._results.write(test)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the figures, if asked for, and the table; a row with a failure is red."""
        for line in self._figures.lines() if self._figures is not None else ():
            terminalreporter.write_line(line)
        width = max(WIDTH, shutil.get_terminal_size().columns)
        is_terminal = terminalreporter.isatty
        for line, is_red in self._table.lines(width if is_terminal else None):
            terminalreporter.write_line(line, red=is_red, bold=is_red)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a run red under --strict in which nothing was compared with a definition.

        Comparisons of a reference with itself don't count: they show no agreement.
        """
        if self._worker or not self._strict:
            return
        if self._table.compared and not self._table.unproven:
            return
        if session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
