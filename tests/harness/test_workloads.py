"""A reference that is wrong at the sizes of its workloads alone is red."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import save_file

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.rules.load import load_definitions
from tests.builders import replaced, resized_json, write_dataset
from tests.forking import PYTEST, run_module

NAME = "rmsnorm_h128"
WRONG = replaced(
    resized_json(NAME, NAME)["reference"],
    "x = hidden_states.float()\n",
    "x = hidden_states.float()\n    if x.shape[0] > 100:\n        x = x * 1.5 + 0.5\n",
)


def _workload(uuid: str, rows: int, **inputs: object) -> str:
    random = {"type": "random"}
    body = {
        "uuid": uuid,
        "axes": {"batch_size": rows},
        "inputs": {"hidden_states": random, "weight": random, **inputs},
    }
    return json.dumps({"definition": NAME, "solution": None, "workload": body}) + "\n"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Return a dataset of a reference that is wrong for more than 100 rows."""
    root = write_dataset(tmp_path, [{**resized_json(NAME, NAME), "reference": WRONG}])
    loaded = load_definitions(root)
    tests = root / "tests/references"
    generate(root, loaded, tests, RenderOptions(), everything=True)
    file = root / f"workloads/rmsnorm/{NAME}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(_workload("small", 3) + _workload("large", 101))
    return root


def _run(root: Path, *options: str) -> tuple[int, str]:
    tests = str(root / "tests/references")
    done = run_module(
        "pytest", tests, "--device", "cpu", "-q", "-rfs", *options, imports=PYTEST
    )
    return done.returncode, done.stdout


def test_it_is_red_at_the_workload_and_beyond_limits_and_green_without(dataset):
    status, text = _run(dataset, "--sizes", "small")
    assert status == 1
    (failed,) = (line for line in text.splitlines() if line.startswith("FAILED"))
    assert "test_matches_oracle[workload large]" in failed
    options = "--workloads", "none"
    assert _run(dataset, *options, "--sizes", "small")[0] == 0
    status, text = _run(dataset, *options)
    assert status == 1
    assert "test_matches_oracle[past-limits]" in text


def test_what_is_larger_than_what_took_too_long_is_not_asked(dataset):
    file = dataset / f"workloads/rmsnorm/{NAME}.jsonl"
    file.write_text(
        "".join(_workload(f"rows {n}", n) for n in (30_000, 30_001, 60_002))
    )
    options = "-k", "matches_oracle and workload", "--workload-seconds", "0.0001"
    _, text = _run(dataset, *options)
    skipped = [line for line in text.splitlines() if line.startswith("SKIPPED")]
    assert any("[1]" in line and "took over 0.0001 s" in line for line in skipped)
    why = "workload rows 30000, which is no larger, took too long of the CPU"
    assert any("[2]" in line and why in line for line in skipped)
    _, text = _run(dataset, *options, "--workloads", "all")
    assert "too long" not in text


def test_what_a_file_states_is_taken(dataset):
    import torch

    save_file({"x": torch.zeros(2, 128).bfloat16()}, dataset / "zeros.safetensors")
    stated = {"type": "safetensors", "path": "zeros.safetensors", "tensor_key": "x"}
    file = dataset / f"workloads/rmsnorm/{NAME}.jsonl"
    file.write_text(_workload("zeros", 3, hidden_states=stated))
    status, _ = _run(dataset, "-k", "workload")
    assert status == 1, "the file has two rows, the workload says three"
    file.write_text(_workload("zeros", 2, hidden_states=stated))
    assert _run(dataset, "-k", "workload")[0] == 0


def test_one_that_takes_long_is_skipped_with_the_reason(dataset):
    # so many rows take longer than a tick of the clock that gives it up, on any CPU
    file = dataset / f"workloads/rmsnorm/{NAME}.jsonl"
    file.write_text(_workload("large", 65_536))
    options = ("-k", "workload", "--workload-seconds", "0.000001")
    status, text = _run(dataset, *options)
    assert status == 0
    assert "took over 1e-06 s of the CPU: --workloads all asks for it" in text
    assert _run(dataset, *options, "--workloads", "all")[0] == 1


def test_a_file_that_is_none_is_one_failed_test_with_its_line(dataset):
    file = dataset / f"workloads/rmsnorm/{NAME}.jsonl"
    file.write_text(file.read_text() + "{\n")
    status, text = _run(dataset)
    assert status == 1
    assert f"workloads/rmsnorm/{NAME}.jsonl: " in text
    assert "Traceback" not in text
    file.write_text('{"workload": {"uuid": "x", "axes": {}, "inputs": {}}}\n')
    status, text = _run(dataset)
    assert status == 1
    assert "line 1 is no workload of it" in text
