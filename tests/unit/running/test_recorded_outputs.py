"""What becomes of recordings: stale, damaged, side by side, made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.running import record_worker as record
from generator.running.kernel_recorder import RecordJob
from generator.running.record_worker import CURRENT, RECORDED, UNUSABLE, write
from kernel_judge.comparison.compare import FAILED, PASSED, Comparison
from kernel_judge.definition import Case
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.recording import replay as recorded_module
from kernel_judge.recording.recording_file import read
from tests.builders import (
    cases_of,
    ignore_property,
    loaded,
    run_of,
    skip_reason,
    trial_of,
)
from tests.unit.running.pretended import (
    DECODE,
    HERE,
    NEWER,
    NORM,
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


def test_without_a_recording_it_skips_with_the_command(job):
    cls = rendered(NORM)
    trial = trial_of(cls, cases_of(cls)[0])
    reason = skip_reason(
        lambda: cls().test_matches_recorded(trial, Path(job.out), ignore_property)
    )
    assert reason.startswith("recorded: no ")
    assert reason.endswith(f"trace-dataset record --definition-name {NORM}")


def test_a_stated_reason_is_told_where_nothing_is_recorded(job):
    cls = rendered(NORM)
    folder = Path(job.out)
    (folder / "unrecorded.json").write_text(json.dumps({NORM: "needs SM100"}))
    recorded_module._reasons.cache_clear()
    told = recorded_module.missing(cls, folder)
    recorded_module._reasons.cache_clear()
    assert told.startswith("recorded: not yet: needs SM100; to record: trace-dataset")


def other_inputs(definition, case, stream):
    made = rmsnorm.make_inputs(definition, case, stream)
    return {**made, "weight": made["weight"] * 2}


def other_cases(definition):
    return [Case(c.name, c.size, {"batch_size": 9}) for c in rmsnorm.cases(definition)]


def fewer_cases(definition):
    return rmsnorm.cases(definition)[:1]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"EPS": 1e-4}, "the definition's interface or constants have changed"),
        ({"make_inputs": staticmethod(other_inputs)}, "the inputs weight have other"),
        ({"cases": staticmethod(other_cases)}, "the case 'one-row' has changed"),
        ({"cases": staticmethod(fewer_cases)}, "there is no case 'large-values'"),
    ],
)
def test_a_stale_recording_is_red_until_it_is_made_anew(changes, text, job):
    record.record(rendered(NORM).subject(), job, HERE)
    cls = rendered(NORM, **changes)
    failures = replay(cls, job, "one-row")
    assert text in failures["one-row"]
    assert f"trace-dataset record --definition-name {NORM}" in failures["one-row"]
    assert record.record(cls.subject(), job, HERE).status == RECORDED
    assert not any("stale" in text for text in replay(cls, job).values())


def test_a_changed_reference_leaves_a_recording_current(job):
    record.record(rendered(NORM).subject(), job, HERE)
    same = run_of(loaded(NORM).reference)

    def run(*given):
        return same(*given)

    assert record.record(rendered(NORM, run).subject(), job, HERE).status == CURRENT


def test_inputs_of_the_same_bytes_by_other_code_leave_a_recording_current(job):
    record.record(rendered(NORM).subject(), job, HERE)

    def rewritten(definition, case, stream):
        return dict(rmsnorm.make_inputs(definition, case, stream))

    cls = rendered(NORM, make_inputs=staticmethod(rewritten))
    before = path_of(cls, job).read_bytes()
    assert record.record(cls.subject(), job, HERE).status == CURRENT
    assert path_of(cls, job).read_bytes() == before
    other = rendered(NORM, make_inputs=staticmethod(other_inputs))
    assert record.record(other.subject(), job, HERE).status == RECORDED


def test_inputs_that_do_not_fit_are_not_taken_for_the_recorded_ones(job):
    record.record(rendered(NORM).subject(), job, HERE)

    def rewritten(definition, case, stream):
        return dict(rmsnorm.make_inputs(definition, case, stream))

    changed = {"make_inputs": staticmethod(rewritten)}
    large = {"peak_bytes": staticmethod(lambda definition, case: 2**60)}
    cls = rendered(NORM, **changed, **large)
    result = record.record(cls.subject(), job, HERE)
    assert result.status != CURRENT
    assert any("needs" in remark for remark in result.remarks)


def test_recordings_stand_side_by_side(job):
    cls = rendered(DECODE)
    record.record(cls.subject(), job, HERE)
    first = path_of(cls, job).read_bytes()
    assert record.record(cls.subject(), job, NEWER).status == RECORDED
    labels = read(path_of(cls, job)).body["recordings"]
    assert len(labels) == 8
    assert {label.split("@")[1] for label in labels} == {"0.6", "0.7"}
    assert not replay(cls, job)
    assert record.record(cls.subject(), job, HERE).status == CURRENT
    assert path_of(cls, job).read_bytes() != first


def test_new_inputs_drop_what_was_recorded_of_the_old_ones(job):
    record.record(rendered(NORM).subject(), job, HERE)
    cls = rendered(NORM, make_inputs=staticmethod(other_inputs))
    record.record(cls.subject(), job, NEWER)
    assert list(read(path_of(cls, job)).body["recordings"]) == [
        "flashinfer@0.7@NVIDIA-H200"
    ]
    assert not replay(cls, job)


def test_force_records_anew_and_the_same(job):
    cls = rendered(NORM)
    record.record(cls.subject(), job, HERE)
    before = path_of(cls, job).read_bytes()
    again = RecordJob(job.out, device="cpu", force=True)
    assert record.record(cls.subject(), again, HERE).status == RECORDED
    assert path_of(cls, job).read_bytes() == before


def test_a_damaged_file_is_an_error_that_names_it_and_is_replaced(job):
    from kernel_judge.recording.recording_file import Damaged

    cls = rendered(NORM)
    record.record(cls.subject(), job, HERE)
    path = path_of(cls, job)
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    with pytest.raises(Damaged, match="is damaged"):
        replay(cls, job, "one-row")
    result = record.record(cls.subject(), job, HERE)
    assert result.status == RECORDED
    assert str(path) in result.remarks[0]
    assert path.read_bytes() == content


def failing(backend):
    def ground_truth(definition, inputs, asked):
        if asked == backend:
            raise RuntimeError("no kernel image\nis available")
        return pretended(gqa_paged)(definition, inputs, asked)

    return staticmethod(ground_truth)


def test_a_backend_that_fails_leaves_the_others(job):
    cls = rendered(DECODE, flashinfer_ground_truth=failing("fa2"))
    result = record.record(cls.subject(), job, HERE)
    assert result.status == RECORDED
    assert [label.split("@")[0] for label in result.labels] == [
        "flashinfer/cuda-cores",
        "flashinfer/fa3",
        "flashinfer/xqa",
    ]
    assert result.remarks == [
        "flashinfer/fa2 failed: RuntimeError: no kernel image is available"
    ]


def test_where_all_fail_nothing_is_written(job):
    def ground_truth(definition, inputs, backend):
        raise RuntimeError("broken")

    cls = rendered(NORM, flashinfer_ground_truth=staticmethod(ground_truth))
    result = record.record(cls.subject(), job, HERE)
    assert result.status == "failed"
    assert not path_of(cls, job).exists()


def test_a_kernel_that_contradicts_the_oracle_is_recorded_and_told(job):
    cls = rendered(NORM, flashinfer_ground_truth=pretended(rmsnorm, 1.1))
    result = record.record(cls.subject(), job, HERE)
    assert result.status == RECORDED
    assert "flashinfer disagrees with the oracle in one-row" in result.remarks[0]
    assert not result.agrees
    assert replay(cls, job)
    right = rendered(NORM, flashinfer_ground_truth=pretended(rmsnorm))
    assert record.record(
        right.subject(), RecordJob(job.out, device="cpu", force=True), HERE
    ).agrees


def test_an_unusable_provider_is_told_with_its_reason(job, monkeypatch):
    monkeypatch.setattr(
        record,
        "backend_obstacle",
        lambda *_: Obstacle(Kind.NOT_INSTALLED, "not installed"),
    )
    result = record.record(rendered(NORM).subject(), job, HERE)
    assert result.status == UNUSABLE
    assert "no provider is usable: flashinfer: not installed" in result.remarks[0]


class Counts:
    """A policy that stores what it wants, and judges that."""

    def judge(self, actual, expected, question):
        return Comparison(PASSED, ())

    def record(self, expected, question):
        assert question.source == "flashinfer"
        return {"sum": expected.float().sum().reshape(1)}

    def judge_recorded(self, actual, recorded, question):
        off = abs(float(actual.float().sum() - recorded["sum"]))
        return Comparison(PASSED if off < 5.0 else FAILED, (), figures={"off": off})


class Whole:
    """A policy that knows nothing of recordings."""

    def judge(self, actual, expected, question):
        assert expected.dim() == 2
        return Comparison(PASSED if actual.shape == expected.shape else FAILED, ())


@pytest.mark.parametrize("policy", [Counts(), Whole()])
def test_policies_judge_recordings_too(policy, job):
    cls = rendered(NORM, policies={"output": policy})
    assert record.record(cls.subject(), job, HERE).status == RECORDED
    told = []
    assert not replay(cls, job, told=lambda _, value: told.append(json.loads(value)))
    assert told
    wrong = rendered(
        NORM, lambda *given: torch.ones(3, 5).bfloat16(), policies={"output": policy}
    )
    assert replay(wrong, job)


def test_other_positions_than_those_chosen_now_are_told(job):
    cls = rendered(NORM)
    record.record(cls.subject(), job, HERE)
    path = path_of(cls, job)
    found = read(path)
    for about in found.body["recordings"].values():
        for outputs in about["cases"].values():
            for entry in outputs.values():
                if "positions" in entry:
                    entry["positions"] = "0" * 16
    write(path, found)
    assert "other positions than are chosen now" in str(replay(cls, job))


def test_a_case_that_is_gone_leaves_the_file_with_the_next_recording(job):
    record.record(rendered(NORM).subject(), job, HERE)
    cls = rendered(NORM, cases=staticmethod(fewer_cases))
    assert record.record(cls.subject(), job, NEWER).status == RECORDED
    body = read(path_of(cls, job)).body
    assert list(body["cases"]) == ["one-row"]
    assert len(body["recordings"]) == 2
    assert not replay(cls, job)


def test_a_broken_context_keeps_what_was_recorded_before(job, monkeypatch):
    monkeypatch.setattr(record, "can_go_on", lambda device: False)
    cls = rendered(DECODE, flashinfer_ground_truth=failing("fa2"))
    result = record.record(cls.subject(), job, HERE)
    assert result.status == RECORDED
    assert [label.split("@")[0] for label in result.labels] == ["flashinfer/cuda-cores"]


def test_large_inputs_are_not_kept_for_the_next_backend(job, monkeypatch):
    from generator.running import kernel_recorder as take

    made = []

    def make_inputs(definition, case, stream):
        made.append(case.name)
        return gqa_paged.make_inputs(definition, case, stream)

    cls = rendered(DECODE, make_inputs=staticmethod(make_inputs))
    record.record(cls.subject(), job, HERE)
    assert len(made) == 5
    monkeypatch.setattr(take, "KEPT_BYTES", 0)
    record.record(cls.subject(), RecordJob(job.out, device="cpu", force=True), HERE)
    assert len(made) == 5 + 4 * 5
