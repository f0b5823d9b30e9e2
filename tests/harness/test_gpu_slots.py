"""Workers of a run are spread over the GPUs that CUDA shows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from tests.harness.datasets import NORM, norm
from tests.harness.pretended import pretend
from tests.harness.runs import by_status, render, run_pytest

# the CPU passes for a CUDA device where workers get their GPUs
CUDA = """
import sys
import pynvml
import reference_support.running.plugin as plugin
import reference_support.running.worker_placement as placement

real, bind = plugin.WorkerPlacement, placement.bind

class Pretended(real):
    def __init__(self, config, device):
        import torch
        name = config.getoption("--device")
        config.option.device = {"cpu": None}.get(name, name)
        super().__init__(config, torch.device("cuda"))
        config.option.device = name

def bound(name):
    assert "torch" not in sys.modules
    bind(name)

plugin.WorkerPlacement, placement.bind = Pretended, bound
"""
NVML = """
from types import SimpleNamespace

class NVMLError(Exception):
    pass

def nvmlInit(): pass
def nvmlDeviceGetCount(): return 4
def nvmlSystemGetCudaDriverVersion(): return 13000
def nvmlDeviceGetName(handle): return "NVIDIA Pretended"
def nvmlDeviceGetCudaComputeCapability(handle): return 9, 0
def nvmlDeviceGetMemoryInfo(handle): return SimpleNamespace(total=2**34, free=2**34)
def nvmlDeviceGetUUID(handle): return f"GPU-{handle}00"

def nvmlDeviceGetHandleByIndex(index):
    if index > 3:
        raise NVMLError
    return index

def nvmlDeviceGetHandleByUUID(uuid):
    if not uuid.startswith("MIG-"):
        raise NVMLError
    return int(uuid[-1])

def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle): return handle
"""
# each worker says which GPU it has; it waits, so that all workers get some of the tests
ENVIRONMENT = """
import os
import time
import pytest

@pytest.mark.parametrize("number", range(24))
def test_environment(number, record_property):
    time.sleep(0.05)
    worker = os.environ["PYTEST_XDIST_WORKER"]
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{worker} {os.environ.get('CUDA_VISIBLE_DEVICES')}\\n")
    if number in (3, 11) and os.environ.get("CRASH"):
        os._exit(9)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return rendered tests, with one that says where it runs, and four GPUs."""
    rendered = render(tmp_path, [norm()])
    (rendered / "test_environment.py").write_text(ENVIRONMENT)
    (tmp_path / "pynvml.py").write_text(NVML)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return rendered


def run(folder, *arguments):
    """Run the tests; return the run, and the GPUs by worker."""
    options = pretend(folder.parent, CUDA)
    given = (*options, "--device", "cpu", *arguments)
    # torch would bring the machine's own pynvml
    done = run_pytest(folder, *given, imports=("pytest",))
    seen = defaultdict(set)
    for line in (folder.parent / "seen").read_text().splitlines():
        worker, gpu = line.split()
        seen[worker].add(gpu)
    return done, {worker: ",".join(gpus) for worker, gpus in seen.items()}


ALONE = ("-k", "test_environment")


@pytest.mark.parametrize(
    ("visible", "gpus"),
    [
        (None, ("0", "1", "2", "3")),
        pytest.param("GPU-200,MIG-1", ("GPU-200", "MIG-1"), marks=pytest.mark.slow),
    ],
)
def test_each_worker_sees_one_gpu(folder, monkeypatch, visible, gpus):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    done, seen = run(folder, "-n", "4", *ALONE)
    assert done.status == 0, done.stdout + done.stderr
    assert Counter(seen.values()) == dict.fromkeys(gpus, 4 // len(gpus))
    assert f"workers spread over GPUs {', '.join(gpus)}\n" in done.stdout


@pytest.mark.slow
def test_a_gpu_that_is_not_there_is_one_line_and_the_run_goes_on(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,0")
    done, seen = run(folder, "-n", "2", *ALONE)
    assert done.status == 0, done.stdout + done.stderr
    assert set(seen.values()) == {"2"}
    said = "CUDA_VISIBLE_DEVICES names 3 GPUs, CUDA shows 1: there is no GPU '5' here"
    assert done.stdout.count(said) == 1


def test_a_fresh_worker_takes_the_gpu_of_the_one_that_died(folder, monkeypatch):
    monkeypatch.setenv("CRASH", "1")
    done, seen = run(folder, "-n", "1", "--max-worker-restart", "9", *ALONE)
    assert done.status == 1
    assert len(by_status(done)["passed"]) == 22
    assert seen == {"gw0": "0", "gw1": "0", "gw2": "0"}


@pytest.mark.slow
def test_without_the_library_all_share_one_gpu_and_the_run_says_so(folder):
    missing = CUDA.replace("import pynvml\n", "sys.modules['pynvml'] = None\n")
    options = pretend(folder.parent, missing)
    done = run_pytest(folder, *options, "--device", "cpu", "-n", "2", *ALONE)
    assert done.status == 0, done.stdout + done.stderr
    said = "all workers use cuda:0: nvidia-ml-py, which counts GPUs, is missing"
    assert done.stdout.count(said) == 1


def test_the_tests_of_a_case_run_in_one_worker_and_all_of_them_once(folder):
    chosen = ["--definition", NORM, "-k", "not test_environment", "-v"]
    done = run_pytest(folder, "--device", "cpu", "-n", "3", *chosen)
    assert done.status == 0, done.stdout + done.stderr
    alone = run_pytest(folder, "--device", "cpu", *chosen)

    def ids(outcomes):
        return sorted((o.test_class, o.function, o.case) for o in outcomes)

    assert ids(done.outcomes) == ids(alone.outcomes)
    workers = defaultdict(set)
    for worker, case in re.findall(
        r"\[(gw\d)\].* \S+::test_output_\w+\[(.+)\]", done.stdout
    ):
        workers[case].add(worker)
    assert len(workers) == 5
    assert all(len(names) == 1 for names in workers.values()), workers
