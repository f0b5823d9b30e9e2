"""Every definition has a recording of a production kernel, or a stated reason why not.

Until an op_type's first recording is there, nothing is demanded of it. From then on a
recording that vanishes is red, as is a reason for a definition that has one.
"""

from __future__ import annotations

import json

import pytest

from generator.dataset.paths import discover_definitions
from kernel_judge.recording.recording_file import FOLDER, SUFFIX, read
from tests.builders import ROOT

REASONS = json.loads((ROOT / FOLDER / "unrecorded.json").read_text("utf-8"))
FILES = sorted((ROOT / FOLDER).rglob(f"*{SUFFIX}"))
MAX_BYTES = 40 * 10**6
recorded = pytest.mark.skipif(not FILES, reason="nothing is recorded yet")


@recorded
def test_every_definition_has_a_recording_or_a_reason():
    found = {f"{file.op_type}/{file.name}" for file in discover_definitions(ROOT).files}
    present = {f"{file.parent.name}/{file.stem}" for file in FILES}
    assert present <= found, "recordings of definitions that are gone"
    missing = {path.partition("/")[2] for path in found - present}
    assert missing == set(REASONS), "unrecorded.json says which are not recorded"


def test_reasons_are_reasons():
    for name, reason in REASONS.items():
        assert len(reason) > 20, name


def test_all_recordings_together_are_small():
    assert sum(file.stat().st_size for file in FILES) <= MAX_BYTES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_is_whole_and_agrees_with_the_oracle(file):
    body = read(file).body
    assert (body["op_type"], body["definition"]) == (file.parent.name, file.stem)
    for label, about in body["recordings"].items():
        assert about["provider"] in ("flashinfer", "sglang", "pytorch")
        for case, outputs in about["cases"].items():
            for output, entry in outputs.items():
                verdict = entry.get("oracle", {}).get("verdict", "PASSED")
                assert verdict == "PASSED", (label, case, output)
