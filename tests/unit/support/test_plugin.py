"""The plugin's hooks in this process, on a rendered file and planned by stand-ins.

tests/harness runs the same as a person would; here each hook is one call, and a device
that this machine lacks can be pretended.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from generator.ops import gemm, rmsnorm
from generator.support import available, harness, plugin, providers
from generator.support.definition import Backend
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    run_of,
    skip_reason,
    trial_of,
)

CUDA = torch.device("cuda:0")


class Config:
    """Stand in for pytest's config: options, and what was registered."""

    def __init__(self, strict=False, **options):
        self.options = {"--device": "cpu", "--sizes": None, "--definition": []}
        self.options |= {f"--{name}": value for name, value in options.items()}
        self.strict = strict
        self.lines, self.registered, self.deselected = [], [], []
        self.pluginmanager = SimpleNamespace(
            register=lambda value, name: self.registered.append((name, value))
        )
        self.hook = SimpleNamespace(
            pytest_deselected=lambda items: self.deselected.extend(items)
        )

    def getoption(self, name, default=None):
        return self.options.get(name, default)

    def getini(self, name):
        assert name == "strict"
        return self.strict

    def addinivalue_line(self, name, line):
        self.lines.append((name, line))


@pytest.fixture
def cuda(monkeypatch):
    """Pretend two CUDA devices."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Pretended")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(providers, "import_failure", lambda module: None)
    monkeypatch.setattr(providers.sglang, "absence", lambda: None)
    monkeypatch.setattr(providers.sglang, "note", lambda cuda: "")
    monkeypatch.setattr(providers, "version", lambda provider: "1.2")
    providers.compute_capability.cache_clear()
    yield
    providers.compute_capability.cache_clear()


def norm_class(**changes):
    name = "rmsnorm_h128"
    return class_of(rmsnorm, known(name), run_of(loaded(name).reference), **changes)


class Metafunc:
    """Stand in for pytest's metafunc: remember how a test was spread."""

    def __init__(self, cls, function, config=None, fixtures=("trial",)):
        self.cls, self.config = cls, config or Config()
        self.function = SimpleNamespace(__name__=function)
        self.fixturenames = [*fixtures, "record_property"]
        self.params = None

    def parametrize(self, names, params, **options):
        assert options["scope"] == "class"
        self.names, self.params = names, params

    def spread(self):
        plugin.pytest_generate_tests(self)
        return [param.id for param in self.params]

    def reasons(self):
        marks = [mark for param in self.params for mark in param.marks]
        return [mark.kwargs.get("reason", mark.name) for mark in marks]


def test_configure_declares_the_marker_and_counts_comparisons():
    config = Config()
    plugin.pytest_configure(config)
    assert config.lines[0][1].startswith("slow: ")
    registered = dict(config.registered)
    assert isinstance(registered["reference-comparisons"], plugin.Compared)
    names = {"comparisons", "context", "memory", "evidence"}
    assert registered.keys() == {f"reference-{name}" for name in names}


@pytest.mark.parametrize("sizes", ["huge", "", "small,huge"])
def test_unknown_sizes_are_refused(sizes):
    with pytest.raises(pytest.UsageError, match=r"choose out of small, medium, large"):
        plugin.pytest_configure(Config(sizes=sizes))


def test_a_missing_torch_is_one_line(monkeypatch):
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(pytest.UsageError, match="need torch: pip install torch"):
        plugin.pytest_configure(Config())


@pytest.mark.parametrize(
    ("name", "device"),
    [(None, "cuda:0"), ("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")],
)
def test_the_device_is_cuda_where_usable(cuda, name, device):
    assert str(plugin._device(Config(device=name))) == device


@pytest.mark.parametrize("name", ["tpu", "cuda:x", "meta"])
def test_a_device_that_is_none_is_refused(name):
    with pytest.raises(pytest.UsageError, match="choose cpu, cuda or cuda:N"):
        plugin._device(Config(device=name))


def test_a_device_that_is_not_there_is_refused(cuda):
    with pytest.raises(pytest.UsageError, match="cuda:2: there are 2 CUDA devices"):
        plugin._device(Config(device="cuda:2"))


def test_without_cuda_the_default_is_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert plugin._device(Config(device=None)) == torch.device("cpu")
    with pytest.raises(pytest.UsageError, match="no usable CUDA device here"):
        plugin._device(Config(device="cuda"))


def test_the_header_describes_a_gpu(cuda):
    lines = plugin.pytest_report_header(Config(device="cuda:1", sizes="small"))
    assert lines[0].startswith("reference tests: device cuda:1 (Pretended, SM90, CUDA")
    assert lines[1].endswith("sizes small")
    assert lines[2:] == ["  flashinfer 1.2", "  sglang 1.2", "  pytorch 1.2"]


