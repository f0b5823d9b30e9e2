"""Why a provider can't be called: not installed, a broken import, no CUDA, the GPU."""

from __future__ import annotations

import importlib.metadata
import sys
from types import ModuleType

import pytest
import torch

from generator.running import provider_versions
from kernel_judge import elsewhere, providers
from kernel_judge.definition import Backend
from kernel_judge.obstacle import Kind, Obstacle
from tests.builders import CPU

CUDA = torch.device("cuda:0")
ABSENT = Obstacle(Kind.NOT_INSTALLED, "not installed")
BROKEN = Obstacle(Kind.BROKEN, "import failed: OSError: x")
CACHED = (
    providers.import_failure,
    providers.compute_capability,
    provider_versions.version,
)


@pytest.fixture(autouse=True)
def forget():
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that installs a module of a given text; it is removed after."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        # what the test imports must not outlive it
        monkeypatch.delitem(sys.modules, name, raising=False)

    return install


def test_what_is_not_installed_says_so():
    assert providers.import_failure("no_such_module_here") == ABSENT


def test_what_can_be_imported_has_no_failure(module):
    module("fine_provider", "X = 1\n")
    assert providers.import_failure("fine_provider") is None
    sys.modules.pop("fine_provider")


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        ("AssertionError('no\\n  GPU')", "AssertionError: no GPU"),
        ("OSError('libcudart.so.13: cannot open')", "OSError: libcudart.so.13: canno"),
        ("SystemExit('bye')", "SystemExit: bye"),
        ("ImportError('partial')", "ImportError: partial"),
        ("RuntimeError('x' * 999)", f"RuntimeError: {'x' * 200}"),
        ("ValueError", "ValueError: "),
    ],
)
def test_an_import_may_fail_with_any_exception(module, raised, reason):
    module("broken_provider", f"raise {raised}\n")
    found = providers.import_failure("broken_provider")
    assert found is not None
    assert found.kind is Kind.BROKEN
    assert found.reason.startswith(f"import failed: {reason}")
    assert "\n" not in found.reason
    assert len(found.reason) < 240


def test_an_interrupt_by_the_user_is_no_reason(module):
    module("slow_provider", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        providers.import_failure("slow_provider")


def test_an_import_is_tried_once(module):
    module("counted_provider", "import sys\nsys.tries += 1\nraise OSError('no')\n")
    sys.tries = 0
    try:
        first = providers.import_failure("counted_provider")
        assert providers.import_failure("counted_provider") == first
        assert sys.tries == 1
    finally:
        del sys.tries


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.setattr(providers, "import_failure", lambda module: None)
    there = elsewhere.Elsewhere(lambda: None, None, lambda cuda: "")
    monkeypatch.setitem(elsewhere._elsewhere, "sglang", there)


@pytest.mark.parametrize("provider", ["flashinfer", "pytorch"])
def test_a_provider_of_kernels_needs_cuda(importable, provider):
    reason = "needs CUDA, device is cpu"
    expected = Obstacle(Kind.NEEDS_CUDA, reason)
    assert providers.provider_obstacle(provider, CPU) == expected
    assert providers.backend_obstacle(provider, Backend("fa2"), CPU) == expected
    assert providers.provider_obstacle(provider, CUDA) is None


def test_sglang_needs_cuda_for_its_kernels_alone(importable):
    native, triton = Backend("native", needs_cuda=False), Backend("triton")
    assert providers.provider_obstacle("sglang", CPU) is None
    assert providers.backend_obstacle("sglang", native, CPU) is None
    found = providers.backend_obstacle("sglang", triton, CPU)
    assert found == Obstacle(Kind.NEEDS_CUDA, "needs CUDA, device is cpu")


def test_sglang_says_why_it_is_absent_and_is_not_imported(monkeypatch):
    absent = elsewhere.Elsewhere(lambda: ABSENT, None, None)
    monkeypatch.setitem(elsewhere._elsewhere, "sglang", absent)
    for device in (CPU, CUDA):
        assert providers.provider_obstacle("sglang", device) == ABSENT
    assert "sglang" not in sys.modules


def test_a_broken_import_is_the_reason_before_the_device(monkeypatch):
    broken = {"flashinfer": BROKEN}
    monkeypatch.setattr(providers, "import_failure", broken.get)
    assert providers.provider_obstacle("flashinfer", CPU) == BROKEN
    assert providers.provider_obstacle("pytorch", CUDA) is None


@pytest.mark.parametrize(
    ("sm", "reason"),
    [
        (80, "fa3 needs SM90, device is SM80"),
        (90, None),
        (100, "fa3 exists up to SM90, device is SM100"),
    ],
)
def test_a_backend_has_its_range_of_gpus(importable, monkeypatch, sm, reason):
    capability = divmod(sm, 10)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    backend = Backend("fa3", min_sm=90, max_sm=90)
    expected = None if reason is None else Obstacle(Kind.NEEDS_SM, reason)
    assert providers.backend_obstacle("flashinfer", backend, CUDA) == expected


def test_a_backend_says_what_it_has_no_kernel_for(importable, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    backend = Backend("xqa", min_sm=90, limit="logits have no cap")
    found = providers.backend_obstacle("flashinfer", backend, CUDA)
    assert found == Obstacle(Kind.NO_KERNEL, "xqa: logits have no cap")


@pytest.mark.parametrize(
    ("count", "reach", "reason"),
    [
        (1, True, "nccl needs 2 GPUs in one process, CUDA shows 1"),
        (2, True, None),
        (
            3,
            False,
            "nccl needs 2 GPUs, and GPU 0 cannot reach the memory of GPU 2",
        ),
    ],
)
def test_a_backend_may_need_several_gpus(monkeypatch, count, reach, reason):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(
        torch.cuda, "can_device_access_peer", lambda one, other: reach or other == 1
    )
    expected = None if reason is None else Obstacle(Kind.NEEDS_GPUS, reason)
    found = providers.backend_obstacle("pytorch", Backend("nccl", gpus=2), CUDA)
    assert found == expected


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (None, None),
        (
            ABSENT,
            "mtp needs cutlass: not installed (pip install nvidia-cutlass-dsl)",
        ),
        (BROKEN, "mtp needs cutlass: import failed: OSError: x"),
    ],
)
def test_a_backend_may_need_a_module(monkeypatch, failure, reason):
    failures = {"cutlass": failure}
    monkeypatch.setattr(providers, "import_failure", failures.get)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    backend = Backend("mtp", min_sm=90, needs=("triton", "cutlass"))
    found = providers.backend_obstacle("flashinfer", backend, CUDA)
    assert (found and str(found), found and found.kind) == (
        reason,
        failure and failure.kind,
    )
    # the device is the first reason, and what is missing is asked for by its own name
    cpu = providers.backend_obstacle("flashinfer", backend, CPU)
    assert str(cpu) == "needs CUDA, device is cpu"
    failures["triton"] = ABSENT
    found = providers.backend_obstacle("flashinfer", backend, CUDA)
    assert str(found) == "mtp needs triton: not installed (pip install triton)"


