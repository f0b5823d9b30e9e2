"""`trace-dataset evaluate --keep-failures`, `--case` and `--secret`, as a person calls them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.functional.audit_command import audit
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
    file = folders[0] / "failure.json"
    failure = json.loads(file.read_text())
    status, out, err = audit(file, "--dataset", root, "--json", command="replay")
    assert status == 1
    (again,) = json.loads(out)["solutions"]
    (case,) = again["cases"]
    assert case["case"] == failure["case"]
    assert f"was {case['verdict']}" in err
    before = next(c for c in whole["cases"] if c["case"] == case["case"])
    assert case["metrics"] == before["metrics"]
    # the mended one passes at that case
    mended = next(root.rglob("right.json"))
    status, out, _ = audit(
        *(file, "--mended", mended, "--dataset", root, "--json"), command="replay"
    )
    (again,) = json.loads(out)["solutions"]
    assert (status, again["verdict"], len(again["cases"])) == (0, "PASSED", 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("{", "it is no failure"),
        ('{"format": 1, "device": "cpu"}', "/definition"),
    ],
)
def test_what_is_no_failure_is_one_line(
    root: Path, tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "failure.json"
    if content is not None:
        path.write_text(content)
    status, _, err = audit(path, "--dataset", root, command="replay")
    assert status == 2
    assert said in err


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


def test_a_case_that_is_nearly_named_is_named(root: Path) -> None:
    (known,) = json.loads(evaluate("right", "--dataset", root, "--json")[1])[
        "solutions"
    ]
    # of numbered ones another may be as near
    names = (one["case"] for one in known["cases"])
    name = next(name for name in names if len(name) > 5 and " " not in name)
    status, out, _ = evaluate("right", "--dataset", root, "--case", f"{name[:-1]}_")
    assert status == 2
    assert f"Did you mean {name!r}?" in " ".join(out.split())


def test_a_pipe_in_place_of_either_file_is_one_line(root: Path, tmp_path: Path) -> None:
    """Nobody writes to it: who opened it would wait for ever."""
    pipe, failure = tmp_path / "pipe", tmp_path / "failure.json"
    os.mkfifo(pipe)
    asked = {"device": "cpu", "workloads": "cases", "seed": 1, "fuzz": 0}
    named = {
        "definition": "d",
        "path": "p",
        "case": "c",
        "verdict": "v",
        "solution": {},
    }
    failure.write_text(json.dumps({"format": 1, "kind": "solution", **asked, **named}))
    for words in ((pipe,), (failure, "--mended", pipe)):
        status, _, err = audit(*words, "--dataset", root, command="replay")
        assert status == 2
        assert "a device or a pipe" in err
        assert err.count("\n") == 1
