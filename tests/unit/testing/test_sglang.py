"""SGLang's worker answers, or says why not, whatever an adapter does to it.

The package is a fake of its name: what is tested is the process around it.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from generator.testing import sglang, sglang_process
from generator.testing.definition import Definition, Interface
from generator.testing.nursery import Forked, fork_at
from generator.testing.obstacle import Kind
from generator.testing.sglang_light import (
    NURSERY_VARIABLE,
    StandInFinder,
    is_installed,
)
from generator.testing.trial import PROVIDER_SEED, same_bits
from tests.builders import ROOT
from tests.unit.testing.sglang_fake import ADAPTERS, MODULES, write

DEFINITION = Definition("some_h4", "some", Interface({}, {}), {"h": 4}, {"eps": 0.5})
X = {"x": torch.tensor([1.0, 2.0])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Put the fake package first on the path, for all tests of this module."""
    path = write(tmp_path_factory.mktemp("fake"), MODULES)
    (path / "the_adapters.py").write_text(ADAPTERS)
    sys.path.insert(0, str(path))
    importlib.invalidate_caches()
    yield path
    sys.path.remove(str(path))


@pytest.fixture(scope="module")
def adapters(folder) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "the_adapters", folder / "the_adapters.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shared_provider(folder):
    provider = sglang.Provider()
    yield provider
    provider.stop()


@pytest.fixture
def provider(shared_provider, monkeypatch):
    """Let `ask` use one worker for the whole module, with its losses forgiven."""
    shared_provider.losses, shared_provider.refusal = 0, None
    monkeypatch.setattr(sglang, "_provider", shared_provider)
    return shared_provider


@pytest.fixture
def fresh(folder, monkeypatch):
    """Let `ask` use a worker of this test's own."""
    provider = sglang.Provider()
    monkeypatch.setattr(sglang, "_provider", provider)
    yield provider
    provider.stop()


def ask(adapter: Any, inputs: dict[str, Any] = X, draws: int = PROVIDER_SEED) -> Any:
    return sglang.ask(adapter, DEFINITION, inputs, "native", draws)


def is_gone(pid: int, seconds: float = 20.0) -> bool:
    """Return whether a process, not of this one's children, ends within a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True  # nobody here reaps what this process did not start
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


# ---- what is asked, and what comes back


def test_an_adapter_answers(provider, adapters):
    assert torch.equal(ask(adapters.doubled), torch.tensor([2.0, 4.0]))


def test_the_adapter_gets_its_definition_backend_and_seed(provider, adapters):
    pid, name, backend, rotary_is_native, drawn = ask(adapters.described)
    assert (name, backend, rotary_is_native) == ("some_h4", "native", True)
    assert pid != os.getpid()
    torch.manual_seed(PROVIDER_SEED)
    assert torch.equal(drawn, torch.rand(4))
    assert not torch.equal(drawn, ask(adapters.described, draws=PROVIDER_SEED + 1)[-1])


def test_the_worker_starts_at_the_first_question_and_once(fresh, adapters):
    assert fresh.process is None
    first, second = ask(adapters.described)[0], ask(adapters.described)[0]
    assert first == second
    fresh.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_keep_their_bits_and_strides(provider, adapters, dtype):
    numbers = (torch.arange(24) % 7).to(torch.float32).reshape(2, 3, 4).to(dtype)
    forms = {
        "x": numbers,
        "scalar": numbers[1, 1, 1],
        "empty": numbers[:0],
        "empty_inside": torch.empty(3, 0, 2, dtype=dtype),
        "transposed": numbers.permute(2, 0, 1),
        "strided": numbers[:, ::2, 1:3],
        "expanded": numbers[0, 0, :1].expand(5),
    }
    x, (others,) = ask(adapters.echo, forms)
    assert same_bits(x, numbers)
    assert list(others) == list(forms)
    for name, sent in forms.items():
        assert same_bits(others[name], sent), name
    assert others["transposed"].stride() == forms["transposed"].stride()


def test_plain_values_travel_too(provider, adapters):
    inputs = {"x": 1.5, "none": None, "flag": True, "nan_free": [1, "two"]}
    assert ask(adapters.echo, inputs) == (1.5, [inputs])


def test_a_tensor_larger_than_a_chunk(provider, adapters):
    large = torch.arange(70 << 20, dtype=torch.uint8)
    assert torch.equal(ask(adapters.echo, {"x": large})[0], large)


def test_writing_in_place_is_the_adapter_s_own_affair(provider, adapters):
    x = torch.zeros(3)
    assert torch.equal(ask(adapters.in_place, {"x": x}), torch.ones(3))
    assert torch.equal(x, torch.zeros(3))


def test_noise_stays_in_the_worker(provider, adapters, capfd):
    assert torch.equal(ask(adapters.noisy), X["x"])
    assert capfd.readouterr() == ("", "")


def test_a_real_package_wins_over_its_stand_in(provider, adapters):
    real, zmq, imported = ask(adapters.packages)
    assert (real, imported) == (1, True)
    assert (zmq == "9999.0") is not is_installed("zmq")


def test_nothing_of_it_is_left_in_this_process(provider, adapters):
    ask(adapters.doubled)
    assert "sglang" not in sys.modules
    assert not any(isinstance(finder, StandInFinder) for finder in sys.meta_path)


# ---- what goes wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("raises", "ZeroDivisionError: an adapter's own fault"),
        ("exits", "SystemExit: 4"),
        ("interrupted", "KeyboardInterrupt: KeyboardInterrupt"),
        ("unpicklable", "lambda"),
        ("there_is_no_such_adapter", "AttributeError: module"),
    ],
)
def test_what_an_adapter_raises_comes_back(provider, adapters, name, text):
    pid = ask(adapters.described)[0]
    adapter = getattr(adapters, name, None)
    if adapter is None:
        adapter = type(adapters.raises)(adapters.raises.__code__, {}, name)
    with pytest.raises(sglang.AdapterError) as caught:
        ask(adapter)
    assert text in str(caught.value)
    assert "in the worker:\nTraceback" in str(caught.value)
    assert ask(adapters.described)[0] == pid, "the worker survives"


def test_the_traceback_names_the_adapter(provider, adapters):
    with pytest.raises(sglang.AdapterError, match=r"the_adapters\.py.*in raises"):
        ask(adapters.raises)


def test_an_adapter_may_say_that_it_can_not(provider, adapters):
    with pytest.raises(sglang.Unavailable, match="this version has no such layer"):
        ask(adapters.not_here)
    assert sglang.absence() is None


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("dies", "ended with status 7; it printed last:\nthese are my last words"),
        ("is_killed", "ended with signal SIGKILL"),
    ],
)
def test_a_worker_that_dies_is_replaced(provider, adapters, name, how):
    pid = ask(adapters.described)[0]
    with pytest.raises(sglang.WorkerLost) as caught:
        ask(getattr(adapters, name))
    assert str(caught.value) == f"SGLang's worker {how}"
    assert ask(adapters.described)[0] != pid


@pytest.mark.parametrize("name", ["dies", "is_killed", "raises"])
def test_inputs_are_free_without_a_collection(provider, adapters, name):
    """What goes on to hold the inputs holds the GPU's memory (Python 3.12 and later)."""
    given = torch.zeros(4)
    alive = weakref.ref(given)
    gc.collect()
    gc.disable()
    try:
        with suppress(sglang.WorkerLost, sglang.AdapterError):
            ask(getattr(adapters, name), {"x": given})
        del given
        assert alive() is None
    finally:
        gc.enable()


