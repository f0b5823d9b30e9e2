"""compute-sanitizer: what its logs say, and what runs below a stand-in for it."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click import BadParameter

from generator.cli.evaluate import chosen_names
from generator.dataset.paths import discover_definitions
from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.condition import SANITIZERS, Condition
from generator.evaluation.rounds import rounds_of
from generator.evaluation.sanitizing import tool
from generator.evaluation.sanitizing.findings import findings_in
from generator.evaluation.sanitizing.tool import WatchedRun, confined, plain, sanitized
from generator.execution.sandbox import refusal
from generator.rules.load import load_file
from tests.builders import CPU, ROOT, loaded, resized_json, write_dataset
from tests.unit.evaluation.fake_sanitizer import fake, recorded

NORM = "rmsnorm_h128"
NOT_DONE = "it ended with status 1: RuntimeError: no kernel image"
LOGS = {
    "memcheck": (
        2,
        "unaligned_kernel()",
        (
            "Invalid __global__ write of size 4 bytes in unaligned_kernel(); at "
            "memcheck_demo.cu:6; by thread (0,0,0) in block (0,0,0); "
            "Address 0x7f6510c00001 is misaligned"
        ),
    ),
    "shared": (
        3,
        "void norm<128, __nv_bfloat16>(T2 *, const T2 *)",
        (
            "Invalid __shared__ read of size 4 bytes in "
            "void norm<128, __nv_bfloat16>(T2 *, const T2 *); at norm.cu:7; "
            "by thread (127,0,0) in block (0,0,0); Address 0x200 is out of bounds"
        ),
    ),
    "racecheck": (
        1,
        "sumKernel(int *, int *)",
        (
            "Error: Race reported between Write access in sumKernel(int *, int *); at "
            "racecheck_demo.cu:41; and Read access at sumKernel(int *, int *)+0x1e0 in "
            "racecheck_demo.cu:51 [508 hazards]"
        ),
    ),
    "initcheck": (
        48,
        "vectorAdd(int *)",
        (
            "Uninitialized __global__ memory read of size 4 bytes in vectorAdd(int *); at "
            "memset_error.cu:41; by thread (31,0,0) in block (1,0,0); "
            "Address 0x7f3c7ec000fc"
        ),
    ),
    "synccheck": (
        16,
        "myKernel(DATASIZE *)",
        (
            "Barrier error detected. Divergent thread(s) in block in "
            "myKernel(DATASIZE *); by thread (32,0,0) in block (0,0,0)"
        ),
    ),
    "clean": (0, "", ""),
    "no_hazard": (0, "", ""),
    "failed": (1, "", ""),
    "no_device": (None, "", ""),
}


@pytest.mark.parametrize("name", LOGS)
def test_log_is_read(name: str) -> None:
    found = findings_in(recorded(name))
    assert (found.count, found.kernel, found.first) == LOGS[name]


@pytest.mark.parametrize("name", [n for n in LOGS if LOGS[n][2]])
def test_finding_counts_however_the_process_ended(name: str) -> None:
    cut = recorded(name).split("SUMMARY")[0]
    for ended in (
        WatchedRun(recorded(name)),
        WatchedRun(cut, NOT_DONE),
        WatchedRun(cut),
    ):
        found = tool.verdict(ended, {})
        assert found.verdict == "broken"
        assert found.reason.startswith(LOGS[name][2])


@pytest.mark.parametrize(
    ("ended", "verdict", "reason"),
    [
        (WatchedRun(recorded("clean")), "holds", ""),
        (WatchedRun(recorded("no_hazard")), "holds", ""),
        (WatchedRun(recorded("clean"), NOT_DONE), "unsupported", "no kernel image"),
        (WatchedRun(recorded("failed"), NOT_DONE), "unsupported", "no kernel image"),
        (WatchedRun(recorded("failed")), "broken", "1 finding that it does not name"),
        (WatchedRun(recorded("no_device")), "unsupported", "no summary"),
        (WatchedRun(""), "unsupported", "it wrote nothing"),
        (WatchedRun("", "not done within 300 s"), "unsupported", "within 300 s"),
    ],
)
def test_clean_is_only_what_ended_with_a_summary(
    ended: WatchedRun, verdict: str, reason: str
) -> None:
    found = tool.verdict(ended, {})
    assert found.verdict == verdict
    assert reason in found.reason


@pytest.mark.parametrize("bytes_", [0, 7, 50, 200])
def test_log_that_is_cut_or_garbled_is_read(bytes_: int) -> None:
    for name in LOGS:
        text = recorded(name)
        findings_in(text[:bytes_] + "\x00=========\n========= \n" + text[bytes_:])


def asking(passes_outputs: bool = False) -> Asking:
    asked = rounds_of(loaded(NORM), [], ROOT, CPU, 3)
    found = object.__new__(Asking)
    found.asked, found.device, found.passes_outputs = asked, CPU, passes_outputs
    found.draw, found.secret = random.Random(5), 5
    return found


def sources(body: str) -> dict[str, Any]:
    text = f"import torch\n\n\ndef run(x, weight, *out):\n    {body}\n"
    return {
        "language": "python",
        "binding": "torch",
        "entry_point": "main.py::run",
        "sources": [{"path": "main.py", "content": text}],
        "arguments": 2,
    }


def under(
    monkeypatch: pytest.MonkeyPatch, path: Path, body: str, name: str, **how: Any
) -> Condition:
    if why := refusal():
        pytest.skip(why)
    monkeypatch.setattr(tool, "lacking", lambda device: "")
    monkeypatch.setattr(tool, "program", lambda: str(path))
    watches = confined([], "cpu")
    return sanitized(asking(**how), name, sources(body), watches)


def test_solution_runs_below_the_tool_in_the_sandbox(tmp_path, monkeypatch):
    path = fake(tmp_path / "bin", memcheck="clean", racecheck="racecheck")
    look = (
        "assert x.dtype == torch.bfloat16 and x.shape[1] == 128 == len(weight)\n"
        "    import os, socket\n"
        f"    assert not os.path.exists({str(Path(tool.__file__))!r})\n"
        "    try: socket.socket(socket.AF_INET)\n"
        "    except OSError: return x\n"
        "    raise ValueError('it has sockets')"
    )
    clean = under(monkeypatch, path, look, "memcheck")
    assert clean.verdict == "holds", clean.reason
    assert clean.details["cases"] == 4
    found = under(monkeypatch, path, "return x", "racecheck")
    assert found.verdict == "broken"
    assert "sumKernel" in found.reason


def test_what_a_solution_raises_below_the_tool_is_said(tmp_path, monkeypatch):
    path = fake(tmp_path / "bin", initcheck="clean")
    body = (
        "assert len(out) == 1 and out[0].shape == x.shape\n    raise ValueError('no')"
    )
    found = under(monkeypatch, path, body, "initcheck", passes_outputs=True)
    assert found.verdict == "unsupported"
    assert "ValueError: no" in found.reason


def test_tool_has_a_time_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "TOOL_SECONDS", 3.0)
    path = fake(tmp_path / "bin", sleep=60.0, synccheck="clean")
    found = under(monkeypatch, path, "return x", "synccheck")
    assert found.verdict == "unsupported"
    assert "not done within 3 s" in found.reason


def test_without_the_tool_or_a_gpu_it_is_skipped(monkeypatch, tmp_path):
    skipped = sanitized(asking(), "memcheck", {}, confined([], "cpu"))
    assert (skipped.verdict, skipped.reason) == ("skipped", "needs CUDA")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert "not installed" in tool.lacking("cuda")
    folder = tmp_path / "bin"
    assert str(fake(folder, memcheck="clean")) == tool.program()


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("right", "unaligned_kernel"),
        pytest.param("fails", "no kernel image", marks=pytest.mark.slow),
    ],
)
def test_production_kernel_runs_below_the_tool(kernel, said, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "lacking", lambda device: "")
    path = fake(tmp_path / "bin", memcheck="memcheck", synccheck="clean")
    monkeypatch.setattr(tool, "program", lambda: str(path))
    value = resized_json("gemm_n4096_k4096", "gemm_n128_k128", N=128, K=128)
    root = write_dataset(tmp_path / "dataset", (value,))
    (file,) = discover_definitions(root).files
    how = {"root": str(root), "file": asdict(file), "provider": "pytorch"}
    asked = asking()
    asked.asked = rounds_of(load_file(root, file)[0], [], root, CPU, 3)
    watches = plain("tests.unit.evaluation.cpu_watched")

    def under(name: str, kernel: str) -> Condition:
        return sanitized(asked, name, {**how, "kernel": f"pytorch/{kernel}"}, watches)

    found = under("memcheck" if kernel == "right" else "synccheck", kernel)
    assert found.verdict == ("broken" if kernel == "right" else "unsupported")
    assert said in found.reason


def test_tools_are_chosen_by_name():
    assert chosen_names("--sanitize", ("all",), SANITIZERS) == [*SANITIZERS]
    chosen = chosen_names("--sanitize", ("synccheck, memcheck",), SANITIZERS)
    assert chosen == ["memcheck", "synccheck"]
    with pytest.raises(BadParameter, match="'graph' is not one of memcheck, racecheck"):
        chosen_names("--sanitize", ("graph",), SANITIZERS)


def test_providers_are_chosen_with_commas_too():
    providers = ("flashinfer", "sglang", "pytorch")
    assert chosen_names("--provider", ("pytorch,flashinfer",), providers) == [
        "flashinfer",
        "pytorch",
    ]
    with pytest.raises(BadParameter, match="flashinfer, sglang, pytorch, all"):
        chosen_names("--provider", ("cublas",), providers)