def test_definition_deselects_the_others():
    items = [
        SimpleNamespace(cls=SimpleNamespace(name=n)) for n in ("one", "two", "three")
    ]
    items.append(SimpleNamespace())
    one, two, three, function = items
    config = Config(definition=["two"])
    plugin.pytest_collection_modifyitems(config, items)
    assert items == [two]
    assert config.deselected == [one, three, function]
    with pytest.raises(pytest.UsageError, match=r"--definition twoo: .* mean two\?"):
        plugin.pytest_collection_modifyitems(Config(definition=["twoo"]), items)


@pytest.mark.parametrize(
    ("sizes", "cases"),
    [
        (None, ["one-row", "tiny-variance", "large-values", "zero-rows", "batch"]),
        ("medium", ["batch"]),
        ("medium,large", ["batch", "long-batch"]),
    ],
)
def test_a_test_is_spread_over_the_cases(sizes, cases):
    spread = Metafunc(norm_class(), "test_determinism", Config(sizes=sizes))
    assert spread.spread() == cases
    slow = [p.id for p in spread.params if any(m.name == "slow" for m in p.marks)]
    assert slow == [case for case in cases if case.startswith("long")]


def test_other_tests_are_left_alone():
    for spread in (
        Metafunc(None, "test_x"),
        Metafunc(object, "test_x"),
        Metafunc(norm_class(), "test_x", fixtures=()),
    ):
        plugin.pytest_generate_tests(spread)
        assert spread.params is None


def test_a_provider_that_is_not_usable_is_one_skip_with_the_reason(monkeypatch):
    monkeypatch.setattr(providers, "import_failure", lambda module: "not installed")
    monkeypatch.setattr(providers.sglang, "absence", lambda: "not installed")
    fixtures = ("trial", "backend")
    spread = Metafunc(norm_class(), "test_matches_flashinfer", fixtures=fixtures)
    assert spread.spread() == ["unavailable"]
    assert spread.reasons() == ["flashinfer: not installed"]
    agree = Metafunc(norm_class(), "test_ground_truths_agree")
    assert agree.spread() == ["unavailable"]
    assert agree.reasons() == ["fewer than two ground truths are usable here: none"]


def test_a_usable_backend_gets_every_case(cuda):
    backends = (Backend("old"), Backend("new", min_sm=100))
    cls = norm_class(flashinfer_backends=staticmethod(lambda definition: backends))
    config = Config(device="cuda", sizes="medium,large")
    fixtures = ("trial", "backend")
    spread = Metafunc(cls, "test_matches_flashinfer", config, fixtures)
    assert spread.spread() == ["batch-old", "long-batch-old", "unavailable-new"]
    assert spread.reasons() == [
        "slow",
        "flashinfer: new needs SM100, device is SM90",
    ]
    native = Backend("native", needs_cuda=False)
    assert available.usable_sources(cls, CUDA) == [
        ("flashinfer", backends[0]),
        ("sglang", native),
    ]


def test_the_others_are_compared_where_sglang_s_worker_does_not_start(monkeypatch):
    cls = norm_class()
    case = next(iter(cls.cases(cls.definition())))
    sources = [("flashinfer", Backend("")), ("sglang", Backend("native"))]
    monkeypatch.setattr(harness, "usable_sources", lambda cls, device: sources)
    monkeypatch.setattr(harness.sglang, "refusal", lambda: "import failed: OSError: x")
    compared = []
    monkeypatch.setattr(cls, "_expect", lambda *source: compared.append(source) or ())
    monkeypatch.setattr(cls, "_check", lambda *arguments, **options: None)
    reason = skip_reason(
        lambda: cls().test_ground_truths_agree(trial_of(cls, case), ignore_property)
    )
    assert reason == "fewer than two ground truths are usable here: flashinfer"
    sources.append(("pytorch", Backend("")))
    cls().test_ground_truths_agree(trial_of(cls, case), ignore_property)
    assert [provider for _, _, provider, _ in compared] == ["flashinfer", "pytorch"]


def report(when="call", **properties):
    pairs = [(name, json.dumps(value)) for name, value in properties.items()]
    return SimpleNamespace(when=when, user_properties=pairs)


