"""How SGLang's worker starts: by a fork, by an import of its own, or not at all."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from generator.running import sglang, sglang_process
from generator.running.fork_server import Forked, fork_at
from generator.running.sglang_light import (
    FORK_SERVER_VARIABLE,
)
from kernel_judge.inputs.trial import PROVIDER_SEED
from kernel_judge.obstacle import Kind
from tests.unit.running.sglang_fake import (
    MODULES,
    ask,
    write,
)

# ---- one import for several runs' workers


def test_workers_are_forks_where_there_is_a_fork_server(
    fresh, adapters, folder, monkeypatch
):
    fork_server = sglang_process.fork_server("generator.running", None)
    monkeypatch.setenv(FORK_SERVER_VARIABLE, fork_server.address)
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
        fork_server._process.kill()
        fork_server._process.wait()
        assert ask(adapters.described)[0] == another, "it outlives the fork server"
        with pytest.raises(sglang.WorkerLost, match="its fork server was gone"):
            ask(adapters.is_killed)
        assert torch.equal(ask(adapters.doubled), torch.tensor([2.0, 4.0]))
        assert not isinstance(fresh.process._process, Forked)
    finally:
        assert fork_server.stop() == "it ended with -9"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("assert torch.cuda.get_device_capability(0) == (9, 0)", ""),
        ("torch.cuda.is_initialized = lambda: True", "1: it can't be forked: what it"),
    ],
)
def test_a_fork_server_does_not_initialise_cuda(tmp_path, monkeypatch, text, why):
    """What it imports hears of the GPU from us."""
    write(tmp_path, {**MODULES, "sglang/__init__.py": f"import torch; {text}"})
    monkeypatch.syspath_prepend(tmp_path)
    fork_server = sglang_process.fork_server("generator.running", (90, "H"))
    forked = fork_at(fork_server.address, "os:_exit", [0, 1, 2], [], 30.0)
    assert (forked is None) == bool(why)
    (forked or fork_server._process).wait(20)
    assert why in fork_server.stop()


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
def test_a_failing_import_is_a_reason(fresh, adapters, tmp_path, monkeypatch, text):
    # a folder of each text's own: two of one length, written within a second of each
    # other at one path, are one to Python's cache of compiled files
    monkeypatch.syspath_prepend(write(tmp_path, {"sglang/__init__.py": text}))
    assert sglang.absence() is None
    with pytest.raises(sglang.Unavailable) as caught:
        ask(adapters.doubled)
    assert str(caught.value).startswith(IMPORTS[text])
    assert "\n" not in str(caught.value)
    # it is remembered, not tried again
    monkeypatch.setattr("generator.running.sglang_process.Process", None)
    with pytest.raises(sglang.Unavailable) as again:
        ask(adapters.doubled)
    assert str(again.value) == str(caught.value) == str(sglang.absence())


def test_an_import_that_never_ends_is_a_reason(fresh, adapters, tmp_path, monkeypatch):
    slow = write(tmp_path, {"sglang/__init__.py": "import time; time.sleep(99)"})
    monkeypatch.syspath_prepend(slow)
    monkeypatch.setenv(sglang.START_VARIABLE, "6")
    with pytest.raises(sglang.Unavailable, match="its import took over 6 s"):
        ask(adapters.doubled)


def test_what_is_not_installed_is_not_started(fresh, adapters, monkeypatch, tmp_path):
    (tmp_path / "sglang").mkdir()  # a folder of that name is not the package
    kept = [p for p in sys.path if not (Path(p) / "sglang" / "__init__.py").exists()]
    monkeypatch.setattr(sys, "path", [*kept, str(tmp_path)])
    importlib.invalidate_caches()
    monkeypatch.setattr("generator.running.sglang_process.Process", None)
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
