"""`trace-dataset drift`: what changed between two recordings, and by how much."""

from __future__ import annotations

import json

import pytest

from tests.harness.datasets import DECODE, NORM
from tests.harness.test_recordings import command, record, with_dataset


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Return a dataset with recordings of now, and others in `older`."""
    root = with_dataset(tmp_path_factory.mktemp("drift"))
    names = ["--definition-name", NORM, "--definition-name", DECODE]
    record(root, *names, "--output", "older", REFERENCE_PRETENDS_FACTOR="1.02")
    record(root, *names)
    return root


def test_nothing_changed_is_exit_status_0(two):
    done = command(
        two, "record", "--compare", "blob/ground_truth", "blob/../blob/ground_truth"
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("0 of ")


def test_each_changed_output_is_a_line_with_its_figures(two):
    done = command(two, "record", "--compare", "older", "blob/ground_truth")
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stdout.splitlines() if f"{NORM}  one-row" in line]
    (line,) = lines
    assert "128 of 128 elements changed" in line
    assert "NMSE 0.000376" in line
    assert "against the oracle 0.000395 -> " in line
    assert "definitions changed" in done.stderr


def test_the_same_as_json(two):
    done = command(two, "record", "--compare", "older", "blob/ground_truth", "--json")
    rows = json.loads(done.stdout)["drifts"]
    assert {row["definition"] for row in rows} == {NORM, DECODE}
    of_norm = [row for row in rows if row["definition"] == NORM]
    assert all(row["oracle_after"] < 1e-5 < row["oracle_before"] for row in of_norm)


def test_two_backends_of_one_file(two):
    path = f"blob/ground_truth/gqa_paged/{DECODE}.safetensors"
    done = command(two, "record", "--compare", f"{path}#fa2", f"{path}#fa3")
    assert done.returncode == 0, done.stderr
    assert "0 of 10 outputs of 1 definition changed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["blob", "blob"], "A and B are the same: choose labels by PLACE#TEXT."),
        (["blob", "nowhere"], "There is no file or folder 'nowhere'."),
        (["blob#fa9", "blob"], "blob has no recording with 'fa9' in its label."),
        (["definitions", "blob"], "definitions has no recording."),
        (["blob/ground_truth/rmsnorm", "older/gqa_paged"], "No definition is in both"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_2(two, arguments, text):
    done = command(two, "record", "--compare", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [done.stderr.rstrip("\n")]
    assert text in done.stderr


def test_a_damaged_file_is_named(two):
    path = two / "older" / "rmsnorm" / f"{NORM}.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:99])
    done = command(two, "record", "--compare", "older", "blob")
    path.write_bytes(content)
    assert done.returncode == 2
    assert f"{NORM}.safetensors is damaged" in done.stderr
