"""`trace-dataset record` on pretended kernels, and the replay of what it wrote."""

from __future__ import annotations

import io
import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest
import torch

from generator.cli.output import run
from generator.cli.trace_dataset import cli
from tests.harness.datasets import DECODE, NORM, PREFILL, class_name, decode, norm
from tests.harness.datasets import prefill as prefill_value
from tests.harness.fakes import pretend
from tests.harness.runs import render, run_pytest, table_of

NO_CUDA = pytest.mark.skipif(
    torch.cuda.is_available(), reason="cuda: this machine has a usable device"
)


def command(dataset, *arguments, **environment):
    """Run trace-dataset in a dataset; its workers are processes of their own."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        patch.chdir(dataset)
        patch.setattr(sys, "argv", ["trace-dataset", *arguments])
        for name, value in {"OMP_NUM_THREADS": "1", **environment}.items():
            patch.setenv(name, value)
        status = run(cli, "trace-dataset")
    return SimpleNamespace(
        returncode=status, stdout=stdout.getvalue(), stderr=stderr.getvalue()
    )


def record(dataset, *arguments, **environment):
    return command(
        dataset, "record", "--device", "cpu", "--jobs", "1", *arguments, **environment
    )


def with_dataset(root):
    """Return a dataset with its tests in place, whose kernels are pretended."""
    folder = render(root, [norm(), decode(), prefill_value()])
    target = root / "dataset" / "tests" / "references"
    shutil.copytree(folder, target)
    pretend(target)
    return root / "dataset"


@pytest.fixture
def dataset(tmp_path):
    return with_dataset(tmp_path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a dataset with recordings, and what the command said."""
    root = with_dataset(tmp_path_factory.mktemp("recorded"))
    return root, record(root, "--all")


def test_all_are_recorded(recorded):
    root, done = recorded
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("recorded  ") for line in lines)
    assert "3 definitions: 3 recorded; " in done.stderr
    files = sorted(p.stem for p in (root / "blob").rglob("*"))
    assert files == sorted(
        ["ground_truth", "gqa_paged", "rmsnorm", NORM, DECODE, PREFILL]
    )


def test_the_replay_runs_where_nothing_else_can(recorded, right):
    # the tests as rendered, in which no provider is usable
    folder = recorded[0] / "blob" / "ground_truth"
    ran = run_pytest(right, "--device", "cpu", "--recordings", str(folder), "--strict")
    assert ran.status == 0, ran.stdout
    replayed = [o for o in ran.outcomes if o.function == "test_matches_recorded"]
    assert {o.test_class for o in replayed} == {
        class_name(name) for name in (NORM, DECODE, PREFILL)
    }
    assert all(o.status == "passed" for o in replayed)
    assert "ragged" not in {o.case for o in replayed}
    compared = {key: row[0] for key, row in table_of(ran).items()}
    assert compared["rmsnorm", "recorded:flashinfer"] == "1/1"
    assert compared["gqa_paged", "oracle"] == "2/2"
    for backend, counted in (("cuda-cores", "1/1"), ("fa2", "2/2"), ("fa3", "2/2")):
        assert compared["gqa_paged", f"recorded:flashinfer/{backend}"] == counted


def test_a_copy_in_a_dataset_finds_its_recordings(recorded, right, tmp_path):
    clone = tmp_path / "clone"
    shutil.copytree(recorded[0] / "blob", clone / "blob")
    folder = shutil.copytree(right, clone / "tests" / "references")
    (folder.parent / "absent.py").write_text("")
    ran = run_pytest(folder, "--device", "cpu", "-k", "recorded")
    assert ran.status == 0, ran.stdout
    assert table_of(ran)["gqa_paged", "recorded:flashinfer/fa3"][0] == "2/2"


def test_without_recordings_each_definition_is_one_skip_with_the_command(green):
    skipped = [o for o in green.outcomes if o.function == "test_matches_recorded"]
    assert len(skipped) == 3
    for outcome in skipped:
        assert (outcome.status, outcome.case) == ("skipped", "missing")
        assert "trace-dataset record --definition-name " in outcome.detail