def test_a_worker_that_dies_between_two_questions_is_replaced(provider, adapters):
    pid = ask(adapters.described)[0]
    os.kill(pid, signal.SIGKILL)
    provider.process._process.wait()
    assert ask(adapters.described)[0] != pid
    assert provider.losses == 1


def test_a_worker_that_never_answers_is_killed(provider, adapters, monkeypatch):
    pid = ask(adapters.described)[0]
    monkeypatch.setenv(sglang.ANSWER_VARIABLE, "0.5")
    with pytest.raises(sglang.WorkerLost) as caught:
        ask(adapters.sleeps)
    expected = "did not answer in 0.5 s; it printed last:\ngood night"
    assert str(caught.value) == f"SGLang's worker {expected}"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    monkeypatch.delenv(sglang.ANSWER_VARIABLE)
    assert ask(adapters.described)[0] != pid


def test_a_broken_cuda_context_ends_the_worker(provider, adapters):
    pid = ask(adapters.described)[0]
    with pytest.raises(sglang.AdapterError, match="RuntimeError: a kernel failed"):
        ask(adapters.breaks_the_gpu)
    assert provider.losses == 1
    assert ask(adapters.described)[0] != pid


def test_after_too_many_losses_it_is_not_asked_again(fresh, adapters, monkeypatch):
    monkeypatch.setattr(sglang, "MOST_LOSSES", 1)
    with pytest.raises(sglang.WorkerLost):
        ask(adapters.dies)
    reason = "not started again, its worker was lost 1 times, at last so: ended with"
    with pytest.raises(sglang.Unavailable, match=reason):
        ask(adapters.doubled)
    assert reason in str(sglang.absence())


# ---- one import for several runs' workers


