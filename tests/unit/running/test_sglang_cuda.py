"""Tensors of a GPU reach SGLang's worker without being copied, and come back."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from contextlib import suppress

import pytest
import torch

from generator.running import sglang, sglang_process, sglang_wire
from kernel_judge.definition import Definition, Interface
from kernel_judge.inputs.trial import PROVIDER_SEED, same_bits
from tests.unit.running.sglang_fake import ADAPTERS, MODULES, write

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
DEFINITION = Definition("some", "some", Interface({}, {}), {})
LARGE = 256 << 20


def test_release_finds_its_arguments_by_their_place(monkeypatch):
    from torch.multiprocessing.reductions import rebuild_cuda_tensor

    names = tuple(inspect.signature(rebuild_cuda_tensor).parameters)
    released = []

    def release(*arguments, device):
        released.append((*arguments, device))

    monkeypatch.setattr(torch.UntypedStorage, "_release_ipc_counter", release)
    sglang_wire.release(sglang_wire.Message(shared=[names]))
    assert released == [("ref_counter_handle", "ref_counter_offset", "storage_device")]


@pytest.fixture
def adapters(tmp_path, monkeypatch):
    folder = write(tmp_path, {**MODULES, "the_adapters.py": ADAPTERS})
    monkeypatch.syspath_prepend(folder)
    spec = importlib.util.spec_from_file_location(
        "adapters", folder / "the_adapters.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    provider = sglang.SGLangWorker()
    monkeypatch.setattr(sglang, "_provider", provider)
    yield module
    provider.stop()


def ask(adapter, **inputs):
    return sglang.ask(adapter, DEFINITION, inputs, "", PROVIDER_SEED)


@needs_cuda
def test_large_tensors_are_shared_and_written_in_place(adapters):
    x = torch.zeros(LARGE, dtype=torch.uint8, device="cuda")
    out = ask(adapters.in_place, x=x)
    reason = sglang._provider.not_shared
    if reason:
        pytest.skip(f"this machine does not share memory of the GPU: {reason}")
    assert out.is_cuda
    assert bool((out == 1).all())
    assert bool((x == 1).all()), "the worker wrote to a copy"


@needs_cuda
@pytest.mark.parametrize("share", [True, False])
def test_tensors_come_back_to_the_device(adapters, share):
    sglang._provider.not_shared = None if share else "as some containers"
    x = torch.randn(1 << 19, device="cuda").to(torch.bfloat16)
    forms = {"x": x, "small": x[:5], "turned": x.reshape(512, -1).t(), "none": None}
    out, (others,) = ask(adapters.echo, **forms, cpu=torch.ones(2))
    assert out.is_cuda
    assert not others["cpu"].is_cuda
    assert same_bits(out, x)
    assert same_bits(others["turned"], forms["turned"])


@needs_cuda
@pytest.mark.parametrize("name", ["in_place", "raises", "dies", "is_killed"])
def test_memory_is_free_again_whatever_the_worker_does(adapters, name):
    ask(adapters.in_place, x=torch.zeros(8, device="cuda"))
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        x = torch.zeros(LARGE, dtype=torch.uint8, device="cuda")
        with suppress(sglang.AdapterError, sglang.WorkerLost):
            ask(getattr(adapters, name), x=x)
        del x
        torch.cuda.ipc_collect()
        assert torch.cuda.memory_allocated() - before < LARGE


def test_sharing_is_given_up_where_the_handle_is_refused(monkeypatch):
    def refused(process, request, seconds, *, share):
        raise RuntimeError("CUDA error: operation not supported\nmore")

    monkeypatch.setattr(sglang_process, "exchange", refused)
    found = sglang_process.try_sharing(None, torch.device("cpu"), 1.0)
    assert found == "RuntimeError: CUDA error: operation not supported"


@pytest.mark.parametrize(
    ("reply", "writes", "found"),
    [
        (("answer", None), True, ""),
        (("answer", None), False, "what the worker writes is not seen here"),
        (("error", {"type": "E", "message": "no\nmore"}), False, "E: no"),
    ],
)
def test_sharing_is_tried_by_writing(monkeypatch, reply, writes, found):
    def exchange(process, request, seconds, *, share):
        if writes:
            request[1].add_(1)
        return reply

    monkeypatch.setattr(sglang_process, "exchange", exchange)
    assert sglang_process.try_sharing(None, torch.device("cpu"), 1.0) == found


def test_nothing_of_it_is_in_this_process():
    assert "sglang" not in sys.modules
