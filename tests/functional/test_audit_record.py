"""`trace-dataset audit --record`: what is kept with the dataset, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.audits import AUDIT, digest, entry, write_audit
from tests.builders import write_dataset
from tests.functional.test_audit import audit, with_text
from tests.functional.test_validate import run

NORM, WRONG, TWICE, GONE = "rmsnorm_h128", "rmsnorm_h128_wrong", "twice_n4", "gone"
# of no known op_type, proven by a text: what it adds is below every bound
SURVIVING: dict[str, Any] = {
    "name": TWICE,
    "op_type": "twice",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}},
    "reference": "def run(x):\n    return x * 2 + 1e-12\n",
}
ORACLE = "def run(x):\n    return x + x\n"


def dataset(root: Path) -> Path:
    """Write a norm, one whose reference is wrong itself, and one with survivors."""
    wrong = with_text(("inverse_rms * weight", "inverse_rms * 2 * weight"), name=WRONG)
    text = root / "oracles" / "twice" / f"{TWICE}.py"
    text.parent.mkdir(parents=True)
    text.write_text(ORACLE)
    return write_dataset(root, [with_text(name=NORM), wrong, SURVIVING])


def kept(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / AUDIT).read_text())["definitions"]
    return found


def recorded(root: Path, *arguments: str) -> tuple[int, str, str]:
    options = ("--dataset", root, "--resume", root / "state", "--record")
    return audit(*options, *(arguments or ("--all",)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tolerance", "0.1"], "--record keeps what the tests catch as they are"),
        (["--tolerance", "0"], "drop --tolerance"),
        (["--seeds", "3"], "--seeds plants nothing"),
    ],
)
def test_other_bounds_than_the_tests_have_are_not_recorded(tmp_path, arguments, said):
    status, out, err = recorded(dataset(tmp_path), "--all", *arguments)
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]
    assert not (tmp_path / "verification").exists()


def test_limits_are_kept_in_a_file_of_their_own(tmp_path):
    root = dataset(tmp_path)
    status, _, err = recorded(root, "--definition-name", NORM, "--limits")
    assert status == 0
    assert "verification/limits.json: 1 definition recorded" in err
    told = json.loads((root / "verification/limits.json").read_text())
    # there are no workloads, whose sizes the limits are below
    assert told["definitions"][NORM]["counts"]["survived"] == 0
    assert not (root / AUDIT).exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<<<<<<< HEAD\n", f"{AUDIT}: "),
        ('{"format": 1, "definitions": {"a": {}}}', f"{AUDIT}#/definitions/a: "),
    ],
)
def test_a_broken_file_stops_it_before_the_work_and_stays(tmp_path, text, said):
    root = dataset(tmp_path)
    (root / "verification").mkdir()
    (root / AUDIT).write_text(text)
    status, out, err = recorded(root)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"Error: {said}")
    assert (root / AUDIT).read_text() == text
    assert not (root / "state").exists()


def outside(root: Path) -> None:
    (root.parent / "outside").mkdir()
    (root / "verification").symlink_to(root.parent / "outside")


def a_file(root: Path) -> None:
    (root / "verification").write_text("")


@pytest.mark.parametrize(
    ("makes", "said"),
    [(outside, "a link"), (a_file, "no folder")],
)
def test_where_it_can_t_be_written_nothing_is_begun(tmp_path, makes, said):
    root = dataset(tmp_path / "dataset")
    makes(root)
    status, out, err = recorded(root)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"Error: {AUDIT} can't be written: verification is {said}")
    assert not (root / "state").exists()
    assert list(tmp_path.glob("outside/*")) == []


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    root = dataset(tmp_path_factory.mktemp("recorded"))
    write_audit(root, {GONE: entry(), WRONG: entry(), NORM: entry()})
    return (root, *recorded(root))


def test_each_definition_has_a_line_and_others_stay(first):
    root, status, out, err = first
    assert status == 1
    found = kept(root)
    assert list(found) == [GONE, NORM, TWICE]
    assert found[GONE] == entry()
    norm, twice = found[NORM], found[TWICE]
    assert norm["sha256"] == digest(root, f"definitions/rmsnorm/{NORM}.json")
    assert norm["survivors"] == []
    row = next(line for line in out.splitlines() if line.startswith(f" {NORM} "))
    counts = norm["counts"]
    assert [int(n) for n in row.split()[2:6]] == [*counts.values()]
    assert counts["caught"] >= 35
    assert twice["counts"]["survived"] == len(twice["survivors"]) > 1
    assert {
        "name": "dropped 2:11 x * 2 + 1e-12 → (x * 2)",
        "before": "return x * 2 + 1e-12",
        "after": "return (x * 2)",
    } in twice["survivors"]
    assert norm["torch"].startswith("2.")
    assert f"{AUDIT}: 2 definitions recorded" in err


def test_what_could_not_be_judged_is_not_kept_and_that_is_said(first):
    root, _, _, err = first
    (line,) = [x for x in err.splitlines() if "not recorded" in x]
    assert line.startswith(
        f"{WRONG}: not recorded: the reference itself does not pass test_matches_oracle"
    )
    assert WRONG not in kept(root)


def test_no_path_of_this_machine_is_in_it(first):
    root, *_ = first
    assert str(root) not in (root / AUDIT).read_text()
    assert [p.name for p in (root / "verification").iterdir()] == ["audit.json"]


def test_the_same_results_leave_the_same_bytes(first):
    root, *_ = first
    text = (root / AUDIT).read_text()
    earlier = text.replace(kept(root)[NORM]["date"], "2026-01-01")
    (root / AUDIT).write_text(earlier)
    status, _, err = recorded(root, "--definition-name", NORM)
    assert status == 0
    assert "from the last audit" in err
    assert (root / AUDIT).read_text() == earlier


def test_validate_and_verify_say_what_is_on_record(first):
    root, *_ = first
    done = run("validate", "--dataset", str(root), "--notes", "--checks", "audit")
    assert done.returncode == 0
    found = [line for line in done.stdout.splitlines() if "[audit-" in line]
    assert ["[audit-missing]" in line for line in found] == [True, False]
    assert "4 planted defects of 17 survived: operator 2:11 x * 2 + 1e-12" in found[1]
    assert run("validate", "--dataset", str(root), "--strict").returncode == 1
    done = run("verify", "--dataset", str(root))
    assert f"| {TWICE} | 13 / 17 | 4 |" in done.stdout
    assert f"| {WRONG} | never audited |" in done.stdout
    assert (
        "not in the dataset: 1 definition of the evidence, gone for one" in done.stderr
    )


def test_where_nothing_can_be_judged_no_file_is_made(tmp_path):
    root = write_dataset(tmp_path, [with_text(("import torch", "1 / 0"))])
    status, _, err = recorded(root)
    assert status == 1
    assert f"{NORM}: not recorded: " in err
    assert not (root / AUDIT).exists()
