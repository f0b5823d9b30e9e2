"""The guards of memory and of the CUDA context, hook by hook."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from generator.running import context, evidence, exhaustion
from generator.running.free_memory import is_exhaustion
from kernel_judge.definition import Backend, Case
from tests.builders import CPU, skip_reason

CUDA = torch.device("cuda:0")


def chained():
    error = ValueError("the kernel failed")
    error.__cause__ = torch.OutOfMemoryError("CUDA out of memory")
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("[enforce fail] not enough memory: you tried to"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), True),
        (chained(), True),
        (RuntimeError("shapes differ"), False),
        (AssertionError("the reference says: out of memory"), False),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (None, False),
    ],
)
def test_what_says_that_memory_ran_out(error, expected):
    assert is_exhaustion(error) is expected


def guarded(error):
    """Run a test that raises under the memory guard; return how it ends."""
    wrapper = exhaustion.MemoryGuard(CPU).pytest_runtest_call(SimpleNamespace())
    next(wrapper)
    return lambda: wrapper.throw(error)


def test_a_test_that_runs_out_of_memory_is_skipped():
    end = guarded(MemoryError())
    assert skip_reason(end).startswith("out of memory (MemoryError): cpu has ")


def test_other_errors_stay_what_they_are():
    end = guarded(ValueError("planted"))
    with pytest.raises(ValueError, match="planted"):
        end()


def config(**options):
    return SimpleNamespace(option=SimpleNamespace(**options))


@pytest.mark.parametrize(
    ("dist", "restarts", "replaced"),
    [
        ("load", None, True),
        ("worksteal", "3", True),
        ("load", "0", False),
        ("loadscope", None, False),
    ],
)
def test_a_worker_knows_whether_it_is_replaced(monkeypatch, dist, restarts, replaced):
    parent = context.ContextGuard(config(dist=dist, maxworkerrestart=restarts), CUDA)
    node = SimpleNamespace(workerinput={})
    parent.pytest_configure_node(node)
    worker_config = SimpleNamespace(workerinput=node.workerinput)
    worker = context.ContextGuard(worker_config, CUDA)
    ended = []
    monkeypatch.setattr(context.os, "_exit", ended.append)
    report = SimpleNamespace(
        user_properties=[(context.LOST, "x")], nodeid="x", when="call"
    )
    worker.pytest_runtest_logreport(report)
    assert ended == ([70] if replaced else [])


@pytest.mark.parametrize(
    ("device", "passed", "when", "probed"),
    [
        (CUDA, False, "call", True),
        (CUDA, False, "setup", True),
        (CUDA, False, "teardown", False),
        (CUDA, True, "call", False),
        (CPU, False, "call", False),
    ],
)
def test_the_context_is_probed_after_what_did_not_pass(
    monkeypatch, device, passed, when, probed
):
    asked = []
    monkeypatch.setattr(context, "is_alive", lambda d: asked.append(d))
    guard = context.ContextGuard(config(), device)
    item = SimpleNamespace(nodeid="a::b", user_properties=[])
    report = SimpleNamespace(passed=passed, sections=[], user_properties=[])
    wrapper = guard.pytest_runtest_makereport(item, SimpleNamespace(when=when))
    next(wrapper)
    with pytest.raises(StopIteration):
        wrapper.send(report)
    assert asked == ([device] if probed else [])
    if probed:
        assert report.user_properties == [(context.LOST, "a::b")]
        with pytest.raises(
            pytest.fail.Exception, match=r"^CUDA context lost after a::b$"
        ):
            guard.pytest_runtest_setup(item)
    else:
        guard.pytest_runtest_setup(item)


def test_another_crash_of_a_worker_stays_a_failure():
    guard = context.ContextGuard(config(), CUDA)
    report = SimpleNamespace(outcome="failed")
    guard.pytest_handlecrashitem("a::b", report, None)
    assert report == SimpleNamespace(outcome="failed")


@pytest.mark.skipif(torch.cuda.is_available(), reason="cuda: needs a machine without")
def test_a_device_that_is_not_there_is_not_alive():
    assert context.is_alive(CUDA) is False


@pytest.mark.parametrize(
    ("function", "params", "name", "source"),
    [
        ("test_matches_oracle", {"trial": Case("a", "small", {})}, "a", "oracle"),
        ("test_matches_sglang", {"backend": Backend("")}, "a", "sglang"),
        (
            "test_matches_flashinfer",
            {"backend": Backend("fa2")},
            "a-fa2",
            "flashinfer/fa2",
        ),
        (
            "test_matches_flashinfer",
            {"backend": Backend("x")},
            "unavailable-x",
            "flashinfer/x",
        ),
        ("test_matches_flashinfer", {"backend": None}, "no-backend", "flashinfer"),
        ("test_determinism", {"trial": None}, "a", None),
    ],
)
def test_a_test_says_whom_it_is_about(function, params, name, source):
    cls = type("TestD", (), {"name": "d_h1", "op_type": "d", "sha256": "b" * 64})
    callspec = SimpleNamespace(params=params, id=name)
    item = SimpleNamespace(cls=cls, originalname=function, callspec=callspec)
    expected = [("definition", "d_h1"), ("op_type", "d"), ("sha256", "b" * 64)]
    if source is not None:
        expected.append(("source", source))
    assert evidence.subject(item) == expected
    assert evidence.subject(SimpleNamespace()) == []
