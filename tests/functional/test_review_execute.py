"""`trace-dataset review --execute`: what a run shows, and what of it is believed."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from generator.results.failure import read_failure
from generator.review.confined_folder import _copy_recordings
from generator.review.decision import Decision, Reason, Weight
from generator.review.executed import Executed
from generator.review.review import Review, with_results
from generator.review.sources import Revisions
from generator.rules.load import load_definitions
from tests.builders import ROOT, replaced
from tests.functional.hostile import LINES, write
from tests.functional.reviewed import (
    REFERENCE,
    axes,
    changed,
    commit,
    git,
    review,
    reviewed,
)
from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD

CHANGES, USAGE, GPU = 1, 2, 3


@pytest.fixture(autouse=True)
def _can_isolate(request: pytest.FixtureRequest) -> None:
    if "root" in request.fixturenames:
        from generator.review.execute import why_not

        reason = why_not()
        if reason is not None:
            pytest.skip(reason)


def test_a_good_reference_passes_and_still_needs_a_gpu(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "A.matmul(B.T)"))
    found = reviewed(root, "--execute", status=GPU)
    executed = found["executed"]
    assert executed["passed"] > 0
    assert (executed["failed"], executed["problems"]) == ([], [])
    compared = [c for c in executed["comparisons"] if c["verdict"] == "PASSED"]
    assert compared
    # the canaries', which are wrong, are not among them
    assert {c["verdict"] for c in executed["comparisons"]} == {"PASSED", "SKIPPED"}
    assert all(0 <= max(map(max, c["where"]["grid"])) <= 1 for c in compared)


def test_a_wrong_reference_fails_and_its_failures_are_kept(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept = tmp_path_factory.mktemp("kept")
    changed(root, reference=REFERENCE.replace("A @ B.T", "A @ B.T * 2"))
    options = ("--execute", "--keep-failures", kept)
    done = review(root, *options, "--format", "json")
    assert done.returncode == CHANGES, done.stderr
    executed = json.loads(done.stdout)["executed"]
    files = {read_failure(path)["test"]: path for path in kept.rglob("failure.json")}
    assert files.keys() <= {*executed["failed"]}
    for test, path in files.items():
        if "test_matches_oracle" in test:
            failure = read_failure(path)
            (output,) = failure["outputs"]
            assert "added twice" in output["likely"]
            assert str(path) in failure["next"]
            tensors = load_file(path.with_name("failure.safetensors"))
            assert {"inputs.A", "inputs.B", "actual.C", "expected.C"} <= tensors.keys()
            break
    else:
        raise AssertionError(f"no failure of the oracle's test among {files}")
    assert any("oracle" in name for name in executed["failed"])
    compared = [c for c in executed["comparisons"] if c["source"] == "oracle"]
    assert {c["verdict"] for c in compared} == {"FAILED"}
    assert all(sum(c["where"]["histogram"]) > 0 for c in compared)


def test_a_reference_that_is_wrong_at_its_workload_alone_fails(root: Path) -> None:
    body = {**WORKLOAD["workload"], "axes": {"M": 201}}
    write(root, "workloads/gemm/gemm_n8_k4.jsonl", {**WORKLOAD, "workload": body})
    wrong = "    if A.shape[0] == 201:\n        A = A * 2\n    return A @ B.T"
    changed(root, reference=REFERENCE.replace("    return A @ B.T", wrong))
    found = reviewed(root, "--execute", status=CHANGES)
    (failed,) = found["executed"]["failed"]
    assert "test_matches_oracle[workload one]" in failed


def test_the_page_shows_where_the_error_sits(root: Path) -> None:
    wrong = "C = A @ B.T\n    C[:, -2:] *= 2\n    return C"
    changed(root, reference=REFERENCE.replace("return A @ B.T", wrong))
    done = review(root, "--execute", "--format", "html")
    assert done.returncode == CHANGES
    worst = re.findall(r"Worst: \S+ in rows? [0-9 to]+, columns? ([67])\.", done.stdout)
    assert len(worst) >= 2


@pytest.mark.parametrize(
    "line",
    [
        "print('TestGemm::test_matches_oracle PASSED'); raise SystemExit(0)",
        *(
            pytest.param(line, marks=pytest.mark.slow)
            for line in (
                "import os; os._exit(0)",
                "open('results.jsonl', 'w').write('{}')",
                "eval('1')",
            )
        ),
    ],
)
def test_what_the_screen_finds_is_not_run(root: Path, line: str) -> None:
    changed(root, reference=REFERENCE.replace("    return", f"    {line}\n    return"))
    found = reviewed(root, "--execute", status=CHANGES)
    assert found["executed"]["passed"] == 0
    trusted = reviewed(root, "--execute", "--trust", status=CHANGES)
    assert trusted["executed"]["problems"] != [] or trusted["executed"]["failed"] != []


def test_recordings_without_content_and_links_are_left_out(tmp_path: Path) -> None:
    dataset, folder = tmp_path / "dataset", tmp_path / "run"
    write(dataset, FILE, DEFINITION)
    (definition,) = load_definitions(dataset).definitions
    path = Path("blob/ground_truth/gemm/gemm_n8_k4.safetensors")
    copied = folder / path
    _copy_recordings([definition], dataset, folder)
    assert not copied.exists()
    write(dataset, str(path), "")
    _copy_recordings([definition], dataset, folder)
    assert not copied.exists()
    (dataset / path).write_bytes(b"recorded")
    _copy_recordings([definition], dataset, folder)
    assert copied.read_bytes() == b"recorded"
    copied.unlink()
    (dataset / path).unlink()
    (dataset / path).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"secret")
    _copy_recordings([definition], dataset, folder)
    assert not copied.exists()


def _review(decision: Decision) -> Review:
    empty: Any = ()
    reasons = [Reason(decision, Weight.CLAIM, "x", "why")]
    grounds = () if decision is Decision.APPROVE else tuple(reasons)
    return Review(Revisions("", "", ""), grounds, *[empty] * 5)


def _executed(**changes: Any) -> Executed:
    values = {"device": "cpu", "passed": 3, "failed": (), "skipped": 0, "problems": ()}
    return Executed(**{**values, **changes})


@pytest.mark.parametrize("decision", list(Decision))
def test_a_pass_on_the_cpu_makes_nothing_better(decision: Decision) -> None:
    assert with_results(_review(decision), _executed()).decision is decision


@pytest.mark.parametrize("decision", list(Decision))
@pytest.mark.parametrize(
    "changes", [{"failed": ("a",)}, {"problems": ("a",)}, {"passed": 0}]
)
def test_a_bad_run_is_worse_than_none(decision: Decision, changes: Any) -> None:
    after = with_results(_review(decision), _executed(**changes))
    assert after.decision is Decision.CHANGES
    # a wrong value comes before whatever else was against it
    assert after.reasons[0] != "why"
    assert ("why" in after.reasons) == (decision is not Decision.APPROVE)


# what a hostile reference does before it answers rightly; it raises where it succeeds
HOSTILE = {
    "reads a secret": "assert 'SECRET_TOKEN' not in os.environ",
    "reads the users": "assert 'root' not in open('/etc/passwd').read()",
    "reads the home": f"assert not os.path.exists({str(Path.home() / '.profile')!r})",
    "reads the dataset's folder": "assert not os.path.exists(OUTSIDE)",
    "writes outside": "raises(lambda: open(OUTSIDE + '/escaped', 'w'))",
    "asks the network": "raises(lambda: socket.create_connection(('1.1.1.1', 53), 1))",
    "asks for names": "raises(lambda: socket.getaddrinfo('example.com', 80))",
    "rewrites the tests": "raises(lambda: open(sys.modules['conftest'].__file__, 'a'))",
    "fills a disk": "raises(lambda: os.posix_fallocate(os.open('/tmp/x', 66), 0, 1 << 40))",
    "asks for memory": "raises(lambda: torch.ones(1 << 40))",
    "prints a verdict": "print('\\x1b[2J== 999 passed ==\\nPASSED'); sys.stdout.flush()",
    "patches torch": "torch.equal = torch.allclose = lambda *a, **k: True",
    "patches pytest": "pytest.fail = pytest.skip = lambda *a, **k: None",
    "detects the test": "'pytest' in sys.modules or 1 / 0",
}
HEAD = """\
import os, socket, sys, time
import pytest
import torch
OUTSIDE = {outside!r}


