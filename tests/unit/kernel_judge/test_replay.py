"""Record on a pretended GPU, then replay: agreement, and planted faults."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from generator.ops.domain_mutants import domain_mutants
from generator.ops.mutants import on_inputs
from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.running import record_worker as record
from generator.running.kernel_recorder import RecordJob
from generator.running.record_worker import CURRENT, RECORDED
from kernel_judge.checks import available
from kernel_judge.definition import Backend
from kernel_judge.inputs.trial import same_bits
from kernel_judge.recording.recording_file import read
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    loaded,
    run_of,
    sized,
    skip_reason,
    trial_of,
)
from tests.unit.running.pretended import (
    DECODE,
    HERE,
    MAMBA,
    NAMES,
    NORM,
    PREFILL,
    ROPE,
    job_in,
    path_of,
    pretend_usable,
    pretended,
    rendered,
    replay,
)


@pytest.fixture(autouse=True)
def usable(monkeypatch):
    pretend_usable(monkeypatch)


@pytest.fixture
def job(tmp_path):
    return job_in(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_replayed_on_the_cpu(name, job):
    cls, told = rendered(name), []
    result = record.record(cls.subject(), job, HERE)
    assert (result.status, result.remarks) == (RECORDED, [])
    backends = cls.subject().op.kernels["flashinfer"].backends(cls.definition())
    assert result.labels == tuple(
        f"{available.source_name('flashinfer', b)}@0.6@NVIDIA-H200" for b in backends
    )
    assert result.bytes == path_of(cls, job).stat().st_size
    assert not replay(cls, job, told=lambda _, value: told.append(json.loads(value)))
    assert {r["source"] for r in told} == {
        f"recorded:{available.source_name('flashinfer', b)}" for b in backends
    }
    assert all(r["verdict"] == "PASSED" for r in told)
    assert told[0]["recording"]["gpu"] == "NVIDIA H200"
    assert record.record(cls.subject(), job, HERE).status == CURRENT


def test_inputs_of_another_seed_are_not_held_against_a_recording(job):
    cls = rendered(NORM)
    record.record(cls.subject(), job, HERE)
    case = cases_of(cls)[0]
    shifted = cls.subject().trial(case, shift=7)
    assert not same_bits(
        shifted.inputs["hidden_states"], trial_of(cls, case).inputs["hidden_states"]
    )
    reason = skip_reason(
        lambda: cls().test_matches_recorded(shifted, Path(job.out), ignore_property)
    )
    assert reason == "recorded: not of the inputs of --seed 7"


def test_the_metadata_says_how_it_came_about(job):
    cls = rendered(DECODE)
    symbols = ["flashinfer.decode.Wrapper", "other.symbol"]
    record.record(cls.subject(), RecordJob(job.out, symbols, "cpu"), HERE)
    body = read(path_of(cls, job)).body
    assert list(body["cases"]) == sorted(c.name for c in cases_of(cls))
    assert body["cases"]["boundaries"]["stream"] == [cls.name, "boundaries"]
    assert set(body["cases"]["boundaries"]["inputs"]) == set(cls.interface.inputs)
    about = body["recordings"]["flashinfer/fa2@0.6@NVIDIA-H200"]
    assert about["symbol"] == "flashinfer.decode.Wrapper"
    assert (about["provider"], about["backend"]) == ("flashinfer", "fa2")
    assert (about["sm"], about["date"]) == (90, "2026-11-21")
    entry = about["cases"]["boundaries"]["output"]
    assert (entry["dtype"], entry["shape"]) == ("bfloat16", [11, 4, 32])
    assert entry["oracle"]["nmse"] < 1e-5


# rows without a key, or padded ones: no kernel says what they hold
UNDEFINED = (
    "LSE of no key a finite number",
    "output of no key not a number",
    "output of a padded row not zero",
)


def wrong_runs():
    """Return references that are wrong where the real kernel contradicts them."""
    found = {}
    for name in (DECODE, PREFILL, ROPE, MAMBA):
        run = run_of(loaded(name).reference)
        for mutant in domain_mutants(rendered(name).definition()):
            # one defect of a place, and of an order, is below
            if mutant.name not in UNDEFINED and " along " not in mutant.name:
                found[f"{name}: {mutant.name}"] = (name, mutant.wrap(run))
    return found


WRONG = wrong_runs()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a function that records a definition once: no fault changes its kernel."""
    job = job_in(tmp_path_factory.mktemp("recorded"))
    return cache(
        lambda name: (record.record(rendered(name).subject(), job, HERE).status, job)
    )


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_reference_is_red_in_the_replay(fault, recorded):
    name, run = WRONG[fault]
    status, job = recorded(name)
    assert status == RECORDED
    assert replay(rendered(name, run), job), f"{fault} agrees with the recording"


PLANTED = {
    "one head": lambda i: i.__setitem__((slice(None), 3), 0),
    "one row": lambda i: i.__setitem__(7, 0),
    "the last row": lambda i: i.__setitem__(-1, 0),
    "the tail of a head": lambda i: i.__setitem__((slice(None), slice(None), -3), 0),
}


@pytest.mark.parametrize("place", PLANTED)
def test_a_fault_in_one_place_is_seen_by_the_stored_positions(place, job):
    # 231 rows, 32 heads and 128 columns: one element in 231 is stored
    full = {"flashinfer_backends": staticmethod(lambda _: (Backend("fa3"),))}
    run = run_of(loaded(PREFILL).reference)

    def wrong(*given):
        output, lse = run(*given)
        PLANTED[place](output)
        return output, lse

    classes = [
        class_of(
            gqa_paged,
            sized(PREFILL),
            each,
            flashinfer_ground_truth=pretended(gqa_paged),
            **full,
        )
        for each in (run, wrong)
    ]
    record.record(classes[0].subject(), job, HERE)
    assert not replay(classes[0], job, "whole-prompt")
    assert replay(classes[1], job, "whole-prompt")


def test_a_fault_in_one_page_is_seen_by_the_stored_positions(job):
    cls = class_of(
        gqa_paged,
        sized(DECODE),
        run_of(loaded(DECODE).reference),
        flashinfer_ground_truth=pretended(gqa_paged),
    )
    assert record.record(cls.subject(), job, HERE).status == RECORDED
    (case,) = [c for c in cases_of(cls) if c.name == "boundaries"]
    pages = trial_of(cls, case).inputs["kv_indices"]
    for page in (pages[0], pages[5], pages[-1]):

        def one_page(inputs, page=page):
            cache = inputs["v_cache"].clone()
            cache[page] = 0
            return {"v_cache": cache}

        mutant = on_inputs(cls.definition(), "one page", one_page)
        run = mutant.wrap(run_of(loaded(DECODE).reference))
        wrong = class_of(gqa_paged, sized(DECODE), run)
        assert replay(wrong, job, "boundaries"), int(page)


def test_worst_elements_are_named_by_their_place_in_the_whole_output(job):
    run = run_of(loaded(NORM).reference)

    def wrong(*given):
        output = run(*given)
        output[:, 7] += 100
        return output

    record.record(rendered(NORM).subject(), job, HERE)
    failures = replay(rendered(NORM, wrong), job, "large-values")
    (text,) = failures.values()
    assert ", 7): actual" in text
    assert "against recorded:flashinfer" in text
