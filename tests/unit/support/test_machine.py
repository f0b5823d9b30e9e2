"""What a recording says of the machine that it was made on."""

from __future__ import annotations

import re
import subprocess
from types import SimpleNamespace

import pytest
import torch

from generator.support import machine
from generator.support.definition import Backend
from tests.builders import CPU


@pytest.fixture
def cuda(monkeypatch, tmp_path):
    """Pretend an H200."""
    driver = tmp_path / "version"
    driver.write_text("NVRM version: NVIDIA UNIX  580.65.06  Sat\nGCC version: 13.3\n")
    monkeypatch.setattr(machine, "_DRIVER", driver)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    monkeypatch.setattr(machine, "compute_capability", lambda device: 90)
    monkeypatch.setattr(machine, "version", lambda provider: f"{provider}-1.0")
    return driver


def test_a_gpu_is_named_with_its_driver_and_versions(cuda):
    found = machine.this_machine(torch.device("cuda:0"))
    assert (found.gpu, found.sm) == ("NVIDIA H200", 90)
    assert found.versions["driver"] == "580.65.06"
    assert found.versions["torch"] == torch.__version__
    assert found.versions["flashinfer"] == "flashinfer-1.0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found.date)
    assert found.label("flashinfer", Backend("fa2")) == (
        "flashinfer/fa2@flashinfer-1.0@NVIDIA-H200"
    )
    # cuBLAS comes with torch
    label = found.label("pytorch", Backend("cublas"))
    assert label == f"pytorch/cublas@{torch.__version__}@NVIDIA-H200"
    about = found.about("flashinfer", Backend(""))
    assert (about["source"], about["backend"]) == ("flashinfer", "")


@pytest.mark.parametrize("answer", ["570.1.2\n570.1.2\n", OSError("not there")])
def test_nvidia_smi_is_asked_where_the_system_does_not_say(cuda, answer, monkeypatch):
    def ask(*_, **__):
        if isinstance(answer, OSError):
            raise answer
        return SimpleNamespace(stdout=answer)

    cuda.unlink()
    monkeypatch.setattr(subprocess, "run", ask)
    told = "570.1.2" if isinstance(answer, str) else ""
    found = machine.this_machine(torch.device("cuda:0"))
    assert found.versions["driver"] == told


def test_a_cpu_has_no_driver(monkeypatch):
    def fail(provider):
        raise ImportError(provider)

    monkeypatch.setattr(machine, "version", fail)
    found = machine.this_machine(CPU)
    assert (found.gpu, found.sm) == ("CPU", None)
    assert "driver" not in found.versions
    assert found.versions["flashinfer"] == ""