def test_what_the_cpu_can_compute_may_need_a_module_too(monkeypatch):
    monkeypatch.setattr(providers, "provider_obstacle", lambda provider, device: None)
    native = Backend("native", needs_cuda=False, needs=("no_such_module_here",))
    assert str(providers.backend_obstacle("sglang", native, CPU)) == (
        "native needs no_such_module_here: not installed "
        "(pip install no_such_module_here)"
    )


def test_the_version_is_that_of_the_distribution(monkeypatch):
    versions = {"flashinfer-python": "0.6.9"}

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    sglang = ModuleType("sglang")
    sglang.__version__ = "0.5.dev"
    monkeypatch.setitem(sys.modules, "sglang", sglang)
    assert provider_versions.version("flashinfer") == "0.6.9"
    assert provider_versions.version("sglang") == "0.5.dev"
    assert provider_versions.version("pytorch") == torch.__version__


@pytest.mark.parametrize("note", ["", "light installation"])
def test_describe_says_how_sglang_is_installed(importable, monkeypatch, note):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.5.23")
    there = elsewhere.Elsewhere(lambda: None, None, lambda cuda: note)
    monkeypatch.setitem(elsewhere._elsewhere, "sglang", there)
    expected = f"sglang 0.5.23 ({note})" if note else "sglang 0.5.23"
    assert provider_versions.describe("sglang", CPU) == expected


def test_describe_is_the_version_or_the_reason(importable, monkeypatch):
    assert provider_versions.describe("pytorch", CUDA) == f"pytorch {torch.__version__}"
    assert (
        provider_versions.describe("pytorch", CPU)
        == "pytorch: needs CUDA, device is cpu"
    )


def test_rocm_has_no_sm_and_no_kernel_of_cuda(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 4))
    monkeypatch.setattr(providers, "provider_obstacle", lambda provider, device: None)
    assert providers.compute_capability(CUDA) == 0
    found = providers.backend_obstacle("flashinfer", Backend("fa2"), CUDA)
    assert found == Obstacle(Kind.NEEDS_CUDA, "needs CUDA, torch is built for ROCm")
    native = Backend("native", needs_cuda=False)
    assert providers.backend_obstacle("sglang", native, CUDA) is None
