"""An audit's runner has workloads and far scales beside the op's usual cases."""

from __future__ import annotations

import json
from pathlib import Path

from generator.mutation.audit_job import prepare
from generator.rules.load import load_definitions
from tests.builders import replaced, resized_json, write_dataset

NAME = "rmsnorm_h128"


def test_a_reference_that_is_wrong_at_a_workload_fails_its_audit(tmp_path: Path):
    known = resized_json(NAME, NAME)
    first = "x = hidden_states.float()\n"
    more = "    if x.shape[0] == 201:\n        x = x + 0.5\n"
    wrong = replaced(known["reference"], first, first + more)
    root = write_dataset(tmp_path, [{**known, "reference": wrong}])
    random = {"type": "random"}
    inputs = {"hidden_states": random, "weight": random}
    body = {"uuid": "one", "axes": {"batch_size": 201}, "inputs": inputs}
    file = root / f"workloads/rmsnorm/{NAME}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"definition": NAME, "workload": body}) + "\n")
    (definition,) = load_definitions(root).definitions
    (left_out,) = prepare(definition, None, None, root).runner.left_out
    assert (left_out.test, left_out.case) == ("test_matches_oracle", "workload one")
    assert not prepare(definition, None, None).runner.left_out


def test_a_scale_that_float16_lacks_is_asked_without_limits(tmp_path: Path):
    name = "store_kv_e4m3_kv8_d128"
    root = write_dataset(tmp_path, [resized_json(name, name, num_kv_heads=2)])
    (definition,) = load_definitions(root).definitions
    job = prepare(definition, None, None)
    names = {stand.case.name for stand in job.runner.prepared_cases}
    assert {"factors-up", "factors-down"} <= names
    assert "past-limits" not in names
    (place,) = (
        place
        for place, planned in enumerate(job.planned)
        if planned.result.name == "domain: k_scale rounded to float16"
    )
    result = job.audit(place, lambda: None)
    assert (result.status, result.case) == ("caught", "factors-down")
