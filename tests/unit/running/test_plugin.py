"""The plugin's hooks in this process, on a rendered file and planned by stand-ins.

tests/harness runs the same as a person would; here each hook is one call, and a device
that this machine lacks can be pretended.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.running import plugin, provider_versions
from kernel_judge import elsewhere, providers
from kernel_judge.checks import available
from kernel_judge.checks import sources as of_sources
from kernel_judge.definition import Backend
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.skipping import skip
from tests.builders import (
    CPU,
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    run_of,
    skip_reason,
    trial_of,
)
from tests.unit.running.reports import ended, report
from tests.unit.running.stand_ins import Config, Metafunc

CUDA = torch.device("cuda:0")
ABSENT = Obstacle(Kind.NOT_INSTALLED, "not installed")


ORACLE = {
    "definition": "d",
    "source": "oracle",
    "case": "c",
    "output": "y",
    "verdict": "PASSED",
    "nmse": 1e-6,
}


@pytest.fixture
def cuda(monkeypatch):
    """Pretend two CUDA devices."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Pretended")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(providers, "import_failure", lambda module: None)
    there = elsewhere.Elsewhere(lambda: None, None, lambda cuda: "")
    monkeypatch.setitem(elsewhere._elsewhere, "sglang", there)
    monkeypatch.setattr(provider_versions, "version", lambda provider: "1.2")
    providers.compute_capability.cache_clear()
    yield
    providers.compute_capability.cache_clear()


def end(counted, found):
    """Give the plugin the reports of a test of which one phase is given."""
    for phase in ended(found):
        counted.pytest_runtest_logreport(phase)


def norm_class(**changes):
    name = "rmsnorm_h128"
    return class_of(rmsnorm, known(name), run_of(loaded(name).reference), **changes)


def test_configure_declares_the_marker_and_counts_comparisons():
    config = Config()
    plugin.pytest_configure(config)
    assert config.lines[0][1].startswith("slow: ")
    registered = dict(config.registered)
    assert isinstance(registered["reference-comparisons"], plugin.ComparedDefinitions)
    names = {"comparisons", "context", "evidence", "logs", "memory", "placement"}
    names |= {"watchdog"}
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


def test_only_definitions_that_are_named_are_collected():
    module = SimpleNamespace(one=norm_class(), two=norm_class())
    module.one.name, module.two.name = "one", "two"
    file = pytest.Module.__new__(pytest.Module)
    chosen = plugin.ChosenDefinitions({"two"})
    assert chosen.pytest_pycollect_makeitem(file, module.one) == []
    assert chosen.pytest_pycollect_makeitem(file, module.two) is None
    chosen.pytest_collection_modifyitems()
    wrong = plugin.ChosenDefinitions({"twoo"})
    for cls in (module.one, module.two):
        assert wrong.pytest_pycollect_makeitem(file, cls) == []
    with pytest.raises(pytest.UsageError, match=r"--definition twoo: .* mean two\?"):
        wrong.pytest_collection_modifyitems()


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


def test_several_seeds_are_cases_of_their_own():
    spread = Metafunc(
        norm_class(), "test_contract", Config(seed=[7, 8, 7], sizes="small")
    )
    plugin.pytest_generate_tests(spread)
    usual = Metafunc(norm_class(), "test_contract", Config(sizes="small"))
    plugin.pytest_generate_tests(usual)
    names = [param.id for param in usual.params]
    assert [param.id for param in spread.params] == [
        f"{name}-seed{seed}" for seed in (7, 8) for name in names
    ]
    assert {param.values[0].seed for param in spread.params} == {7, 8}
    one = Metafunc(norm_class(), "test_contract", Config(seed=[7], sizes="small"))
    plugin.pytest_generate_tests(one)
    # as without a seed: a duration that is known of it counts
    assert [param.id for param in one.params] == names


def test_other_tests_are_left_alone():
    for spread in (
        Metafunc(None, "test_x"),
        Metafunc(object, "test_x"),
        Metafunc(norm_class(), "test_x", fixtures=()),
    ):
        plugin.pytest_generate_tests(spread)
        assert spread.params is None