def test_workers_are_forks_where_there_is_a_nursery(
    fresh, adapters, folder, monkeypatch
):
    nursery = sglang_process.nursery("generator.testing", None)
    monkeypatch.setenv(NURSERY_VARIABLE, nursery.address)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    try:
        pid, *_, rotary_is_native, drawn = ask(adapters.described)
        assert isinstance(fresh.process._process, Forked)
        torch.manual_seed(PROVIDER_SEED)
        assert torch.equal(drawn, torch.rand(4))
        assert rotary_is_native
        assert ask(adapters.threads) == 2
        with pytest.raises(sglang.WorkerLost, match="ended with status 7; it printed"):
            ask(adapters.dies)
        another = ask(adapters.described)[0]
        assert another != pid
        nursery._process.kill()
        nursery._process.wait()
        assert ask(adapters.described)[0] == another, "it outlives the nursery"
        with pytest.raises(sglang.WorkerLost, match="its nursery was gone"):
            ask(adapters.is_killed)
        assert torch.equal(ask(adapters.doubled), torch.tensor([2.0, 4.0]))
        assert not isinstance(fresh.process._process, Forked)
    finally:
        assert nursery.stop() == "it ended with -9"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("assert torch.cuda.get_device_capability(0) == (9, 0)", ""),
        ("torch.cuda.is_initialized = lambda: True", "1: it can't be forked: what it"),
    ],
)
def test_a_nursery_does_not_initialise_cuda(tmp_path, monkeypatch, text, why):
    """What it imports hears of the GPU from us."""
    write(tmp_path, {**MODULES, "sglang/__init__.py": f"import torch; {text}"})
    monkeypatch.syspath_prepend(tmp_path)
    nursery = sglang_process.nursery("generator.testing", (90, "H"))
    forked = fork_at(nursery.address, "os:_exit", [0, 1, 2], [], 30.0)
    assert (forked is None) == bool(why)
    (forked or nursery._process).wait(20)
    assert why in nursery.stop()


# ---- why it can't be had

IMPORTS = {
    "raise OSError('libcudart.so.13:\\n  no')": "import failed: OSError: libcudart.so.13: no",
    "assert False, 'no GPU'": "import failed: AssertionError: no GPU",
    "import sys; sys.exit(3)": "import failed: SystemExit: 3",
    "raise KeyboardInterrupt": "import failed: KeyboardInterrupt: ",
    "class Odd(BaseException): pass\nraise Odd('a')": "import failed: Odd: a",
    "import there_is_none": "import failed: ModuleNotFoundError: No module named",
    "def (:": "import failed: SyntaxError: ",
    "import os; print('bye'); os._exit(7)": (
        "its import ended with status 7; it printed last: bye"
    ),
}


@pytest.mark.parametrize("text", IMPORTS)
def test_a_failing_import_is_a_reason(fresh, adapters, folder, monkeypatch, text):
    broken = write(folder / "broken", {"sglang/__init__.py": text})
    monkeypatch.syspath_prepend(broken)
    assert sglang.absence() is None
    with pytest.raises(sglang.Unavailable) as caught:
        ask(adapters.doubled)
    assert str(caught.value).startswith(IMPORTS[text])
    assert "\n" not in str(caught.value)
    # it is remembered, not tried again
    monkeypatch.setattr("generator.testing.sglang_process.Process", None)
    with pytest.raises(sglang.Unavailable) as again:
        ask(adapters.doubled)
    assert str(again.value) == str(caught.value) == str(sglang.absence())


def test_an_import_that_never_ends_is_a_reason(fresh, adapters, folder, monkeypatch):
    slow = write(folder / "slow", {"sglang/__init__.py": "import time; time.sleep(99)"})
    monkeypatch.syspath_prepend(slow)
    monkeypatch.setenv(sglang.START_VARIABLE, "6")
    with pytest.raises(sglang.Unavailable, match="its import took over 6 s"):
        ask(adapters.doubled)


def test_what_is_not_installed_is_not_started(fresh, adapters, monkeypatch, tmp_path):
    (tmp_path / "sglang").mkdir()  # a folder of that name is not the package
    kept = [p for p in sys.path if not (Path(p) / "sglang" / "__init__.py").exists()]
    monkeypatch.setattr(sys, "path", [*kept, str(tmp_path)])
    importlib.invalidate_caches()
    monkeypatch.setattr("generator.testing.sglang_process.Process", None)
    assert str(sglang.absence()) == "not installed"
    with pytest.raises(sglang.Unavailable, match="not installed"):
        ask(adapters.doubled)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.5.22.post1", "version 0.5.22.post1 is older than 0.5.23"),
        ("0.5.23", None),
        ("0.6", None),
        ("1.0rc1", None),
    ],
)
def test_an_older_version_is_a_reason(fresh, monkeypatch, version, reason):
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    found = sglang.absence()
    assert (found and found.reason) == reason
    assert found is None or found.kind is Kind.TOO_OLD


# ---- the end of a run

RUN = """
import os, signal, sys
sys.path[:0] = [{folder!r}, {root!r}]
import importlib.util, torch
from generator.testing import sglang
from generator.testing.definition import Definition, Interface
import the_adapters
definition = Definition("n", "o", Interface({{}}, {{}}), {{}})
print(sglang.ask(the_adapters.described, definition, {{}}, "", 1)[0], flush=True)
{last}
"""
KILLED_LATER = (
    "import threading; threading.Timer(1, lambda: os.kill(os.getpid(), 9)).start()"
)


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ("", 0),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os._exit(5)", 5),
        (KILLED_LATER + "; sglang.ask(the_adapters.sleeps, definition, {}, '', 1)", -9),
    ],
    ids=["ends", "is-killed", "exits-hard", "is-killed-while-it-asks"],
)
def test_the_worker_ends_with_the_run(folder, last, status):
    text = RUN.format(folder=str(folder), root=str(ROOT), last=last)
    done = subprocess.run(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == status
    assert is_gone(int(done.stdout))