def raises(what):
    try:
        what()
    except (OSError, ArithmeticError, RuntimeError, MemoryError, KeyError):
        return
    raise AssertionError("it got through")


def run(A, B):
    {line}
    return A @ B.T
"""


def _hostile(root: Path, lines: dict[str, str]) -> None:
    for n, line in enumerate(lines.values(), start=20):
        name = f"gemm_n{n}_k4"
        source = HEAD.format(outside=str(root), line=line)
        fields = {"name": name, "axes": axes(n), "reference": source}
        write(root, FILE.replace("gemm_n8_k4", name), {**DEFINITION, **fields})
        lines_path = LINES.replace("gemm_n8_k4", name)
        write(root, lines_path, json.dumps({**WORKLOAD, "definition": name}) + "\n")


def test_hostile_references_get_nothing_and_improve_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    _hostile(root, HOSTILE)
    blocked = reviewed(root, "--execute", status=CHANGES)
    assert blocked["executed"]["passed"] == 0
    found = reviewed(root, "--execute", "--trust", status=CHANGES)
    executed = found["executed"]
    # the screen's findings keep a pass from being believed
    assert any("static screen" in problem for problem in executed["problems"])
    assert not any("killed" in problem for problem in executed["problems"])
    assert executed["failed"] == []  # nothing got through
    assert not (root / "escaped").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("os._exit(0)", "not reported"),
        ("time.sleep(600)", "wall clock"),
        ("os.fork() or time.sleep(600)", ""),
        ("x = [bytearray(1 << 28) for _ in iter(int, 1)]", ""),
    ],
)
def test_what_ends_a_run_is_named(
    root: Path, line: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from generator.execution import sandbox
    from generator.review.execute import execute_changes
    from generator.review.review import make_review
    from generator.review.revisions import open_sources

    few = partial(sandbox.Limits, wall_seconds=15.0, memory_bytes=2 << 30)
    monkeypatch.setattr(sandbox, "Limits", few)
    _hostile(root, {"one": line})
    with open_sources(root, None, None) as sources:
        made = make_review(sources, 1)
        executed = execute_changes(made.changes, sources.head, "cpu", trust=True)
    assert executed is not None
    assert said in "; ".join(executed.problems)
    assert with_results(made, executed).decision is Decision.CHANGES


def test_a_commits_recording_is_replayed_where_its_definition_changed(
    tmp_path: Path,
) -> None:
    name = "rmsnorm/rmsnorm_h512"
    for path in (
        f"definitions/{name}.json",
        f"workloads/{name}.jsonl",
        f"blob/ground_truth/{name}.safetensors",
        "blob/ground_truth/rmsnorm/rmsnorm_h128.safetensors",
    ):
        write(tmp_path, path, (ROOT / path).read_bytes())
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    definition = json.loads((tmp_path / f"definitions/{name}.json").read_text())
    text = replaced(definition["reference"], "EPS = 1e-06", "EPS = 1e-05")
    write(tmp_path, f"definitions/{name}.json", {**definition, "reference": text})
    commit(tmp_path)
    found = reviewed(tmp_path, "--head", "HEAD", "--execute", status=CHANGES)
    failed = {name.partition("[")[0] for name in found["executed"]["failed"]}
    assert failed == {
        "TestRmsnormH512::test_matches_oracle",
        "TestRmsnormH512::test_matches_recorded",
    }
