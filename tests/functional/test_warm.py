"""`trace-dataset warm` says in one line what it lacks, and runs the rendered tests' job."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import ROOT
from tests.functional.audit_command import audit

# a library that knows one GPU
NVML = """
from types import SimpleNamespace

class NVMLError(Exception):
    pass

def nvmlInit(): pass
def nvmlDeviceGetCount(): return 1
def nvmlSystemGetCudaDriverVersion(): return 13000
def nvmlDeviceGetName(handle): return "NVIDIA Pretended"
def nvmlDeviceGetCudaComputeCapability(handle): return 9, 0
def nvmlDeviceGetMemoryInfo(handle): return SimpleNamespace(total=2**34, free=2**34)

def nvmlDeviceGetHandleByIndex(index):
    if index:
        raise NVMLError
    return index
"""
WORKER = """
import json, os, sys
job = json.load(sys.stdin)
told = {**job, "gpu": os.environ.get("CUDA_VISIBLE_DEVICES")}
open(os.environ["REFERENCE_TOLD"], "w").write(json.dumps(told))
print(json.dumps({"event": "compiling", "name": "norm"}))
print(json.dumps({"event": "compiled", "name": "norm", "seconds": 20.0}))
print(json.dumps({"event": "done"}))
"""


def warm(*arguments: str, path: Path | None = None, **variables: str):
    """Return a run's exit status, stdout and stderr."""
    paths = os.pathsep.join(map(str, filter(None, (path, ROOT))))
    done = subprocess.run(
        [sys.executable, "-m", "generator.cli.trace_dataset", "warm", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(
    Path("/proc/driver/nvidia").exists(), reason="cuda: this machine has a driver"
)
def test_without_a_gpu_it_is_one_line():
    assert audit(command="warm") == (
        2,
        "",
        "Error: No CUDA device here: kernels are compiled on a machine with a GPU.\n",
    )


def test_a_gpu_that_is_not_there_is_named(tmp_path):
    (tmp_path / "pynvml.py").write_text(NVML)
    status, out, err = warm(path=tmp_path, CUDA_VISIBLE_DEVICES="3")
    assert (status, out) == (2, "")
    assert err == (
        "Error: CUDA_VISIBLE_DEVICES names 1 GPUs, CUDA shows 0: there is no GPU '3' "
        "here: kernels are compiled on a machine with a GPU.\n"
    )


@pytest.mark.skipif(
    importlib.util.find_spec("flashinfer") is not None, reason="it is installed"
)
def test_without_flashinfer_it_is_one_line(tmp_path):
    (tmp_path / "pynvml.py").write_text(NVML)
    status, out, err = warm(path=tmp_path, CUDA_VISIBLE_DEVICES="0")
    assert (status, out) == (2, "")
    said = "Error: FlashInfer is not installed: pip install 'gen-tests[flashinfer]'.\n"
    assert err == said


@pytest.fixture
def pretended(tmp_path):
    """Return a folder with a GPU, FlashInfer and a worker, before all others."""
    (tmp_path / "pynvml.py").write_text(NVML)
    (tmp_path / "flashinfer.py").write_text("")
    package = tmp_path / "rendered" / "reference_support" / "running"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "warm_worker.py").write_text(WORKER)
    for op_type in ("rmsnorm", "rope"):
        source = ROOT / "tests" / "references" / f"test_{op_type}.py"
        (tmp_path / "rendered" / source.name).write_text(source.read_text("utf-8"))
    return tmp_path


def test_the_chosen_definitions_are_the_job_of_a_process_on_the_first_gpu(pretended):
    told, tests = pretended / "told", pretended / "rendered"
    status, out, err = warm(
        *("--definition-name", "rmsnorm_h128", "--definition-name", "rmsnorm_h512"),
        *("--tests", str(tests), "--jobs", "3"),
        path=pretended,
        REFERENCE_TOLD=str(told),
        CUDA_VISIBLE_DEVICES="0",
    )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "compiling kernels of 2 definitions, 3 modules at a time",
        "compiled norm (1 of 1, 20 s)",
    ]
    assert json.loads(told.read_text()) == {
        "files": {str(tests / "test_rmsnorm.py"): ["rmsnorm_h128", "rmsnorm_h512"]},
        "jobs": 3,
        "gpu": "0",
    }


def test_tests_that_are_not_rendered_are_one_line(pretended):
    status, out, err = warm(
        *("--op-type", "gemm", "--tests", str(pretended / "rendered")),
        path=pretended,
        CUDA_VISIBLE_DEVICES="0",
    )
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.endswith("test_gemm.py: gen-tests --op-type gemm\n")


def test_an_unknown_name_is_one_line_with_the_nearest():
    status, out, err = audit("--op-type", "rmsnrm", command="warm")
    assert (status, out) == (2, "")
    assert "rmsnorm" in err
    assert err.count("\n") == 1
