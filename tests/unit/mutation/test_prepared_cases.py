"""An audit's runner has workloads and far scales beside the op's usual cases."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from generator.dataset.paths import DatasetFile
from generator.execution.outcome import CannotRun
from generator.mutation import audit_job, task_functions
from generator.mutation.audit_job import prepare
from generator.mutation.mutant_runner import MutantRunner
from generator.rules.load import load_definitions
from generator.running import free_memory
from kernel_judge.definition import WORKLOAD
from kernel_judge.inputs.memory import tensor_bytes
from tests.builders import ROOT, loaded, replaced, resized_json, write_dataset
from tests.unit.mutation.one_workload import (
    FIRST,
    NAME,
    Silent,
    dataset_of_one_workload,
)


def test_a_reference_that_is_wrong_at_a_workload_fails_its_audit(tmp_path: Path):
    more = "    if x.shape[0] == 201:\n        x = x + 0.5\n"
    root = dataset_of_one_workload(tmp_path, FIRST + more)
    (definition,) = load_definitions(root).definitions
    (left_out,) = prepare(definition, None, None, root).runner.left_out
    assert (left_out.test, left_out.case) == ("test_matches_oracle", "workload one")
    assert not prepare(definition, None, None).runner.left_out


def test_a_scale_that_float16_lacks_is_asked_without_limits(tmp_path: Path):
    name = "store_kv_e4m3_kv8_d128"
    root = write_dataset(tmp_path, [resized_json(name, name, num_kv_heads=2)])
    (definition,) = load_definitions(root).definitions
    job = prepare(definition, None, None)
    names = {prepared.case.name for prepared in job.runner.prepared_cases}
    assert {"factors-up", "factors-down"} <= names
    assert "past-limits" not in names
    (place,) = (
        place
        for place, planned in enumerate(job.planned)
        if planned.result.name == "domain: k_scale rounded to float16"
    )
    result = job.audit(place, lambda: None)
    assert (result.status, result.case) == ("caught", "factors-down")


@pytest.mark.parametrize(
    ("task", "arguments", "why"),
    [
        (
            "audit",
            {"limits": False, "tolerance": None},
            "one-row: needs 0.0 of 0.0 GiB",
        ),
        ("audit", {"limits": True, "tolerance": None}, "one-row: needs 0.0 of 0.0 GiB"),
        ("run_seeds", {"seeds": (1, 1), "whole": False}, "one-row: needs 0.0 GiB"),
        ("measure_tolerances", {"tolerance": None}, "one-row: needs 0.0 GiB of 0.0"),
    ],
)
def test_where_no_case_fits_nothing_was_compared(
    tmp_path, monkeypatch, task, arguments, why
):
    root = write_dataset(tmp_path, [resized_json(NAME, NAME)])
    monkeypatch.setattr(free_memory, "_system_bytes", lambda: 1000)
    monkeypatch.setattr(free_memory, "_container_bytes", lambda: None)
    # this process runs other tests
    monkeypatch.setattr(task_functions, "limit_memory", lambda more: None)
    monkeypatch.setattr(task_functions, "keep_freed_memory", lambda: None)
    file = asdict(DatasetFile("rmsnorm", NAME, f"definitions/rmsnorm/{NAME}.json"))
    given = {"root": str(root), "file": file, "lanes": 1, "sharing": 1, **arguments}
    function = getattr(task_functions, task)
    if task == "measure_tolerances":
        said = function(given, Silent())["error"]
    else:
        with pytest.raises(CannotRun) as error:
            function(given, Silent())
        said = str(error.value)
    assert said.startswith("nothing was compared: ")
    assert why in said


def test_one_process_has_room_for_the_inputs_of_all_its_cases(tmp_path, monkeypatch):
    root = write_dataset(tmp_path, [resized_json(NAME, NAME)])
    (definition,) = load_definitions(root).definitions
    runner = prepare(definition, None, None).runner
    sizes = {
        prepared.case.name: tensor_bytes(runner.subject.definition, prepared.case)
        for prepared in runner.prepared_cases
    }
    assert runner.most_bytes > sum(sizes.values()) > max(sizes.values())
    # of two processes, each has half of what is there
    monkeypatch.setattr(
        "generator.mutation.mutant_runner.available_bytes",
        lambda device: 2 * runner.most_bytes - 1,
    )
    assert not prepare(definition, None, None).runner.not_asked
    fewer = prepare(definition, None, None, sharing=2).runner
    assert len(fewer.not_asked) == 1
    assert "of memory" in next(iter(fewer.not_asked.values()))
    assert len(fewer.prepared_cases) == len(sizes) - 1
    assert fewer.objection is None


def test_a_workload_that_shorter_axes_have_no_values_for_is_left_out(
    tmp_path, monkeypatch
):
    more = "    if x.shape == (201, 64):\n        raise IndexError('66 of 64')\n"
    root = dataset_of_one_workload(tmp_path, FIRST + more)
    (definition,) = load_definitions(root).definitions
    monkeypatch.setattr(audit_job, "reduced", lambda *_: {"hidden_size": 64})
    job = prepare(definition, None, None, root)
    # not on the declared axes, which may be larger than the memory
    assert job.axes == {"hidden_size": 64}
    assert not job.runner.left_out
    assert job.runner.not_asked == {"workload one": "raised IndexError: 66 of 64"}
    assert job.runner.objection is None


@pytest.mark.parametrize(
    "name",
    [
        "moe_bf16_topk8_e16_h2048_i768",
        "grouped_gemm_fp8_masked_e8_n3072_k1536",
        "chain_speculative_sampling_v129280",
    ],
)
def test_workloads_that_state_numbers_of_experts_or_tokens_are_met(name: str):
    """On shorter axes too, where the vocabulary has fewer tokens than are drafted."""
    job = prepare(loaded(name), None, None, ROOT)
    assert job.axes
    met = [
        prepared
        for prepared in job.runner.prepared_cases
        if prepared.case.size == WORKLOAD and prepared.is_compared
    ]
    assert len(met) >= 7
    assert not job.runner.not_asked
    assert not job.runner.left_out


def test_a_reference_that_agrees_with_nothing_has_no_audit(tmp_path):
    known = resized_json(NAME, NAME)
    wrong = replaced(known["reference"], "* weight.float()", "* 2 * weight.float()")
    root = write_dataset(tmp_path, [{**known, "reference": wrong}])
    (definition,) = load_definitions(root).definitions
    runner: MutantRunner = prepare(definition, None, None).runner
    assert runner.objection is not None
    start = "the reference itself does not pass test_matches_oracle in case "
    assert runner.objection.startswith(start)
