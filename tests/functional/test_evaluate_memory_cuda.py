"""The memory of a call on a GPU: torch's, the driver's, and what a process lies about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.hacks import PASSED, RIGHT, run
from tests.functional.planted import Planted
from tests.functional.test_evaluate_conditions import judged
from tests.functional.test_evaluate_cuda import why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]
MIB = 1 << 20
_DRIVER = (
    "import ctypes, time\nCUDA = ctypes.CDLL('libcuda.so.1')\nKEPT = {}\n\n\n"
    "def allocated(size):\n"
    "    place = ctypes.c_uint64()\n"
    "    CUDA.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size))\n"
    "    return place\n"
)
# name → source, and MiB of a call, as it is said and as the driver has it at least
_SOURCES = {
    "little": (run("return norm(x, weight)"), 0, 0),
    "of torch, freed": (
        run("torch.ones(200 << 18, device='cuda')\nreturn norm(x, weight)"),
        200,
        200,
    ),
    "kept by shape": (
        run(
            "if x.shape not in KEPT:\n"
            "    KEPT[x.shape] = torch.ones(100 << 18, device='cuda')\n"
            "return norm(x, weight)"
        )
        + "\nKEPT = {}\n",
        100,
        100,
    ),
    "kept from the import on": (
        (
            f"{RIGHT}\nSPACE = torch.empty(300 << 18, device='cuda')\n"
            "def run(x, weight):\n    return norm(x, weight)\n"
        ),
        300,
        0,
    ),
    "of the driver, kept": (
        _DRIVER
        + run(
            "if x.shape not in KEPT: KEPT[x.shape] = allocated(150 << 20)\n"
            "return norm(x, weight)"
        ),
        150,
        150,
    ),
    "of the driver, freed": (
        _DRIVER
        + run(
            "place = allocated(180 << 20)\ntime.sleep(0.05)\n"
            "CUDA.cuMemFree_v2(place)\nreturn norm(x, weight)"
        ),
        180,
        180,
    ),
    "says that it took none": (
        run("torch.ones(400 << 18, device='cuda')\nreturn norm(x, weight)")
        + "\ntorch.cuda.max_memory_allocated = lambda *device: 0\n",
        0,
        400,
    ),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    planted = [Planted(name, "", of[0], "") for name, of in _SOURCES.items()]
    options = ("--device", "cuda", "--workloads", "cases", "--timeout", "120")
    folder = tmp_path_factory.mktemp("solutions")
    return judged(folder, planted, *options, "--memory", "--jobs", "4")


@pytest.mark.parametrize("name", _SOURCES)
def test_memory_of_a_call_is_seen(name: str, verdicts: dict[str, Any]) -> None:
    _, least, driver = _SOURCES[name]
    verdict = verdicts[name]
    assert verdict["verdict"] == PASSED, verdict["reason"]
    memory = verdict["memory"]
    print(f"{name}: {memory}")
    assert memory["driver_bytes"] >= driver * MIB
    outputs = memory["output_bytes"]
    # the norm's own in float32 beside it
    assert memory["peak_memory_bytes"] <= least * MIB + 12 * outputs + 64 * MIB
    if name != "says that it took none":
        assert memory["peak_memory_bytes"] >= least * MIB
        assert memory["peak_memory_bytes"] >= outputs
    assert memory["rivals"]["reference"] >= outputs