def test_a_damaged_file_is_an_error_that_names_it(recorded, right, tmp_path):
    folder = tmp_path / "ground_truth"
    shutil.copytree(recorded[0] / "blob" / "ground_truth", folder)
    path = folder / "rmsnorm" / f"{NORM}.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    arguments = ["--recordings", str(folder), "-k", "recorded", "--device", "cpu"]
    ran = run_pytest(right, *arguments)
    assert ran.status == 1
    of_norm = [o for o in ran.outcomes if o.test_class == class_name(NORM)]
    # whose recording a CPU is not asked for
    large = [o for o in of_norm if o.case == "far-past-limits"]
    assert {o.detail.partition("\n")[0] for o in large} <= {"128 MiB are for a GPU"}
    asked = [o for o in of_norm if o not in large]
    assert {o.status for o in asked} == {"failed"}
    assert all(f"{path} is damaged" in o.detail for o in asked)
    others = [o for o in ran.outcomes if o.test_class != class_name(NORM)]
    assert {o.status for o in others} == {"passed"}


def test_a_crash_costs_one_definition_and_a_second_run_goes_on(dataset):
    done = record(dataset, "--all", REFERENCE_PRETENDS=f"crash {DECODE}")
    assert done.returncode == 1
    assert f"failed    {DECODE}\n    ended its process with status 17" in done.stdout
    assert "3 definitions: 2 recorded, 1 failed" in done.stderr
    path = dataset / "blob" / "ground_truth" / "gqa_paged" / f"{DECODE}.safetensors"
    assert not path.exists()
    done = record(dataset, "--all")
    assert done.returncode == 0
    assert "1 recorded, 2 current" in done.stderr
    assert path.exists()
    again = record(dataset, "--all", "--fresh")
    assert "3 definitions: 3 recorded" in again.stderr


def test_a_backend_that_raises_is_told(dataset):
    arguments = ["--definition-name", DECODE, "--logs", "logs"]
    done = record(dataset, *arguments, REFERENCE_PRETENDS=f"raise {DECODE} fa2")
    assert "    flashinfer/fa2 failed: RuntimeError: pretended\n" in done.stdout
    assert "flashinfer/fa3@" in done.stdout
    text = (dataset / "logs" / f"{DECODE}.log").read_text("utf-8")
    assert "Traceback (most recent call last):" in text


def test_other_places_can_be_named(dataset, tmp_path):
    moved = shutil.move(dataset / "tests" / "references", tmp_path / "elsewhere")
    out = tmp_path / "out"
    arguments = ["--op-type", "rmsnorm", "--tests", str(moved), "--output", str(out)]
    assert record(dataset, *arguments).returncode == 0
    assert (out / "rmsnorm" / f"{NORM}.safetensors").exists()


def test_tests_of_another_definition_are_not_recorded_with(dataset):
    path = dataset / "definitions" / "rmsnorm" / f"{NORM}.json"
    value = json.loads(path.read_text("utf-8"))
    path.write_text(
        json.dumps({**value, "reference": value["reference"] + "\n# changed"}), "utf-8"
    )
    done = record(dataset, "--op-type", "rmsnorm")
    assert done.returncode == 1
    assert "was not rendered from definitions/rmsnorm" in done.stdout
    assert "gen-tests --op-type rmsnorm" in done.stdout
    shutil.rmtree(dataset / "tests")
    assert "there is no " in record(dataset, "--op-type", "rmsnorm").stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Say what to record"),
        (["--all", "--op-type", "rmsnorm"], "--all leaves nothing to choose"),
        (["--definition-name", "rmsnorm_h182"], "Did you mean 'rmsnorm_h128'?"),
        (["--op-type", "rmsnrm"], "Did you mean 'rmsnorm'?"),
        (["--all", "--provider", "cublas"], "'cublas' is not one of"),
        (["--all", "--device", "tpu"], "--device 'tpu': choose cpu, cuda or cuda:N."),
        (["--all", "--dataset", "nowhere"], "There is no folder"),
        pytest.param(
            ["--all", "--device", "cuda"], "No CUDA device here", marks=NO_CUDA
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_2(dataset, arguments, text):
    done = command(dataset, "record", *arguments)
    assert done.returncode == 2
    assert text.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert not (dataset / "blob").exists()
