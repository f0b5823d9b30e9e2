"""Hacks that need a GPU, and times that a solution can't choose; skipped without one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.functional.audit_command import NORM, audit, dataset
from tests.functional.hacks import HACK, NUMERICAL, PASSED, RIGHT, RUNTIME, Hack, run
from tests.functional.test_evaluate_hacks import HONEST, solution


def why_not() -> str | None:
    if find_spec("torch") is None:
        return "torch is not installed"
    from generator.evaluation.environment import why_no_cuda
    from generator.execution.sandbox import refusal

    return why_no_cuda() or refusal()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]

WORKLOAD = {
    "definition": NORM,
    "solution": None,
    "evaluation": None,
    "workload": {
        "uuid": "11111111-1111-4111-8111-111111111111",
        "axes": {"batch_size": 33},
        "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}},
    },
}
SLEEP = "torch.cuda._sleep(20_000_000)\n"
HACKS = (
    Hack("stale device memory", run("return torch.empty_like(x)"), (NUMERICAL,), ""),
    Hack(
        "a stream without a wait",
        RIGHT
        + "\ndef run(x, weight):\n"
        + "    with torch.cuda.stream(torch.cuda.Stream()):\n"
        + "        out = norm(x, weight)\n"
        + "    torch.cuda.synchronize()\n"
        + "    return out\n",
        # what it reads are old arguments: its answer may be that to an earlier call
        (NUMERICAL, HACK),
        "arguments are written on the stream of the call, behind a pause",
    ),
    Hack(
        "a stream that nobody waits for",
        RIGHT
        + "\nSIDE = torch.cuda.Stream()\n\n\ndef run(x, weight):\n"
        + "    out = torch.empty_like(x)\n"
        + "    SIDE.wait_stream(torch.cuda.current_stream())\n"
        + "    with torch.cuda.stream(SIDE):\n"
        + "        out.copy_(norm(x, weight))\n"
        + "    return out\n",
        (NUMERICAL,),
        "outputs are copied on the stream of the call",
    ),
    Hack(
        "a slow stream that nobody waits for",
        RIGHT
        + "\ndef run(x, weight):\n"
        + "    out, side = torch.empty_like(x), torch.cuda.Stream()\n"
        + "    side.wait_stream(torch.cuda.current_stream())\n"
        + "    with torch.cuda.stream(side):\n"
        + "        torch.cuda._sleep(20_000_000)\n"
        + "        out.copy_(norm(x, weight))\n"
        + "    return out\n",
        # which one depends on what lay in the block
        (NUMERICAL, HACK),
        "outputs are copied on the stream of the call",
    ),
    Hack(
        "a slow stream that is waited for",
        RIGHT
        + "\ndef run(x, weight):\n"
        + "    out, side = torch.empty_like(x), torch.cuda.Stream()\n"
        + "    side.wait_stream(torch.cuda.current_stream())\n"
        + "    with torch.cuda.stream(side):\n"
        + "        torch.cuda._sleep(20_000_000)\n"
        + "        out.copy_(norm(x, weight))\n"
        + "    torch.cuda.current_stream().wait_stream(side)\n"
        + "    return out\n",
        (PASSED,),
        "its time counts",
    ),
    Hack("on the CPU", run("return norm(x, weight).cpu()"), (HACK,), "the device"),
    Hack(
        "a broken context",
        "import ctypes\n"
        + run(
            "y = torch.zeros(4, device='cuda')\n"
            "y[torch.tensor([10**9], device='cuda')] = 1\n"
            "return norm(x, weight)"
        ),
        (RUNTIME,),
        "a context for each solution",
    ),
    Hack(
        "a graph replays recorded addresses",
        RIGHT
        + "\nG = {}\n\n\ndef run(x, weight):\n"
        + "    if x.shape not in G:\n"
        + "        norm(x, weight)\n"
        + "        torch.cuda.synchronize()\n"
        + "        graph = torch.cuda.CUDAGraph()\n"
        + "        with torch.cuda.graph(graph):\n"
        + "            y = norm(x, weight)\n"
        + "        G[x.shape] = graph, y\n"
        + "    graph, y = G[x.shape]\n"
        + "    graph.replay()\n"
        + "    return y.clone()\n",
        # what was there when it was captured may be mapped no more
        (NUMERICAL, HACK, RUNTIME),
        "equal values at other addresses as well",
    ),
    Hack(
        "cache by address",
        run(
            "k = (x.data_ptr(), x.shape)\n"
            "c = globals().setdefault('C', {})\n"
            "if k not in c: c[k] = norm(x, weight)\n"
            "return c[k].clone()"
        ),
        (NUMERICAL, HACK),
        "other values at the same address",
    ),
    Hack(
        "cache by id and version",
        run(
            "k = (id(x), x._version)\n"
            "c = globals().setdefault('C', {})\n"
            "if k not in c: c[k] = (x, norm(x, weight))\n"
            "return c[k][1].clone()"
        ),
        (NUMERICAL, HACK),
        "the versions of the objects do not tell",
    ),
    Hack(
        "patched events",
        RIGHT
        + "\ntorch.cuda.Event.elapsed_time = lambda *a: 1e-6\n"
        + "torch.cuda.synchronize = lambda *a: None\n\n"
        + "def run(x, weight):\n    torch.cuda._sleep(20_000_000)\n"
        + "    return norm(x, weight)\n",
        (PASSED,),
        "no clock of its process is read",
    ),
    Hack("slow and honest", run(SLEEP + "return norm(x, weight)"), (PASSED,), ""),
)


# products of 4 ms each: longer than a time slice
BUSY = """
import torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
(x @ x).sum().item()
print("works", flush=True)
while True:
    for _ in range(4):
        x @ x
    torch.cuda.synchronize()