def test_a_provider_that_is_not_usable_is_one_skip_with_the_reason(monkeypatch):
    monkeypatch.setattr(providers, "import_failure", lambda module: ABSENT)
    absent = elsewhere.Elsewhere(lambda: ABSENT, None, None)
    monkeypatch.setitem(elsewhere._elsewhere, "sglang", absent)
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
    assert spread.spread() == [
        "batch-old",
        "long-batch-old",
        "past-limits-old",
        "far-past-limits-old",
        "unavailable-new",
    ]
    assert spread.reasons() == [
        "slow",
        "flashinfer: new needs SM100, device is SM90",
    ]
    native = Backend("native", needs_cuda=False)
    assert available.usable_sources(cls.subject(), CUDA) == [
        ("flashinfer", backends[0]),
        ("sglang", native),
    ]


def test_the_others_are_compared_where_sglang_s_worker_does_not_start(monkeypatch):
    cls = norm_class()
    case = next(iter(cls.op.cases(cls.definition())))
    sources = [("flashinfer", Backend("")), ("sglang", Backend("native"))]
    monkeypatch.setattr(of_sources, "usable_sources", lambda *_: sources)

    def answer(subject, trial, provider, backend):
        if provider == "sglang":
            skip(Kind.BROKEN, "sglang: import failed: OSError: x")
        return trial.outputs

    monkeypatch.setattr(of_sources, "answer", answer)
    reason = skip_reason(
        lambda: cls().test_ground_truths_agree(trial_of(cls, case), ignore_property)
    )
    assert reason == "fewer than two ground truths are usable here: flashinfer"
    sources.append(("pytorch", Backend("")))
    records = []
    told = lambda _, text: records.append(json.loads(text)["source"])
    cls().test_ground_truths_agree(trial_of(cls, case), told)
    assert records == ["flashinfer ~ pytorch"]


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
    counted = plugin.ComparedDefinitions(Config(strict=strict), CPU)
    if compared:
        end(counted, report("test_matches_oracle", ORACLE))
    session = SimpleNamespace(exitstatus=status)
    counted.pytest_sessionfinish(session)
    assert session.exitstatus == expected


def test_a_row_with_a_failure_is_red():
    counted = plugin.ComparedDefinitions(Config(), CPU)
    end(counted, report("test_matches_oracle", ORACLE))
    failed = {**ORACLE, "verdict": "FAILED"}
    end(counted, report("test_matches_oracle", failed, outcome="failed"))
    end(counted, report("test_contract"))
    red = {}
    counted.pytest_terminal_summary(
        SimpleNamespace(
            isatty=False,
            write_line=lambda line, **how: red.update({line.split()[0]: how["red"]}),
        )
    )
    assert red == {"what": False, "rmsnorm": False, "oracle": True, "its": False} | {
        "1": False
    }


def test_each_reference_keeps_its_smallest_definition():
    def one():
        return None

    def other():
        return None

    def item(name, reference, op_type="rmsnorm", **axes):
        cls = SimpleNamespace(name=name, op_type=op_type, reference=reference)
        cls.definition = lambda: SimpleNamespace(axes=axes)
        return SimpleNamespace(cls=cls)

    items = [
        item("large", one, hidden=4096, experts=8),
        item("small", one, hidden=512, experts=8),
        item("tied", one, hidden=8, experts=512),
        item("other", other, hidden=4096),
        item("elsewhere", one, "rope", hidden=4096),
        SimpleNamespace(),
    ]
    config = Config(**{"each-reference": True})
    plugin.pytest_collection_modifyitems(config, items)
    assert [found.cls.name for found in items] == ["small", "other", "elsewhere"]
    assert len(config.deselected) == 3


def test_the_trial_fixture_makes_one_case_or_skips(monkeypatch):
    make = plugin.trial.__wrapped__
    cls = norm_class()
    request = SimpleNamespace(cls=cls, param=cases_of(cls)[0], config=Config())
    fixture = make(request)
    made = next(fixture)
    assert made.case is request.param
    assert made.guessed is False
    # what it keeps goes when its case is over
    assert made.outputs is made.outputs
    assert {"inputs", "outputs"} <= set(vars(made))
    assert list(fixture) == []
    assert not {"inputs", "outputs"} & set(vars(made))
    # the fixture imports the function when it runs
    monkeypatch.setattr(
        "generator.running.free_memory.available_bytes", lambda device: 1
    )
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    assert skip_reason(lambda: next(make(request))).endswith("GiB, device has 0.0")