@pytest.mark.parametrize(
    ("strict", "compared", "status", "expected"),
    [
        (True, False, pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED),
        (
            True,
            False,
            pytest.ExitCode.NO_TESTS_COLLECTED,
            pytest.ExitCode.TESTS_FAILED,
        ),
        (True, False, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.USAGE_ERROR),
        (True, True, pytest.ExitCode.OK, pytest.ExitCode.OK),
        (False, False, pytest.ExitCode.OK, pytest.ExitCode.OK),
    ],
)
def test_strict_demands_a_comparison(strict, compared, status, expected):
    counted = plugin.Compared(Config(strict=strict))
    if compared:
        record = {"source": "oracle", "definition": "d"}
        counted.pytest_runtest_logreport(report("setup", comparison=record))
        counted.pytest_runtest_logreport(report(comparison=record, other=1))
    session = SimpleNamespace(exitstatus=status)
    counted.pytest_sessionfinish(session)
    assert session.exitstatus == expected
    lines = []
    counted.pytest_terminal_summary(SimpleNamespace(line=lines.append))
    told = "1 with oracle" if compared else "none with anything"
    assert lines == [f"definitions compared: {told}"]


def test_the_trial_fixture_makes_one_case_or_skips(monkeypatch):
    make = plugin.trial.__wrapped__
    cls = norm_class()
    request = SimpleNamespace(cls=cls, param=cases_of(cls)[0], config=Config())
    made = make(request)
    assert made.case is request.param
    assert made.guessed is False
    # the fixture imports the function when it runs
    monkeypatch.setattr("generator.support.memory.available_bytes", lambda device: 1)
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    assert skip_reason(lambda: make(request)).endswith("GiB, device has 0.0")


@pytest.fixture
def usable(monkeypatch):
    """Pretend that every provider can be called on the CPU."""
    monkeypatch.setattr(harness, "backend_reason", lambda *_: None)


def gemm_class(**changes):
    name = "gemm_n128_k2048"
    return class_of(gemm, known(name), run_of(loaded(name).reference), **changes)


def test_a_live_kernel_is_compared_with_the_reference(usable):
    cls = gemm_class()
    trial = trial_of(cls, cases_of(cls)[1])
    records = []
    cls().test_matches_pytorch(
        trial, Backend("cublas"), lambda name, value: records.append(json.loads(value))
    )
    (record,) = records
    assert (record["source"], record["verdict"]) == ("pytorch/cublas", "PASSED")
    assert record["rows_left_out"] == 0


def test_a_kernel_that_differs_is_red(usable):
    def ground_truth(definition, inputs, backend):
        return inputs["A"] @ inputs["B"].T * 2

    cls = gemm_class(pytorch_ground_truth=staticmethod(ground_truth))
    trial = trial_of(cls, cases_of(cls)[1])
    with pytest.raises(AssertionError, match="against pytorch/cublas, odd-rows: FAIL"):
        cls().test_matches_pytorch(trial, Backend("cublas"), ignore_property)


def test_ground_truths_are_held_against_each_other(usable):
    factors = {"one": 1.0, "two": 1.0, "three": 1.5}

    def ground_truth(definition, inputs, backend):
        return inputs["A"] @ inputs["B"].T * factors[backend]

    def with_backends(*names):
        made = tuple(map(Backend, names))
        return gemm_class(
            pytorch_backends=staticmethod(lambda definition: made),
            pytorch_ground_truth=staticmethod(ground_truth),
        )

    records = []
    cls = with_backends("one", "two")
    trial = trial_of(cls, cases_of(cls)[1])
    cls().test_ground_truths_agree(trial, lambda name, value: records.append(value))
    (record,) = map(json.loads, records)
    assert record["source"] == "pytorch/one ~ pytorch/two"
    cls = with_backends("one", "three")
    with pytest.raises(AssertionError, match="FAILED"):
        cls().test_ground_truths_agree(trial_of(cls, trial.case), ignore_property)
    cls = with_backends("one")
    reason = skip_reason(
        lambda: cls().test_ground_truths_agree(
            trial_of(cls, trial.case), ignore_property
        )
    )
    assert reason == "fewer than two ground truths are usable here: pytorch/one"


def test_an_unresolved_definition_is_skipped_with_the_reason():
    cls = gemm_class(unresolved="no source knows eps")
    trial, test = trial_of(cls, cases_of(cls)[0]), cls()
    calls = {
        "oracle": lambda: test.test_matches_oracle(trial, ignore_property),
        "pytorch": lambda: test.test_matches_pytorch(
            trial, Backend("cublas"), ignore_property
        ),
    }
    for source, call in calls.items():
        assert skip_reason(call) == f"{source}: UNRESOLVED: no source knows eps"


def test_the_contract_names_a_wrong_order_of_parameters():
    cls = class_of(gemm, known("gemm_n128_k2048"), lambda B, A: A @ B.T)
    with pytest.raises(AssertionError, match="called with the inputs positionally"):
        cls().test_contract(trial_of(cls, cases_of(cls)[0]))


def test_main_is_pytests_exit_status(monkeypatch):
    given = []
    monkeypatch.setattr(pytest, "main", lambda arguments: given.append(arguments) or 3)
    assert harness.main("file.py", ["-q"]) == 3
    assert given == [["file.py", "-q"]]
