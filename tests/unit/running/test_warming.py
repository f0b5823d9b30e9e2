"""Kernels are compiled side by side, each once, before a test waits for one."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

from generator.running.warm_worker import Warming, calls_of, compress_quickly
from generator.running.warming import Job
from kernel_judge.checks import available, sources
from kernel_judge.definition import Backend
from kernel_judge.obstacle import Kind, Obstacle
from tests.builders import CPU, ROOT

# for what comes at once on a machine that does nothing else
SECONDS = 60.0


class Compiler:
    """Pretend FlashInfer's modules: what was compiled when, and by whom.

    `takes` is how a build takes its time; `begun` is set once one has begun.
    """

    def __init__(self, broken=(), there=()):
        self.built, self.broken, self.there = [], broken, set(there)
        self.at_once, self.most, self.lock = 0, 0, threading.Lock()
        self.begun, self.takes = threading.Event(), lambda: time.sleep(0.05)
        compiler = self

        class JitSpec:
            def __init__(self, name):
                self.name = name

            def write_ninja(self):
                raise AssertionError("a module is built by build()")

            @property
            def is_compiled(self):
                return self.name in compiler.there

            def build(self, verbose, need_lock):
                assert need_lock
                with compiler.lock:
                    compiler.at_once += 1
                    compiler.most = max(compiler.most, compiler.at_once)
                compiler.begun.set()
                compiler.takes()
                with compiler.lock:
                    compiler.at_once -= 1
                    compiler.built.append(self.name)
                if self.name in compiler.broken:
                    raise RuntimeError("Ninja build failed.\nx.cu(3): error: no such")
                compiler.there.add(self.name)

            def build_and_load(self):
                assert self.is_compiled, "a call waits for nothing"
                return self.name

        self.core = ModuleType("flashinfer.jit.core")
        self.core.JitSpec = JitSpec
        jit = ModuleType("flashinfer.jit")
        jit.core = self.core
        self.modules = {
            "flashinfer": ModuleType("flashinfer"),
            "flashinfer.jit": jit,
            "flashinfer.jit.core": self.core,
        }

    def call(
        self,
        label,
        *modules,
        provider="flashinfer",
        needs_cuda=True,
        error=None,
        name="one",
    ):
        """Return a call that loads modules one after the other, for a definition."""

        def make(device):
            for module in modules:
                self.core.JitSpec(module).build_and_load()
            if error is not None:
                raise error
            made.append(label)

        made = self.made = getattr(self, "made", [])
        interface = SimpleNamespace(inputs={"x": "float32[n]"})
        return SimpleNamespace(
            make=make,
            label=label,
            provider=provider,
            backend=Backend(label, needs_cuda=needs_cuda),
            subject=SimpleNamespace(interface=interface, name=name),
        )


def run(monkeypatch, compiler, calls, jobs=4):
    for name, module in compiler.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    events = []
    names = {call.subject.name for call in calls}
    Warming(jobs, CPU, lambda **event: events.append(event)).run(calls, names)
    return events


def told(events, kind):
    return sorted(event["name"] for event in events if event["event"] == kind)


def test_modules_are_compiled_once_and_side_by_side(monkeypatch):
    compiler = Compiler()
    # each waits for the others
    compiler.takes = partial(threading.Barrier(3).wait, SECONDS)
    calls = [compiler.call(f"op{n}", f"module{n % 3}") for n in range(9)]
    events = run(monkeypatch, compiler, calls)
    modules = ["module0", "module1", "module2"]
    assert sorted(compiler.built) == modules
    assert compiler.most == 3
    assert told(events, "compiling") == told(events, "compiled") == modules
    assert told(events, "failed") == []


def test_no_more_than_asked_for_at_a_time_the_first_ones_first(monkeypatch):
    compiler = Compiler()
    run(monkeypatch, compiler, [compiler.call(f"op{n}", f"m{n}") for n in range(4)], 1)
    assert compiler.most == 1
    assert compiler.built == ["m0", "m1", "m2", "m3"]


def test_compiling_begins_with_what_is_found_first_then_with_what_takes_longest(
    monkeypatch,
):
    compiler = Compiler()
    names = ["gemm", "xqa", "rope", "batch_prefill_x", "batch_prefill_x_sm90", "topk"]
    calls = [compiler.call(n, n) for n in names]
    # the others are found while the first one is compiled
    second, all_found = calls[1].make, threading.Event()

    def found_later(device):
        assert compiler.begun.wait(SECONDS)
        second(device)

    calls[1].make = found_later
    calls.append(compiler.call("last"))
    calls[-1].make = lambda device: all_found.set()
    compiler.takes = partial(all_found.wait, SECONDS)
    run(monkeypatch, compiler, calls, 1)
    assert compiler.built == [names[0], *names[:0:-1]]


def test_of_those_that_take_as_long_the_one_found_first_begins(monkeypatch):
    # the second modules of some calls are found one after the other, as others end
    compiler = Compiler()
    calls = [compiler.call(f"op{n}", f"a{n}", f"b{n}") for n in range(5)]
    run(monkeypatch, compiler, calls, 1)
    assert compiler.built == [f"{part}{n}" for part in "ab" for n in range(5)]


def test_compilers_yield_to_those_of_a_module_that_takes_minutes(monkeypatch):
    compiler, priority = Compiler(), {}
    build = compiler.core.JitSpec.build

    def noted(module, **how):
        thread = threading.get_native_id()
        priority[module.name] = os.getpriority(os.PRIO_PROCESS, thread)
        build(module, **how)

    compiler.core.JitSpec.build = noted
    names = ["norm", "topk", "rope"]
    run(monkeypatch, compiler, [compiler.call(n, n) for n in names])
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert priority["topk"] == usual
    assert priority["norm"] == priority["rope"] > usual


def test_a_module_of_which_half_is_there_is_not_loaded(monkeypatch):
    compiler = Compiler()
    build = compiler.core.JitSpec.build

    def linked_early(module, verbose, need_lock):
        # before any waits for it to have begun
        compiler.there.add(module.name)
        build(module, verbose, need_lock)

    compiler.core.JitSpec.build = linked_early
    calls = [compiler.call(f"op{n}", "module") for n in range(3)]
    calls[1].make = lambda device: compiler.begun.wait(SECONDS)
    events = [e["event"] for e in run(monkeypatch, compiler, calls)]
    assert events == ["compiling", "compiled", "ready"]
    assert compiler.made == ["op2", "op0"] or compiler.made == ["op0", "op2"]


def test_a_module_is_compiled_once_even_if_flashinfer_does_not_find_it(monkeypatch):
    compiler = Compiler()
    monkeypatch.setattr(compiler.core.JitSpec, "is_compiled", False)
    events = run(monkeypatch, compiler, [compiler.call("op", "module")])
    assert compiler.built == ["module"]
    assert told(events, "ready") == ["one"]


def test_a_call_that_needs_a_second_module_gets_it(monkeypatch):
    compiler = Compiler()
    calls = [compiler.call("op", "first", "second"), compiler.call("other", "second")]
    run(monkeypatch, compiler, calls)
    assert sorted(compiler.built) == ["first", "second"]
    assert "op" in compiler.made


def test_a_definition_is_ready_when_all_that_its_calls_lacked_is_compiled(monkeypatch):
    compiler = Compiler(there=["there"])
    calls = [
        compiler.call("op", "first", "second", name="two"),
        compiler.call("op", "first", "second", name="same"),
        compiler.call("other", "first", name="one"),
        compiler.call("fine", "there", name="none"),
        compiler.call("triton", provider="sglang", name="two"),
        compiler.call("triton", provider="sglang", name="triton"),
        compiler.call("cublas", provider="pytorch", name="torch"),
    ]
    events = [
        (event["event"], event["name"])
        for event in run(monkeypatch, compiler, calls, 1)
        if event["event"] in ("compiled", "ready")
    ]
    ready = [name for kind, name in events if kind == "ready"]
    names = ["none", "one", "same", "torch", "triton", "two"]
    assert sorted(ready) == names
    first, second = (events.index(("compiled", n)) for n in ("first", "second"))
    at = {name: events.index(("ready", name)) for name in names}
    assert max(at["none"], at["torch"]) < first < at["one"]
    assert at["one"] < second < min(at["two"], at["same"])


def test_definitions_whose_module_does_not_compile_are_ready_too(monkeypatch):
    compiler = Compiler(broken=["bad"])
    calls = [compiler.call("op", "bad", name=name) for name in ("a", "b")]
    assert told(run(monkeypatch, compiler, calls), "ready") == ["a", "b"]


def test_what_is_compiled_already_is_not_compiled_again(monkeypatch):
    compiler = Compiler(there=["there"])
    events = run(monkeypatch, compiler, [compiler.call("op", "there")])
    assert compiler.built == []
    assert events == [{"event": "ready", "name": "one"}]


def test_a_module_that_does_not_compile_is_told_and_the_others_are_made(monkeypatch):
    compiler = Compiler(broken=["bad"])
    calls = [
        compiler.call("op", "bad"),
        compiler.call("both", "good", "bad"),
        compiler.call("fine", "good"),
    ]
    events = run(monkeypatch, compiler, calls)
    assert sorted(compiler.built) == ["bad", "good"]
    failed = [event for event in events if event["event"] == "failed"]
    assert failed[0]["why"] == "RuntimeError: x.cu(3): error: no such"
    assert told(events, "compiled") == ["good"]
    assert "fine" in compiler.made


def test_a_kernel_that_raises_is_told(monkeypatch):
    compiler = Compiler()
    events = run(monkeypatch, compiler, [compiler.call("op", error=ValueError("no"))])
    assert events == [
        {"event": "failed", "name": "op", "why": "ValueError: no"},
        {"event": "ready", "name": "one"},
    ]


def test_of_sglang_what_a_gpu_compiles_is_called_by_each_definition(monkeypatch):
    compiler = Compiler()
    calls = [
        compiler.call("triton", provider="sglang", name="one"),
        compiler.call("triton", provider="sglang", name="two"),
        compiler.call("native", provider="sglang", needs_cuda=False),
        compiler.call("cublas", provider="pytorch"),
    ]
    events = run(monkeypatch, compiler, calls)
    assert compiler.made == ["triton", "triton"]
    assert told(events, "called") == ["triton", "triton"]


@pytest.mark.parametrize(
    ("options", "asked", "then"),
    [
        ("--compress-mode [size,balance]", None, "--compress-mode=balance"),
        ("--compress-mode [size,balance]", "-g", "--compress-mode=balance -g"),
        ("--threads <number>", "-g", "-g"),
        ("--threads <number>", None, None),
    ],
)
def test_nvcc_compresses_quickly_if_it_can(tmp_path, monkeypatch, options, asked, then):
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(f"#!/bin/sh\necho '{options}'\n")
    nvcc.chmod(0o755)
    found = ModuleType("flashinfer.jit.cpp_ext")
    found.get_cuda_path = lambda: str(tmp_path)
    monkeypatch.setitem(sys.modules, "flashinfer.jit.cpp_ext", found)
    monkeypatch.delenv("NVCC_APPEND_FLAGS", raising=False)
    if asked:
        monkeypatch.setenv("NVCC_APPEND_FLAGS", asked)
    # what the function sets is put back after the test
    monkeypatch.setattr(os, "environ", dict(os.environ))
    compress_quickly()
    assert os.environ.get("NVCC_APPEND_FLAGS") == then


def test_what_rendered_tests_call_ends_where_it_would_wait(monkeypatch):
    compiler = Compiler()
    norm = ModuleType("flashinfer.norm")

    def rmsnorm(x, weight, eps):
        compiler.core.JitSpec("norm").build_and_load()
        return x

    norm.rmsnorm = rmsnorm
    compiler.modules["flashinfer"].norm = norm
    # this machine passes for one on which FlashInfer alone can be called
    obstacle = Obstacle(Kind.BROKEN, "not pretended")
    for module in (available, sources):
        monkeypatch.setattr(
            module,
            "backend_obstacle",
            lambda provider, *_: None if provider == "flashinfer" else obstacle,
        )
    monkeypatch.syspath_prepend(str(ROOT))
    names = ["rmsnorm_h128", "rmsnorm_h7168"]
    job = Job({str(ROOT / "tests/references/test_rmsnorm.py"): names}, 1)
    calls = list(calls_of(job, CPU))
    assert [call.label for call in calls] == ["rmsnorm flashinfer"] * 2
    assert {call.case.name for call in calls} == {"one-row"}
    events = run(monkeypatch, compiler, calls)
    assert compiler.built == ["norm"]
    assert told(events, "failed") == []
    assert told(events, "compiled") == ["norm"]
