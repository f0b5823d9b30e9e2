"""What is not right is not pushed, unless it is allowed with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audits import AUDIT, audited
from tests.functional.test_validate import DEFINITION
from tests.hub import pushable
from tests.hub.pushable import (
    EVIDENCE,
    FILE,
    LINES,
    NAME,
    ONE,
    OTHER,
    RECORDING,
    Push,
    files_of,
    make,
    prove,
    put,
    render,
)
from tests.hub.server import Hub
from tests.hub.store import Repository

root, repository, push = pushable.root, pushable.repository, pushable.push
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


def broken(root: Path) -> None:
    line = json.loads((root / LINES).read_text())
    line["workload"]["axes"] = {"M": 3, "X": 1}
    put(root, LINES, json.dumps(line))


def edited(root: Path) -> None:
    with (root / "tests/references/test_gemm.py").open("a") as stream:
        stream.write("# by hand\n")


def without_tests(root: Path) -> None:
    for path in (root / "tests/references").glob("test_*.py"):
        path.unlink()


def changed(root: Path) -> None:
    """Change the definition after it was tested."""
    text = json.loads((root / FILE).read_text())
    put(root, FILE, json.dumps({**text, "reference": text["reference"] + "# other\n"}))
    render(root)


CASES = [
    (broken, "workload-axis"),
    (edited, "rendering-stale"),
    (without_tests, "rendering-stale"),
    (changed, "evidence-missing"),
    (lambda root: (root / EVIDENCE).unlink(), "evidence-missing"),
    (lambda root: prove(root, "oracle"), "evidence-missing"),
    (lambda root: prove(root, "sglang/native"), "evidence-missing"),
    (lambda root: prove(root, "pytorch", "SKIPPED"), "evidence-missing"),
    (lambda root: prove(root, "pytorch", "FAILED"), "evidence-failed"),
    (lambda root: put(root, "verification/x.json", "{"), "evidence-unreadable"),
    (lambda root: put(root, AUDIT, "{"), "evidence-unreadable"),
]


@pytest.mark.parametrize(("breaks", "rule"), CASES)
def test_what_is_not_right_is_not_pushed(
    push: Push,
    repository: Repository,
    root: Path,
    hub: Hub,
    breaks: Callable[[Path], object],
    rule: str,
) -> None:
    breaks(root)
    before = repository.refs()
    _, _, err = push(*ONE, "--yes", status=1)
    assert f"[{rule}]" in err
    assert "Nothing was sent" in err
    assert repository.refs() == before
    assert hub.asked("commit", "lfs-upload", "lfs-batch") == []
    _, out, err = push(*ONE, status=1)
    assert f"[{rule}]" in err
    assert FILE in out


@pytest.mark.parametrize(("breaks", "rule"), CASES)
def test_what_is_allowed_has_its_reason_in_the_pull_request(
    push: Push,
    repository: Repository,
    root: Path,
    breaks: Callable[[Path], object],
    rule: str,
) -> None:
    breaks(root)
    arguments = ["--allow", f"{rule}=the kernel is broken <b>upstream</b>"]
    if rule == "evidence-failed":
        arguments += ["--allow", "evidence-missing=nothing else is there"]
    push(*ONE, "--yes", *arguments)
    text = repository.description(1)
    assert f"| `{rule}` | <code>the kernel is broken &#60;b&#62;upstream" in text
    assert "<b>" not in text
    assert "- [ ]" in text


@pytest.mark.parametrize("source", ["recorded", "flashinfer/fa2", "sglang/triton"])
def test_a_kernel_or_its_recording_is_evidence(
    push: Push,
    repository: Repository,
    root: Path,
    source: str,
) -> None:
    prove(root, source)
    push(*ONE, "--yes")
    text = repository.description(1)
    assert "- [ ]" not in text
    assert "Let pass all the same" not in text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("evidence-missing", "takes a reason"),
        ("evidence-missing=  ", "takes a reason"),
        ("evidence-mising=because", "Did you mean 'evidence-missing'"),
        ("=because", "No rule is named ''"),
        ("evidence-missing=" + "x" * 501, "up to 500 characters"),
    ],
)
def test_an_allowance_is_a_rule_with_a_reason(
    push: Push,
    repository: Repository,
    value: str,
    said: str,
) -> None:
    _, out, err = push(*ONE, "--allow", value, "--yes", status=2)
    assert out == ""
    assert said in err
    assert repository.discussions() == []


def test_an_allowance_that_nothing_needs_is_told(
    push: Push, repository: Repository
) -> None:
    _, _, err = push(*ONE, "--allow", "evidence-failed=no", "--yes")
    assert "--allow evidence-failed: nothing objects" in err
    assert "evidence-failed" not in repository.description(1)


def test_another_definition_s_fault_stops_nothing(
    push: Push, repository: Repository, root: Path
) -> None:
    make(root, [NAME, OTHER])
    put(root, LINES.replace("n8", "n9"), "no JSON\n")
    push(*ONE, "--yes")
    assert len(repository.discussions()) == 1


def test_of_many_definitions_the_answers_are_counted(
    push: Push, repository: Repository, root: Path
) -> None:
    make(root, [f"gemm_n{n}_k4" for n in range(8, 15)])
    push("--all", "--together", "--yes")
    text = repository.description(1)
    assert "| one definition per pull request | 0 | 0 | 1 | 0 |  |" in text
    assert "| has workloads | 7 | 0 | 0 | 0 |  |" in text
    assert "| reference test rendered from this text | 7 | 0 | 0 | 0 |  |" in text
    first = "<code>gemm&#95;n10&#95;k4&#58; "
    captured = "workloads captured from real inference"
    assert f"| {captured} | 0 | 0 | 7 | 0 | {first}1 typed" in text
    assert f"| traces, all PASSED | 0 | 0 | 7 | 0 | {first}there is no traces/" in text
    caught = "planted defects are caught by the tests"
    assert f"| {caught} | 0 | 0 | 0 | 7 | {first}absent" in text
    assert "| <code>2026-11-21</code> | <code>NVIDIA H200</code> |" in text


def test_hostile_text_is_no_markup_and_no_marker(
    push: Push, repository: Repository, root: Path
) -> None:
    evil = "x\n<!-- trace-dataset push: all -->\n![](http://evil.example/p) @all | `"
    make(root, tags=[*DEFINITION.get("tags", []), f"model:{evil}"])
    push(*ONE, "--yes", "--allow", "tag-form=a test of the text")
    text = repository.description(1)
    assert "<!-- trace-dataset push: all -->" not in text
    assert "![](" not in text
    assert "@all" not in text
    assert text.count("<!--") == 1


def test_tests_of_a_part_do_not_replace_those_of_the_whole(
    push: Push, repository: Repository, root: Path
) -> None:
    make(root, [NAME, OTHER])
    for path, content in files_of(root, NAME, OTHER).items():
        repository.put(path, content)
    whole = repository.contents()
    for path in (FILE, LINES, RECORDING):
        (root / path.replace("n8", "n9")).unlink()
    render(root)
    _, out, err = push(*ONE, "--branch", "main", "--yes", status=2)
    assert out == ""
    assert f"The repository has definitions/gemm/{OTHER}.json" in err
    assert "[rendering-partial]" in err
    assert repository.contents() == whole
    push(*ONE, "--yes", "--allow", "rendering-partial=it goes")
    assert "| `rendering-partial` | <code>it goes</code>" in repository.description(1)
    gone = f"definitions/gemm/{OTHER}.json"
    push(*ONE, "--branch", "main", "--delete", gone, "--yes")
    assert gone not in repository.contents()


def test_survivors_are_shown_and_stop_nothing(
    push: Push, repository: Repository, root: Path
) -> None:
    audited(root, FILE, "constant 2:11 <b> → 3")
    push(*ONE, "--yes")
    text = repository.description(1)
    assert "| planted defects are caught by the tests | unknown |" in text
    assert "1 survivor&#58; constant 2&#58;11 &#60;b&#62;" in text
    sent = repository.contents("refs/pr/1")
    assert sent[AUDIT] == (root / AUDIT).read_bytes()


def test_what_the_audit_found_is_no_evidence_of_a_run(push: Push, root: Path) -> None:
    audited(root, FILE)
    push(*ONE)
    (root / EVIDENCE).unlink()
    _, _, err = push(*ONE, status=1)
    assert "[evidence-missing]" in err
    assert "[evidence-unreadable]" not in err
