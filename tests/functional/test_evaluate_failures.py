"""`trace-dataset evaluate --keep-failures`, `--case` and `--secret`, as a person calls them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.functional.test_evaluate import evaluate, root

__all__ = ["root"]


def test_a_refused_case_is_kept_and_runs_again(root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    options = ("--dataset", root, "--workloads", "cases")
    status, out, _ = evaluate("wrong", *options, "--keep-failures", kept, "--json")
    assert status == 1
    (whole,) = json.loads(out)["solutions"]
    folders = sorted((kept / "wrong").iterdir())
    assert folders
    program, command, *words = shlex.split((folders[0] / "run-again.sh").read_text())
    assert (program, command) == ("trace-dataset", "evaluate")
    status, out, _ = evaluate(*words, "--json")
    assert status == 1
    (again,) = json.loads(out)["solutions"]
    (case,) = again["cases"]
    assert case["case"] == words[-1]
    before = next(c for c in whole["cases"] if c["case"] == case["case"])
    assert case["metrics"] == before["metrics"]


def test_a_contest_tells_no_value(root: Path) -> None:
    options = ("--dataset", root, "--workloads", "cases", "--secret")
    status, out, err = evaluate("wrong", *options, "--json")
    assert status == 1
    (found,) = json.loads(out)["solutions"]
    assert found["verdict"] == "INCORRECT_NUMERICAL"
    assert not found["reason"]
    assert not any(c["reason"] or c["case"].count(":") for c in found["cases"])
    assert "worst at" not in out + err


def test_what_hides_and_what_shows_exclude_each_other(
    root: Path, tmp_path: Path
) -> None:
    options = ("--dataset", root, "--secret", "--keep-failures", tmp_path / "kept")
    status, _, err = evaluate("wrong", *options)
    assert status == 2
    assert "--keep-failures shows what --secret hides" in err


def test_an_unknown_case_is_wrong_usage(root: Path) -> None:
    status, out, _ = evaluate("right", "--dataset", root, "--case", "nonsense")
    assert status == 2
    assert "none of its cases is named 'nonsense'" in " ".join(out.split())
