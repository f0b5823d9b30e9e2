"""Collectives: kernels seen by stand-ins on a CPU, relations that planted faults break."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from generator.ops import ranks
from generator.ops.op_types.collectives import op as collectives
from generator.ops.op_types.collectives.family import instance
from generator.ops.op_types.collectives.mutants import MUTANTS
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import loaded, replaced, run_of, sized
from tests.unit.ops.related import red, verdicts

SUM = "allreduce_tp8_h8192"
GATHER = "allgather_tp8_h128256"
SCATTER = "reduce_scatter_tp8_h7168"
SMALL = {
    SUM: {"world_size": 4, "hidden_size": 24},
    GATHER: {"world_size": 4, "hidden_size": 24, "shard_size": 6},
    SCATTER: {"world_size": 4, "hidden_size": 24},
}


def case_of(name, case_name):
    definition = sized(name, **SMALL[name])
    cases = {case.name: case for case in collectives.cases(definition)}
    stream = Stream("collectives")
    inputs = collectives.make_inputs(definition, cases[case_name], stream)
    return definition, inputs


@pytest.fixture
def on_cpu(monkeypatch):
    """Let every rank be on the CPU; return what FlashInfer's kernel is called with."""
    calls = []

    def kernel(**given):
        calls.append(given)
        of_call = calls[-given["world_size"] :]
        if given["world_rank"] == given["world_size"] - 1:
            total = sum(one["allreduce_in"].float() for one in of_call).bfloat16()
            for one in of_call:
                one["allreduce_out"].copy_(total)

    def all_reduce(parts, totals):
        for total in totals:
            total.copy_(sum(parts))

    def all_gather(shards, wholes):
        for whole in wholes:
            whole.copy_(torch.stack([*shards]))

    def reduce_scatter(parts, shares):
        for rank, rows in enumerate(shares):
            rows.copy_(sum(part.chunk(len(parts))[rank] for part in parts))

    module = ModuleType("flashinfer.comm")
    module.trtllm_allreduce_fusion = kernel
    module.AllReduceFusionPattern = SimpleNamespace(kAllReduce=0)
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.comm", module)
    for function in (all_reduce, all_gather, reduce_scatter):
        monkeypatch.setattr(torch.cuda.nccl, function.__name__, function)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda d: contextlib.nullcontext())
    cpu = torch.device("cpu")
    monkeypatch.setattr(ranks, "devices_of", lambda first, count: [cpu] * count)
    return calls


@pytest.mark.parametrize("backend", ["oneshot", "twoshot"])
def test_flashinfers_sum_is_launched_on_every_rank_without_a_norm(on_cpu, backend):
    definition, inputs = case_of(SUM, "small-values")
    total = collectives.flashinfer_ground_truth(definition, inputs, backend)
    expected = collectives.oracle(definition, inputs)
    assert total.shape == expected.shape
    assert torch.allclose(total.double(), expected, rtol=8e-3, atol=1e-6)
    assert [one["world_rank"] for one in on_cpu] == [0, 1, 2, 3]
    tokens = 3 if backend == "oneshot" else 5
    for one in on_cpu:
        assert one["pattern_code"] == 0
        assert one["token_num"] == tokens
        assert one["use_oneshot"] is (backend == "oneshot")
        assert one["norm_out"] is one["residual_in"] is one["rms_eps"] is None
        part = inputs["partial_sums"][one["world_rank"]]
        assert torch.equal(one["allreduce_in"][:3], part)


@pytest.mark.parametrize(
    ("name", "case"),
    [(SUM, "one-row"), (GATHER, "odd-rows"), (SCATTER, "zero-rows")],
)
def test_nccl_is_called_on_what_each_rank_has(on_cpu, name, case):
    definition, inputs = case_of(name, case)
    answer = collectives.pytorch_ground_truth(definition, inputs, "nccl")
    expected = collectives.oracle(definition, inputs)
    assert answer.shape == expected.shape
    assert answer.dtype == torch.bfloat16
    assert torch.allclose(answer.double(), expected, rtol=2e-2, atol=6e-2)


def test_kernels_say_how_many_gpus_they_take():
    for name, kinds in ((SUM, 2), (GATHER, 0), (SCATTER, 0)):
        definition = sized(name)
        assert len(collectives.flashinfer_backends(definition)) == kinds
        every = (
            *collectives.flashinfer_backends(definition),
            *collectives.pytorch_backends(definition),
        )
        assert {backend.gpus for backend in every} == {8}


@pytest.mark.parametrize(("name", "count"), [(SUM, 4), (GATHER, 3), (SCATTER, 4)])
def test_the_relations_hold(name, count):
    definition = sized(name, **SMALL[name])
    by_relation = verdicts(collectives.OP, definition, run_of(loaded(name).reference))
    assert len(by_relation) == count
    assert all(v.passed for of in by_relation.values() for v in of)


@pytest.mark.parametrize(
    ("name", "old", "new", "broken"),
    [
        (
            SUM,
            ".float().sum(dim=0)",
            "[0].float()",
            {"columns-of-a-rank-moved", "ranks-reversed"},
        ),
        (
            SUM,
            ".sum(dim=0)",
            ".sum(dim=0).cumsum(0)",
            {"rows-and-columns-reversed", "rows-in-two"},
        ),
        (GATHER, "shards.transpose(0, 1)", "shards", {"rows-reversed", "rows-in-two"}),
        (
            GATHER,
            "shards.transpose(0, 1)",
            "shards[:1].expand_as(shards).transpose(0, 1)",
            {"shards-turned"},
        ),
        (
            SCATTER,
            "total.reshape(world_size, num_tokens // world_size, hidden_size)",
            "total.reshape(-1, world_size, hidden_size).transpose(0, 1)",
            {"parts-turned"},
        ),
        (
            SCATTER,
            "partial_sums.float().sum(dim=0)",
            "partial_sums[0].float()",
            {"columns-of-a-rank-moved", "ranks-reversed"},
        ),
    ],
)
def test_a_fault_breaks_what_says_so(name, old, new, broken):
    wrong = replaced(loaded(name).reference, old, new)
    assert red(collectives.OP, sized(name, **SMALL[name]), run_of(wrong)) >= broken


def test_what_nccls_ring_rounds_may_a_solution():
    group = MUTANTS[0].mutants(sized(SUM))
    assert {m.name for m in group if m.as_kernel} == {"sum in bfloat16"}


@pytest.mark.parametrize(
    ("name", "is_there"),
    [
        ("allgather_tp8_h128256", True),
        # its ranks fill it up to 152,064 columns, and cut the rest off
        ("allgather_tp8_h151940", False),
        ("allreduce_rmsnorm_tp8_h768", False),
    ],
)
def test_a_vocabulary_that_is_filled_up_has_none(name, is_there):
    sizes = {"tp": 8, "h": int(name.rpartition("_h")[2])}
    assert (instance(name, sizes, {}, "m") is not None) == is_there
