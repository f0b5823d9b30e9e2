"""Which GPUs CUDA shows, as CUDA_VISIBLE_DEVICES and the machine have it."""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from generator.execution.gpus import Gpu, Gpus, bind, sleep_while_waiting, visible_gpus
from tests.unit.execution.nvml import GIB, Library


def found(monkeypatch, visible=None, library=None) -> Gpus:
    monkeypatch.setitem(sys.modules, "pynvml", library or Library())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    return visible_gpus()


@pytest.mark.parametrize(
    ("visible", "models", "missing"),
    [
        (None, "abcd", ()),
        ("", "", ()),
        ("-1", "", ()),
        ("NoDevFiles", "", ()),
        ("2,0", "ca", ()),
        (" 1 , 3", "bd", ()),
        ("GPU-d444,GPU-b", "db", ()),
        # as CUDA has it: nothing counts from the first name on that is none
        ("1,7,0", "b", ("7", "0")),
        ("GPU-x,0", "", ("GPU-x", "0")),
        ("nonsense", "", ("nonsense",)),
    ],
)
def test_the_gpus_are_those_that_cuda_shows(monkeypatch, visible, models, missing):
    gpus = found(monkeypatch, visible)
    assert "".join(gpu.model[len("NVIDIA GPU-")] for gpu in gpus.found) == models
    assert gpus.missing == missing
    assert gpus.is_known


def test_each_keeps_the_name_that_the_user_gave_it(monkeypatch):
    gpus = found(monkeypatch, "GPU-b,2,MIG-e555")
    assert [gpu.name for gpu in gpus.found] == ["GPU-b", "2", "MIG-e555"]
    assert gpus.cuda == "13.1"


def test_a_mig_device_has_memory_of_its_own_and_its_gpus_capability(monkeypatch):
    gpus = found(monkeypatch, "MIG-e555")
    mig = Gpu("MIG-e555", "NVIDIA MIG-e555", 90, 18 * GIB, 17 * GIB)
    assert gpus.found == (mig,)


def test_fewer_gpus_than_asked_for_are_one_line(monkeypatch):
    assert found(monkeypatch, "1,7,0").shortage() == (
        "CUDA_VISIBLE_DEVICES names 3 GPUs, CUDA shows 1: there is no GPU '7' here"
    )
    assert found(monkeypatch, "1,0").shortage() == ""
    assert found(monkeypatch).shortage() == ""


def test_what_the_library_does_not_say_is_left_out(monkeypatch):
    silent = "DeviceGetName", "DeviceGetMemoryInfo", "SystemGetCudaDriverVersion"
    gpus = found(monkeypatch, "0", Library(*(f"nvml{name}" for name in silent)))
    assert gpus == Gpus((Gpu("0", "", 93, 0, 0),))


@pytest.mark.parametrize("silent", ["nvmlInit", "nvmlDeviceGetCount"])
def test_without_a_driver_there_is_none(monkeypatch, silent):
    assert found(monkeypatch, "0", Library(silent)) == Gpus()


def test_without_the_library_nothing_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert visible_gpus() == Gpus(is_known=False)


def test_a_process_is_bound_to_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    bind("3")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    (gpu,) = found(monkeypatch, "3").found
    assert gpu.model == "NVIDIA GPU-d444"


def test_a_process_sleeps_while_it_waits_for_any_gpu_that_it_sees(monkeypatch):
    done = []
    driver = SimpleNamespace(
        CUctx_flags=SimpleNamespace(CU_CTX_SCHED_BLOCKING_SYNC=4),
        cuInit=lambda flags: done.append("init"),
        cuDeviceGetCount=lambda: (0, 2),
        cuDeviceGet=lambda place: (0, f"device {place}"),
        cuDevicePrimaryCtxSetFlags=lambda *given: done.append(given),
    )
    bindings = ModuleType("cuda.bindings")
    bindings.driver = driver
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    sleep_while_waiting()
    assert done == ["init", ("device 0", 4), ("device 1", 4)]
    # a driver that says no
    driver.cuDeviceGetCount = lambda: (999, None)
    sleep_while_waiting()
    assert done[3:] == ["init"]


@pytest.mark.parametrize("error", [ImportError, RuntimeError])
def test_without_cudas_bindings_or_driver_a_process_spins(monkeypatch, error):
    class Missing:
        def __getattr__(self, name):
            raise error(name)

    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", Missing())
    sleep_while_waiting()
