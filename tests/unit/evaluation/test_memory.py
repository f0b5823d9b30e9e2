"""The memory of a call: what a solution's processes have at most, seen from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generator.evaluation import memory
from generator.evaluation.confined import Confinement
from generator.evaluation.memory import MemoryOfCalls, Opens
from generator.evaluation.report import evaluation_report
from generator.evaluation.rounds import rounds_of
from generator.evaluation.session import Allowed, Session
from generator.evaluation.solution import Solution
from generator.evaluation.traces import trace_files
from generator.evaluation.verdict import CaseVerdict, Refused, SolutionVerdict
from generator.execution.sandbox import refusal
from generator.reports import printed
from tests.builders import CPU, ROOT, loaded
from tests.functional.hacks import fills, run

NORM = "rmsnorm_h128"
MIB = 1 << 20
# of code that a first call loads, and of what threads of libraries take
NOISE = 24 * MIB
# the kernel counts pages in batches, each thread its own
COARSE = MIB
Of = Callable[..., Opens]


@pytest.fixture(scope="module")
def opens() -> Iterator[Of]:
    """Return what opens a session with a solution that is built anew."""
    if why := refusal():
        pytest.skip(why)
    with closing(Confinement("cpu", Allowed())) as confinement:

        def of(source: str, arguments: int = 2) -> Opens:
            def opened() -> AbstractContextManager[Session]:
                spec = {"language": "python", "entry_point": "main.py::run"}
                sources = [{"path": "main.py", "content": source}]
                session = confinement.open()
                value = {"spec": spec, "sources": sources}
                session.build(Solution(value, "main"), arguments)
                return closing(session)

            return opened

        yield of


@pytest.fixture(scope="module")
def calls() -> MemoryOfCalls:
    return MemoryOfCalls(rounds_of(loaded(NORM), [], ROOT, CPU, 3), CPU, 4)


def measured(calls: MemoryOfCalls, opens: Opens, **rivals: Opens) -> dict[str, Any]:
    return calls.measured(opens, rivals, passes_outputs=False)


@pytest.mark.parametrize(
    ("body", "after", "least"),
    [
        ("return norm(x, weight)", "", 0),
        ("torch.ones(200 << 18)\nreturn norm(x, weight)", "", 200),
        (
            (
                "if x.shape not in SEEN: torch.ones(200 << 18)\n"
                "SEEN.add(x.shape)\nreturn norm(x, weight)"
            ),
            "\nSEEN = set()\n",
            0,
        ),
        (
            (
                "if x.shape not in KEPT: KEPT[x.shape] = torch.ones(100 << 18)\n"
                "return norm(x, weight)"
            ),
            "\nKEPT = {}\n",
            100,
        ),
        (
            "open('log', 'ab').write(bytes(60 << 20))\nreturn norm(x, weight)",
            "",
            60,
        ),
        (
            (
                "if x.shape in KEPT: KEPT[x.shape].end()\n"
                "KEPT[x.shape] = Grows()\nreturn norm(x, weight)"
            ),
            (
                "\nimport subprocess, sys\nKEPT = {}\n\n\n"
                "class Grows(subprocess.Popen):\n"
                "    def __init__(self):\n"
                "        code = 'a = bytes(80 << 20); b = bytearray(80 << 20); '\n"
                "        code += \"b[::4096] = b'1' * 20480; print(flush=True); input()\"\n"
                "        how = dict(stdin=-1, stdout=-1)\n"
                "        super().__init__([sys.executable, '-c', code], **how)\n"
                "        self.stdout.readline()\n\n"
                "    def end(self):\n"
                "        self.communicate(b'\\n')\n"
            ),
            80,
        ),
    ],
    ids=["little", "freed", "of the first call", "kept", "files", "another process"],
)
def test_memory_of_a_call_is_seen(calls, opens, body, after, least):
    found = measured(calls, opens(run(body) + after))
    peak = found["peak_memory_bytes"]
    # a file is written in both calls, and of a process its interpreter counts
    most = least * (2 if "log" in body else 1) * MIB + NOISE
    assert least * MIB - COARSE <= peak <= most, peak / MIB
    assert peak >= found["output_bytes"], "outputs are counted"
    assert found["argument_bytes"] > found["output_bytes"] > MIB / 8
    assert found["driver_bytes"] is None


def test_output_that_is_passed_counts(calls, opens):
    source = fills("out.copy_(norm(x, weight))")
    found = calls.measured(opens(source, 3), {}, passes_outputs=True)
    assert found["output_bytes"] <= found["peak_memory_bytes"] <= NOISE


def test_answer_that_is_wrong_while_it_is_measured_is_refused(calls, opens):
    source = run("return norm(x, weight) * (2 if len(x) > 1000 else 1)")
    with pytest.raises(Refused, match="mismatched"):
        measured(calls, opens(source))


def test_rivals_have_figures_or_the_reason_and_are_asked_once(opens):
    asked = rounds_of(loaded(NORM), [], ROOT, CPU, 3)
    right = opens(run("return norm(x, weight)"))
    large = opens(run("torch.ones(64 << 18)\nreturn norm(x, weight)"))
    fails = opens(run("raise ValueError('no kernel image')"))
    known: dict[tuple[str, str], int | str] = {}
    for rivals in ({"a": large, "b": fails}, {"a": fails, "b": large}):
        calls = MemoryOfCalls(asked, CPU, 4, known)
        found = measured(calls, right, **rivals)
        assert 64 * MIB - COARSE <= found["rivals"]["a"] <= 64 * MIB + NOISE
        assert "no kernel image" in found["not_measured"]["b"]
    assert set(known) == {(calls.case, "a"), (calls.case, "b")}


def test_figures_are_in_report_and_trace() -> None:
    memory = {
        "case": "large",
        "peak_memory_bytes": 3 * MIB,
        "output_bytes": MIB,
        "driver_bytes": 4 * MIB,
        "argument_bytes": 2 * MIB,
        "rivals": {"reference": 5 * MIB},
        "not_measured": {"flashinfer": "no kernel image"},
    }
    timing = {"latency_ms": 1.0, "speedup_factor": 2.0, "resolved": True}
    timing |= {"settled": True, "fresh": True, "starts": 1}
    timing |= {"error_ms": 0.01, "speedup_error": 0.1}
    workload = {"uuid": "1", "axes": {}, "inputs": {}}
    cases = [
        CaseVerdict(name, "PASSED", workload=workload, timing=timing)
        for name in ("large", "other")
    ]
    about = ("mine", "me", NORM, "rmsnorm", "mine.json", "PASSED")
    verdict = SolutionVerdict(*about, cases=cases, memory=memory)
    text = "".join(printed(evaluation_report([verdict]), "text"))
    for said in ("3.0", "this solution", "outputs 1.0, of the driver 4.0", "5.0"):
        assert said in text
    assert "no kernel image" in text
    files = trace_files([verdict], {}, "now")
    lines = files[f"traces/me/rmsnorm/{NORM}.jsonl"].decode().splitlines()
    assert '"peak_memory_bytes": 3145728' in lines[0]
    assert '"rivals": {"reference": 5242880}' in lines[0]
    assert "memory" not in lines[1]


def test_memory_of_the_driver_that_was_freed_before_torchs_is_all_counted(monkeypatch):
    before = {"ours": 0, "peak": 0, "reserved": 0, "now": 2 * MIB}
    # 81 MiB of tensors in 86 that torch took, after 180 of the driver were freed
    after = {"ours": 0, "peak": 81 * MIB, "reserved": 88 * MIB, "now": 2 * MIB}
    answers = iter([before, after])
    keeper = SimpleNamespace(peak=lambda: {"resident": 0, "peak": 0, "files": 0})
    session = SimpleNamespace(keeper=keeper, ask=lambda message: next(answers))
    monkeypatch.setattr(memory, "_lack", lambda: 10 * MIB)
    watch = memory._Watch(session, torch.device("cuda"), 0)
    peak = watch.end(190 * MIB, outputs=3 * MIB)
    assert (peak.bytes, peak.driver) == (183 * MIB, 180 * MIB)
