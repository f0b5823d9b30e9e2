"""`trace-dataset review` as a black box: what changed, whom to blame, the verdict."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.functional.hostile import LINES, write
from tests.functional.reviewed import (
    REFERENCE,
    answers,
    axes,
    changed,
    commit,
    differences,
    evidence,
    git,
    make,
    review,
    reviewed,
)
from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD

APPROVE, CHANGES, GPU = 0, 1, 3
PERSON = GPU
FORMATS = ["text", "markdown", "json", "junit", "sarif", "github", "html"]
ON_GPU = "agreed with a production kernel on a GPU"


def test_nothing_changed_is_nothing_to_review(root: Path) -> None:
    found = reviewed(root, "--base", "HEAD", status=APPROVE)
    assert (found["changes"], found["checklist"], found["reasons"]) == ([], [], [])
    assert "Nothing changed" in (
        review(root, "--base", "HEAD", "--format", "markdown").stdout
    )


def test_a_good_new_definition_needs_a_gpu_and_says_what_to_run(root: Path) -> None:
    write(
        root,
        FILE.replace("n8", "n7"),
        {**DEFINITION, "name": "gemm_n7_k4", "axes": axes(7)},
    )
    line = {**WORKLOAD, "definition": "gemm_n7_k4"}
    write(root, LINES.replace("n8", "n7"), json.dumps(line) + "\n")
    found = reviewed(root, status=GPU)
    (change,) = found["changes"]
    assert (change["kind"], change["name"]) == ("new", "gemm_n7_k4")
    assert change["workloads"]["added"] == 1
    assert [p for p in found["problems"]["new"] if p["severity"] == "error"] == []
    assert answers(found, "gemm_n7_k4")[ON_GPU] == "unknown"
    assert any("--device cuda" in line for line in found["to_run"])


def test_formatting_alone_keeps_the_evidence(root: Path) -> None:
    evidence(root)
    commit(root)
    text = "# sum\ndef run(A, B):\n    '''Return it.'''\n    return (A   @ B.T)\n"
    changed(root, reference=text)
    found = reviewed(root, status=APPROVE)
    assert differences(found, "reference") == [
        "only comments, docstrings or layout of the reference changed"
    ]
    assert not found["changes"][0]["computes"]


def test_layout_of_the_file_alone(root: Path) -> None:
    evidence(root)
    commit(root)
    (root / FILE).write_text(json.dumps(DEFINITION, indent=4))
    found = reviewed(root, status=APPROVE)
    assert found["changes"][0]["differences"] == []
    assert "only the layout" in review(root).stdout


def test_a_bad_change_is_blamed_and_old_problems_are_not(root: Path) -> None:
    write(root, FILE.replace("n8", "n9"), {**DEFINITION, "name": "gemm_n9_k4"})
    commit(root)
    changed(root, axes=axes(16))
    found = reviewed(root, status=CHANGES)
    rules = {p["rule"] for p in found["problems"]["new"]}
    assert "name-token" in rules
    assert {p["file"] for p in found["problems"]["new"]} == {FILE}
    assert differences(found, "axes") == ["'N': 8 becomes 16"]
    commit(root)
    changed(root, axes=axes(16), description="Another one.")
    found = reviewed(root)
    assert found["problems"]["known"] >= 1
    assert found["problems"]["new"] == []


@pytest.mark.parametrize("revisions", [(), ("--base", "HEAD~1", "--head", "HEAD")])
def test_annotations_have_the_line_of_what_is_wrong(
    root: Path, revisions: tuple[str, ...]
) -> None:
    changed(root, reference=3)
    if revisions:
        commit(root)
    text = (root / FILE).read_text()
    line = text[: text.index('"reference"')].count("\n") + 1
    said = review(root, "--format", "github", *revisions).stdout
    assert f"::error file={FILE},line={line}," in said


@pytest.mark.parametrize("revisions", [(), ("--base", "HEAD~1", "--head", "HEAD")])
def test_what_is_new_is_compared_with_what_is_untouched(
    root: Path, revisions: tuple[str, ...]
) -> None:
    file = FILE.replace("k4", "k4_b")
    write(root, file, {**DEFINITION, "name": "gemm_n8_k4_b"})
    if revisions:
        commit(root)
    new = reviewed(root, *revisions)["problems"]["new"]
    assert ("cross-duplicate", file) in {(p["rule"], p["file"]) for p in new}
    assert {p["file"] for p in new} == {file}


def test_what_is_mended_is_said(root: Path) -> None:
    changed(root, axes=axes(16))
    commit(root)
    changed(root)
    found = reviewed(root)
    assert "name-token" in [p["rule"] for p in found["problems"]["mended"]]
    assert [p for p in found["problems"]["new"] if p["severity"] == "error"] == []


def test_interface_order_and_dtypes_and_their_tolerances(root: Path) -> None:
    inputs = dict(reversed(DEFINITION["inputs"].items()))
    outputs = {"C": {"shape": ["M", "N"], "dtype": "float32"}}
    reference = REFERENCE.replace("A, B", "B, A")
    changed(root, inputs=inputs, outputs=outputs, reference=reference)
    found = reviewed(root)
    assert differences(found, "inputs") == [
        "the order changed, which callers rely on: now B, A"
    ]
    assert differences(found, "outputs") == ["'C': float16[M, N] becomes float32[M, N]"]
    (effect,) = differences(found, "tolerances")
    assert "the default of float32" in effect
    assert "the default of float16" in effect


def test_constants_functions_tags_and_constraints(root: Path) -> None:
    before = f"EPS = 1e-5\n\n\ndef helper(x):\n    return x + EPS\n\n\n{REFERENCE}"
    changed(root, reference=before, tags=["model:a"])
    commit(root)
    after = before.replace("1e-5", "1e-6").replace("x + EPS", "x - EPS")
    changed(root, reference=after, tags=["model:b"], constraints=["M >= 1"])
    found = reviewed(root)
    assert differences(found, "reference") == [
        "'EPS = 1e-05' becomes 'EPS = 1e-06'",
        "'return x + EPS' becomes 'return x - EPS'",
    ]
    assert differences(found, "tags") == ["'model:a' is gone", "'model:b' is new"]
    assert differences(found, "constraints") == ["'M >= 1' is new"]


def test_a_renamed_definition_is_not_a_new_one(root: Path) -> None:
    new = "gemm_n8_k4_again"
    (root / FILE).unlink()
    (root / LINES).unlink()
    write(root, f"definitions/gemm/{new}.json", {**DEFINITION, "name": new})
    line = {**WORKLOAD, "definition": new}
    write(root, f"workloads/gemm/{new}.jsonl", json.dumps(line) + "\n")
    found = reviewed(root)
    (change,) = found["changes"]
    assert (change["kind"], change["old_path"]) == ("renamed", FILE)
    assert not change["computes"]
    assert change["workloads"]["changed"] == 0


def test_a_deleted_definition_that_workloads_still_use(root: Path) -> None:
    (root / FILE).unlink()
    found = reviewed(root, status=CHANGES)
    assert [c["kind"] for c in found["changes"]] == ["removed"]
    assert "workload-orphan" in [p["rule"] for p in found["problems"]["new"]]


def test_workloads_alone(root: Path) -> None:
    one: dict[str, Any] = WORKLOAD["workload"]
    two = {**one, "uuid": "two", "axes": {"M": 70}}
    lines = [WORKLOAD, {**WORKLOAD, "workload": two}]
    write(root, LINES, "".join(json.dumps(line) + "\n" for line in lines))
    found = reviewed(root)
    (change,) = found["changes"]
    assert change["kind"] == "attached"
    assert change["workloads"] == {
        "base": 1,
        "head": 2,
        "added": 1,
        "removed": 0,
        "changed": 0,
        "ranges": {"M": [3, 70]},
    }


def test_two_new_definitions_are_one_too_many(root: Path) -> None:
    for n in (6, 7):
        name = f"gemm_n{n}_k4"
        write(
            root,
            f"definitions/gemm/{name}.json",
            {**DEFINITION, "name": name, "axes": axes(n)},
        )
    assert answers(reviewed(root))["one definition per pull request"] == "advice"
    git(root, "stash", "-u", "-q")
    write(root, "review.toml", '[points]\nrequired = ["one-definition"]\n')
    commit(root)
    git(root, "stash", "pop", "-q")
    found = reviewed(root, status=CHANGES)
    assert answers(found)["one definition per pull request"] == "no"


def test_files_outside_of_the_dataset_are_named(root: Path) -> None:
    write(root, "setup.py", "print('hello')")
    found = reviewed(root, status=PERSON)
    assert found["verdict"] == "needs a person"
    assert [(c["class"], c["files"]) for c in found["classes"]] == [
        ("installation", ["setup.py"])
    ]


def test_revisions_and_the_working_tree_are_the_same_review(root: Path) -> None:
    changed(root, axes=axes(16))
    loose = reviewed(root, status=CHANGES)
    tip = commit(root)
    kept = reviewed(root, "--base", "HEAD~1", "--head", "HEAD", status=CHANGES)
    assert kept["head"] == tip
    assert loose["head"] is None
    for part in ("changes", "checklist", "problems", "reasons", "base"):
        assert kept[part] == loose[part]
    assert reviewed(root)["base_is"] == "the commit before head"


def diverged(root: Path, path: str, text: str) -> None:
    """Describe a definition anew on the branch `mine`, and write a file on main after it."""
    git(root, "checkout", "-q", "-b", "mine")
    changed(root, description="x")
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, path, text)
    commit(root)
    git(root, "checkout", "-q", "mine")


def test_a_branch_is_held_against_where_it_left(root: Path) -> None:
    left = git(root, "rev-parse", "HEAD")
    diverged(root, "README.md", "later")
    found = reviewed(root)
    assert (found["base"], found["base_is"]) == (left, "where head left main")
    assert [c["class"] for c in found["classes"]] == ["definitions"]


def test_what_the_branch_changed_since_has_to_be_merged_first(root: Path) -> None:
    diverged(root, "review.toml", "[points]\nrequired = ['audit']\n")
    for arguments in ((), ("--base", "main", "--head", "mine")):
        found = reviewed(root, *arguments, status=CHANGES)
        (behind,) = [g for g in found["grounds"] if g["point"] == "review-behind"]
        assert behind["files"] == ["review.toml"]
    git(root, "merge", "-q", "main", "-m", "merged")
    points = {ground["point"] for ground in reviewed(root)["grounds"]}
    assert "review-behind" not in points
    assert "audit" in points


def test_without_a_default_branch_a_base_is_named(root: Path) -> None:
    git(root, "branch", "-m", "main", "trunk")
    changed(root, axes=axes(16))
    commit(root)
    done = review(root)
    assert (done.returncode, done.stdout) == (2, "")
    assert "name a --base" in done.stderr
    assert reviewed(root, "--base", "HEAD~1", status=CHANGES)


def test_a_base_that_is_newer_than_head(root: Path) -> None:
    old = git(root, "rev-parse", "HEAD")
    changed(root, axes=axes(16))
    commit(root)
    found = reviewed(root, "--base", "main", "--head", old, status=APPROVE)
    assert found["changes"] == []
    assert "1 commit further by now" in found["base_is"]


def test_the_first_commit_is_held_against_nothing(root: Path) -> None:
    found = reviewed(root, "--head", "HEAD")
    assert found["base"] == ""
    assert {c["kind"] for c in found["changes"]} == {"new"}


def test_a_dataset_below_the_top(tmp_path: Path) -> None:
    root = tmp_path / "data set"
    root.mkdir()
    make(root)
    git(root, "rev-parse", "HEAD")
    (root / ".git").rename(tmp_path / ".git")
    commit(tmp_path)
    changed(root, axes=axes(16))
    found = reviewed(root, status=CHANGES)
    assert [c["path"] for c in found["changes"]] == [FILE]
    assert reviewed(root, "--base", "HEAD", "--head", "HEAD", status=APPROVE)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_the_same_by_its_status(root: Path, form: str) -> None:
    changed(root, axes=axes(16))
    done = review(root, "--format", form)
    assert (done.returncode, done.stderr) == (CHANGES, "")
    assert "name-token" in done.stdout
    if form == "junit":
        suite = ET.fromstring(done.stdout)
        assert suite.findall(".//testcase[@name='verdict']/failure")


def test_out_has_every_format_and_the_tests(root: Path, tmp_path: Path) -> None:
    changed(root, description="x")
    out = tmp_path / "out"
    done = review(root, "--output", str(out))
    assert done.returncode == GPU
    names = {path.name for path in out.iterdir()}
    assert names >= {"review.md", "review.json", "review.xml", "review.sarif", "tests"}
    assert (out / "review.html").read_text().startswith("<!DOCTYPE html>")
    assert "gemm_n8_k4" in (out / "tests/references/test_gemm.py").read_text()


def test_the_head_of_the_markdown(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "A @ B.T * 2"))
    lines = review(root, "--base", "HEAD", "--format", "markdown").stdout.splitlines()
    assert lines[0] == "### Dataset review: ⏳ needs a GPU"
    assert lines[4] == (
        "0 new errors, 0 new warnings, 0 new notes; 0 mended, "
        + lines[4].partition("mended, ")[2]
    )
    folded = [line for line in lines if "<summary>" in line]
    assert folded[:3] == [
        "<details open><summary>What to run on a GPU (4)</summary>",
        "<details open><summary>Changed files (1)</summary>",
        "<details open><summary>Checklist (14)</summary>",
    ]
    row = (
        "- reference: <code>&#39;return A &#64; B&#46;T&#39; becomes "
        "&#39;return A &#64; B&#46;T &#42; 2&#39;</code>"
    )
    assert row in lines


def test_a_large_change_stays_a_comment(root: Path) -> None:
    for n in range(100, 260):
        name = f"gemm_n{n}_k{n}"
        bad = {**DEFINITION, "name": name, "axes": axes(n), "tags": ["<b>" * 30] * 3}
        write(root, f"definitions/gemm/{name}.json", bad)
    text = review(root, "--format", "markdown").stdout
    assert len(text) <= 60_000
    assert "more: run `trace-dataset review --format text` for all." in text
    assert text.count("<details") == text.count("</details>")
    assert "<b>" not in text


def test_review_imports_no_torch(root: Path) -> None:
    changed(root, axes=axes(16))
    code = (
        "import sys\nfrom generator.cli.trace_dataset import cli\n"
        "cli.main(sys.argv[1:], standalone_mode=False)\n"
        "assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-c", code, "review", "--dataset", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_traces_in_the_second_place_were_there_before(root: Path) -> None:
    write(root, "traces/gemm/gemm_n9_k4.jsonl", "")
    commit(root)
    git(root, "checkout", "-q", "-b", "change")
    changed(root, description="other")
    assert reviewed(root, "--base", "main")["problems"]["new"] == []
