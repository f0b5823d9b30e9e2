"""`pytest --keep-failures` of rendered tests, and `trace-dataset replay` of what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from generator import api
from generator.execution.sandbox import refusal
from generator.results.failure import read_failure
from tests.builders import replaced, resized_json, write_dataset
from tests.forking import PYTEST, run_module
from tests.functional.audit_command import audit

NORM = "rmsnorm_h128"
WRONG = ("* weight.float()", "* weight.float() * 0.5")
needs_sandbox = pytest.mark.skipif(
    refusal() is not None, reason=f"no sandbox: {refusal()}"
)


def rendered(root: Path, reference: str | None = None) -> Path:
    """Write a dataset of one norm, with its tests; return its root."""
    value = resized_json(NORM, NORM)
    dataset = write_dataset(
        root, [{**value, "reference": reference or value["reference"]}]
    )
    api.render(api.open_dataset(dataset))
    return dataset


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a dataset whose norm is half of it, and its failures."""
    root = tmp_path_factory.mktemp("kept")
    text = replaced(resized_json(NORM, NORM)["reference"], *WRONG)
    dataset = rendered(root / "dataset", text)
    options = ("--device", "cpu", "--sizes", "small", "--keep-failures", root / "kept")
    done = run_module(
        *("pytest", dataset / "tests/references", "-q", "-k", "oracle", *options),
        imports=PYTEST,
        cwd=root,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    path = root / "kept" / NORM / "test_matches_oracle-one-row" / "failure.json"
    assert f"trace-dataset replay {path}" in done.stdout
    return root


def failure_of(kept: Path, case: str = "one-row") -> Path:
    return kept / "kept" / NORM / f"test_matches_oracle-{case}" / "failure.json"


def replay(file: Path, dataset: Path, *options: str) -> tuple[int, str, str]:
    return audit(file, "--dataset", dataset, *options, command="replay")


def test_a_failed_test_leaves_what_is_wrong_and_its_values(kept: Path) -> None:
    failure = read_failure(failure_of(kept))

    (output,) = failure["outputs"]
    assert (failure["case"], failure["verdict"]) == ("one-row", "FAILED")
    assert output["source"] == "oracle"
    assert output["wrong_by_axis"]["batch_size"] == {"wrong": 1, "of": 1, "first": [0]}
    assert "half" in output["likely"]
    assert {"index", "actual", "expected"} <= output["worst"][0].keys()
    tensors = load_file(failure_of(kept).with_name("failure.safetensors"))
    assert {"inputs.weight", "actual.output", "expected.output"} <= tensors.keys()


@needs_sandbox
def test_a_replay_fails_until_the_definition_is_mended(
    kept: Path, tmp_path: Path
) -> None:
    status, out, err = replay(failure_of(kept), kept / "dataset", "--json")
    assert status == 1
    assert json.loads(out)["status"] == "failed"
    assert "failed, was FAILED" in err
    mended = rendered(tmp_path)
    status, out, _ = replay(failure_of(kept), mended)
    assert (status, "passed" in out) == (0, True)


def _changed(kept: Path, tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "failure.json"
    path.write_text(json.dumps({**json.loads(failure_of(kept).read_text()), **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test": "x.py::TestX::test_y"}, "/test: it is no test"),
        ({"test": "TestX::test_y[a]\n--pdb"}, "/test: it is no test"),
        ({"test": None}, "/test: it is no test"),
        ({"tolerance": "1"}, "/tolerance: it is no number"),
        ({"tolerance": -1.0}, "/tolerance: it is no number"),
        ({"seed": -1}, "/seed: it is no number"),
        ({"device": "cuda:0"}, "/device: it is none of cpu, cuda"),
        ({"kind": "page"}, "/kind: it is none of solution, test"),
        ({"definition": "rmsnorm_h12"}, "Did you mean 'rmsnorm_h128'?"),
    ],
)
def test_a_file_that_somebody_changed_is_one_line(
    kept: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    status, out, err = replay(_changed(kept, tmp_path, **changes), kept / "dataset")

    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@needs_sandbox
def test_a_case_that_is_none_is_one_line(kept: Path, tmp_path: Path) -> None:
    path = _changed(kept, tmp_path, test="TestX::test_matches_oracle[no-such]")

    status, _, err = replay(path, kept / "dataset")

    assert status == 2
    assert f"no test of {NORM} is named" in err


def test_a_solution_can_t_mend_a_test(kept: Path) -> None:
    status, _, err = replay(failure_of(kept), kept / "dataset", "--mended", "x.json")

    assert status == 2
    assert "mend the definition in the dataset" in err


def test_every_case_s_name_can_be_replayed(kept: Path) -> None:
    from generator.results.failure import _TEST
    from tests.builders import ROOT

    done = run_module(
        *("pytest", ROOT / "tests/references/test_gqa_single.py", "--collect-only"),
        *("-q", "-p", "no:cacheprovider", "--device", "cpu"),
        imports=PYTEST,
    )
    names = [
        line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line
    ]
    assert len(names) > 100
    assert [name for name in names if not _TEST.fullmatch(name)] == []
