"""SGLang's worker answers, or says why not, whatever an adapter does to it.

The package is a fake of its name: what is tested is the process around it.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import weakref
from contextlib import suppress

import pytest
import torch

from generator.running import sglang
from generator.running.sglang_light import (
    StandInFinder,
    is_installed,
)
from kernel_judge.inputs.trial import PROVIDER_SEED, same_bits
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import Skip
from tests.builders import ROOT
from tests.unit.running.sglang_fake import (
    X,
    ask,
    is_gone,
)

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


def test_an_adapter_may_skip_a_case(provider, adapters):
    with pytest.raises(Skip, match="not with so few keys") as caught:
        ask(adapters.skips)
    assert caught.value.obstacle.kind is Kind.NO_KERNEL


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


# ---- the end of a run

RUN = """
import os, signal, sys
sys.path[:0] = [{folder!r}, {root!r}]
import importlib.util, torch
from generator.running import sglang
from kernel_judge.definition import Definition, Interface
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