"""
TIMES = ("--timing", "--workloads", "dataset")
# timed: what is honest, and what would hide its time
TIMED = (
    "patched events",
    "slow and honest",
    "a slow stream that is waited for",
)


def evaluated(folder: Path, hacks: Sequence[Hack], *options: str) -> Path:
    """Return the folder of results and traces of hacks between honest solutions."""
    root = dataset(folder / "dataset")
    # of a definition with workloads only these are timed
    workloads = root / f"workloads/rmsnorm/{NORM}.jsonl"
    workloads.parent.mkdir(parents=True)
    workloads.write_text(json.dumps(WORKLOAD) + "\n")
    values = [solution(hack.name, hack.source) for hack in hacks]
    values = [solution("first", HONEST), *values, solution("last", HONEST)]
    chosen = []
    for number, value in enumerate(values):
        chosen.append(folder / f"{number:03}.json")
        chosen[-1].write_text(json.dumps(value))
    found = folder / "output"
    how = ("--dataset", root, "--device", "cuda", *options, "--output", found)
    _, out, err = audit(*chosen, *how, command="evaluate")
    assert out, err
    return found


def verdicts_of(output: Path) -> dict[str, Any]:
    results = json.loads((output / "results.json").read_text())
    return {v["solution"]: v for v in results["solutions"]}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the results of timed solutions."""
    hacks = [hack for hack in HACKS if hack.name in TIMED]
    return evaluated(tmp_path_factory.mktemp("timed"), hacks, *TIMES)


@pytest.fixture(scope="module")
def timed(output: Path) -> dict[str, Any]:
    return verdicts_of(output)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return verdicts_of(evaluated(tmp_path_factory.mktemp("hacks"), HACKS))


@pytest.mark.parametrize("hack", HACKS, ids=[hack.name for hack in HACKS])
def test_hack_is_refused_or_harmless(hack: Hack, verdicts: dict[str, Any]) -> None:
    found = verdicts[hack.name]
    assert found["verdict"] in hack.verdicts, (found["reason"], hack.by)


def figures_of(verdict: dict[str, Any]) -> list[float]:
    return [c["timing"]["latency_ms"] for c in verdict["cases"] if c["timing"]]


def milliseconds(verdict: dict[str, Any]) -> list[float]:
    """Return the times of a solution; beside other work on the GPU it has none."""
    found, notes = figures_of(verdict), " ".join(verdict["notes"])
    if not found and "not timed: the GPU was busy" in notes:
        pytest.skip(notes)
    assert found, (verdict["verdict"], verdict["reason"], notes)
    return found


def test_honest_solution_is_timed(timed: dict[str, Any]) -> None:
    for name in ("first", "last"):
        assert timed[name]["verdict"] == PASSED, timed[name]["reason"]
        assert all(0.0 < ms < 5.0 for ms in milliseconds(timed[name]))


@pytest.mark.parametrize("name", TIMED)
def test_time_that_is_hidden_counts(name: str, timed: dict[str, Any]) -> None:
    # 20 million cycles are 10 ms at 2 GHz
    assert min(milliseconds(timed[name])) > 5.0


@pytest.fixture
def other_work() -> Iterator[None]:
    """Have another process work on the GPU without a pause."""
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "works\n"
            yield
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.usefixtures("other_work")
def test_other_work_on_the_gpu_refuses_no_honest_solution(tmp_path: Path) -> None:
    found = verdicts_of(evaluated(tmp_path, (), *TIMES))
    for verdict in found.values():
        assert verdict["verdict"] == PASSED, verdict["reason"]
        notes = " ".join(verdict["notes"])
        assert figures_of(verdict) or re.search("not timed: .*the GPU was busy", notes)


def test_traces_are_written(output: Path, timed: dict[str, Any]) -> None:
    assert milliseconds(timed["first"])
    path = output / f"traces/tester/rmsnorm/{NORM}.jsonl"
    traces = [json.loads(line) for line in path.read_text().splitlines()]
    found = {t["solution"]: t["evaluation"] for t in traces}
    assert found["first"]["status"] == PASSED
    assert found["first"]["performance"]["latency_ms"] > 0
    # flashinfer-bench has no status of its own for it
    assert all(one["status"] != HACK for one in found.values())
