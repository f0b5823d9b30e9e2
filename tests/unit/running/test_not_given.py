"""Outputs that a kernel does not return: compared with nothing, and said so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.running import record_worker as record
from kernel_judge.definition import Backend
from kernel_judge.recording.recording_file import read
from tests.builders import cases_of, ignore_property, skip_reason, trial_of
from tests.unit.running.pretended import (
    DECODE,
    HERE,
    job_in,
    path_of,
    pretend_usable,
    pretended,
    rendered,
    replay,
)

FULL, BARE = Backend("fa2"), Backend("xqa", lacks=("lse",))


@pytest.fixture(autouse=True)
def usable(monkeypatch):
    pretend_usable(monkeypatch)


def two_sources(*backends, factor=1.0):
    return rendered(
        DECODE,
        flashinfer_backends=staticmethod(lambda definition: backends),
        flashinfer_ground_truth=pretended(gqa_paged, factor),
    )


def told(test, *arguments):
    records = []
    test(*arguments, lambda name, value: records.append(json.loads(value)))
    return {record["output"]: record["not_given"] for record in records}


def first_trial(cls):
    return trial_of(cls, cases_of(cls)[0])


def test_the_rest_is_compared_and_the_record_names_what_is_not():
    cls = two_sources(FULL, BARE)
    trial, test = first_trial(cls), cls()
    assert told(test.test_matches_flashinfer, trial, BARE) == {"output": ["lse"]}
    full = told(test.test_matches_flashinfer, trial, FULL)
    assert full == {"output": [], "lse": []}
    assert told(test.test_ground_truths_agree, trial) == {"output": ["lse"]}
    wrong = two_sources(BARE, factor=1.1)
    with pytest.raises(AssertionError, match="'output' against flashinfer/xqa"):
        wrong().test_matches_flashinfer(first_trial(wrong), BARE, ignore_property)


@pytest.mark.parametrize("declared", [Backend("xqa"), Backend("fa2", lacks=("lse",))])
def test_a_kernel_that_gives_more_or_less_than_declared_is_red(declared):
    cls = two_sources(declared)
    with pytest.raises(AssertionError, match="flashinfer gave None as "):
        cls().test_matches_flashinfer(first_trial(cls), declared, ignore_property)


def test_a_reference_that_leaves_out_the_lse_is_red():
    cls = two_sources(BARE)
    run = cls.reference()
    wrong = rendered(DECODE, lambda *given: (run(*given)[0], None))
    with pytest.raises(AssertionError, match="'lse' against flashinfer/fa2"):
        wrong().test_matches_flashinfer(first_trial(wrong), FULL, ignore_property)
    with pytest.raises(AssertionError, match="a tensor is expected, got NoneType"):
        wrong().test_matches_oracle(first_trial(wrong), ignore_property)


def test_sources_without_a_common_output_are_skipped():
    lacking = {"one": (0, "output"), "two": (1, "lse")}

    def ground_truth(definition, inputs, backend):
        answer = [torch.zeros(1), torch.zeros(1)]
        answer[lacking[backend][0]] = None
        return tuple(answer)

    backends = [Backend(name, lacks=(output,)) for name, (_, output) in lacking.items()]
    cls = rendered(
        DECODE,
        flashinfer_backends=staticmethod(lambda definition: backends),
        flashinfer_ground_truth=staticmethod(ground_truth),
    )
    reason = skip_reason(
        lambda: cls().test_ground_truths_agree(first_trial(cls), ignore_property)
    )
    assert reason == "flashinfer/one: shares no output with flashinfer/two"


def test_a_recording_has_what_the_kernel_gave_and_names_the_rest(tmp_path):
    cls, job = two_sources(FULL, BARE), job_in(tmp_path)
    assert record.record(cls.subject(), job, HERE).agrees
    recordings = read(path_of(cls, job)).body["recordings"]
    lacking = {about["source"]: about.get("not_given") for about in recordings.values()}
    assert lacking == {"flashinfer/fa2": None, "flashinfer/xqa": ["lse"]}
    records = []
    keep = lambda name, value: records.append(json.loads(value))
    assert replay(cls, job, cases_of(cls)[0].name, keep) == {}
    found = {
        (r["source"].partition("/")[2], r["output"]): r["not_given"] for r in records
    }
    assert found == {
        ("fa2", "output"): [],
        ("fa2", "lse"): [],
        ("xqa", "output"): ["lse"],
    }
    run = cls.reference()
    halved = rendered(DECODE, lambda *given: (run(*given)[0] / 2, run(*given)[1]))
    assert "recorded:flashinfer/xqa" in "".join(replay(halved, job).values())


def test_a_recording_says_what_was_called(tmp_path):
    job = job_in(Path(tmp_path))
    named = Backend("xqa", lacks=("lse",), symbol="flashinfer.decode.xqa")
    cls = two_sources(named)
    record.record(cls.subject(), job, HERE)
    (about,) = read(path_of(cls, job)).body["recordings"].values()
    assert about["symbol"] == "flashinfer.decode.xqa"
