"""Sums over ranks: kernels seen by stand-ins on a CPU, relations that planted faults break."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from generator.ops import ranks
from generator.ops.op_types.comm import op as comm
from generator.ops.op_types.comm.mutants import MUTANTS
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import loaded, replaced, run_of, sized
from tests.unit.ops.related import red, verdicts

NAME = "allreduce_add_rmsnorm_tp8_h7168"
SMALL = {"world_size": 4, "hidden_size": 64}


def case_of(name):
    definition = sized(NAME, **SMALL)
    (case,) = (case for case in comm.cases(definition) if case.name == name)
    return definition, comm.make_inputs(definition, case, Stream("comm"))


@pytest.fixture
def launched(monkeypatch):
    """Let every rank be on the CPU; return the launches of FlashInfer's kernel.

    The last of a call computes for all, as ranks wait for each other.
    """
    calls = []

    def kernel(**given):
        calls.append(given)
        if given["world_rank"] < given["world_size"] - 1:
            return
        of_call = calls[-given["world_size"] :]
        total = sum(one["allreduce_in"].float() for one in of_call).bfloat16()
        for one in of_call:
            rows = total + one["residual_in"]
            square = rows.float().square().mean(-1, keepdim=True)
            norm = rows * torch.rsqrt(square + one["rms_eps"]) * one["rms_gamma"]
            one["residual_out"].copy_(rows)
            one["norm_out"].copy_(norm)

    module = ModuleType("flashinfer.comm")
    module.trtllm_allreduce_fusion = kernel
    module.AllReduceFusionPattern = SimpleNamespace(kARResidualRMSNorm=1)
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.comm", module)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda d: contextlib.nullcontext())
    cpu = torch.device("cpu")
    monkeypatch.setattr(ranks, "devices_of", lambda first, count: [cpu] * count)
    return calls


@pytest.mark.parametrize("backend", ["oneshot", "twoshot"])
def test_every_rank_is_launched_with_its_part_and_pointers_to_all(launched, backend):
    definition, inputs = case_of("large-values")
    norm, rows = comm.flashinfer_ground_truth(definition, inputs, backend)
    expected_norm, expected_rows = comm.oracle(definition, inputs)
    assert norm.shape == expected_norm.shape
    assert torch.allclose(norm.double(), expected_norm, rtol=2e-2, atol=2e-2)
    assert torch.allclose(rows.double(), expected_rows, rtol=1e-2, atol=2e2)
    assert [one["world_rank"] for one in launched] == [0, 1, 2, 3]
    # two-shot takes more tokens than ranks: rows of zeros fill up
    tokens = 3 if backend == "oneshot" else 5
    assert all(one["token_num"] == tokens for one in launched)
    for one in launched:
        part = inputs["hidden_states"][one["world_rank"]]
        assert torch.equal(one["allreduce_in"][:3], part)
        assert not one["allreduce_in"][3:].any()
        assert one["use_oneshot"] is (backend == "oneshot")
    tables = [one["workspace_ptrs"].tolist() for one in launched]
    assert all(len(set(table)) == 13 for table in tables)
    assert all(table[:12] == tables[0][:12] for table in tables)
    assert len({table[12] for table in tables}) == 4


def test_ranks_that_disagree_are_an_error(launched, monkeypatch):
    definition, inputs = case_of("one-row")

    def reduce(parts, totals):
        for rank, total in enumerate(totals):
            total.copy_(sum(parts) + (rank == 2))

    monkeypatch.setattr(torch.cuda.nccl, "all_reduce", reduce)
    with pytest.raises(AssertionError, match="rank 2 has another answer than rank 0"):
        comm.pytorch_ground_truth(definition, inputs, "nccl")


def test_the_first_rank_has_the_gpu_of_the_inputs(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    found = ranks.devices_of(torch.device("cuda", 2), 3)
    assert [device.index for device in found] == [2, 0, 1]


def test_the_relations_hold():
    found = verdicts(comm.OP, sized(NAME, **SMALL), run_of(loaded(NAME).reference))
    assert len(found) == 5
    assert all(v.passed for of in found.values() for v in of)


@pytest.mark.parametrize(
    ("old", "new", "broken"),
    [
        (
            ".sum(dim=0) + residual.float()",
            "[0] + residual.float()",
            {"columns-of-a-rank-moved", "ranks-reversed"},
        ),
        (
            "+ residual.float()",
            "+ len(hidden_states) * residual.float()",
            {"residual-is-one-more-rank"},
        ),
        (
            "hidden_states.float().sum(dim=0)",
            "torch.nn.functional.normalize(hidden_states.float(), dim=-1).sum(dim=0)",
            {"columns-of-a-rank-moved", "residual-is-one-more-rank"},
        ),
        (
            "x.square().mean(dim=-1, keepdim=True)",
            "x.square().mean()",
            {"rows-in-two"},
        ),
    ],
)
def test_a_fault_breaks_what_says_so(old, new, broken):
    wrong = replaced(loaded(NAME).reference, old, new)
    assert red(comm.OP, sized(NAME, **SMALL), run_of(wrong)) >= broken


@pytest.mark.parametrize(("count", "rounds"), [(2, True), (8, False)])
def test_what_the_fused_kernel_rounds_may_a_solution(count, rounds):
    """It rounds the sum of all ranks once: of two that is each addition."""
    definition = sized(NAME, world_size=count, hidden_size=64)
    group = MUTANTS[0].mutants(definition)
    allowed = {mutant.name for mutant in group if mutant.as_kernel}
    assert ("sum in bfloat16" in allowed) == rounds
    assert "rows rounded before the norm" in allowed
