"""What a recording says of the machine that it was made on."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import torch

from generator.running import machine
from kernel_judge.definition import Backend
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


@pytest.mark.parametrize("said", ["570.1.2", ""])
def test_nvidia_smi_is_asked_where_the_system_does_not_say(
    cuda, said, monkeypatch, tmp_path
):
    cuda.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    if said:
        program = tmp_path / "nvidia-smi"
        line = f"| NVIDIA-SMI {said}   Driver Version: {said}   CUDA Version: 12.8 |"
        program.write_text(f"#!/bin/sh\necho '{line}'\n")
        program.chmod(0o755)
    found = machine.this_machine(torch.device("cuda:0"))
    assert found.versions["driver"] == said


def test_the_facts_of_a_run_are_text_and_know_the_gpu(cuda, monkeypatch):
    properties = SimpleNamespace(
        name="Pretended", major=9, minor=0, total_memory=80 * 2**30
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    facts = machine.machine_facts(torch.device("cuda:0"))
    assert (facts["gpu"], facts["sm"], facts["memory_gib"]) == ("Pretended", "90", "80")
    assert (facts["driver"], facts["sglang"]) == ("580.65.06", "sglang-1.0")
    assert all(isinstance(value, str) for value in facts.values())
    assert "gpu" not in machine.machine_facts(CPU)


def test_a_cpu_has_no_driver(monkeypatch):
    def fail(provider):
        raise ImportError(provider)

    monkeypatch.setattr(machine, "version", fail)
    found = machine.this_machine(CPU)
    assert (found.gpu, found.sm) == ("CPU", None)
    assert "driver" not in found.versions
    assert found.versions["flashinfer"] == ""
