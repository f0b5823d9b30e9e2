"""`trace-dataset review --execute`: what a run shows, and what of it is believed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from generator.load import load_definitions
from generator.review.execute import _copy_recordings
from generator.review.review import Executed, Review, Verdict, with_results
from generator.review.sources import Revisions
from tests.functional.hostile import write
from tests.functional.reviewed import REFERENCE, changed, make, review, reviewed
from tests.functional.test_validate import DEFINITION, FILE

CHANGES, USAGE, GPU = 1, 2, 3
HAS_SANDBOX = find_spec("generator.sandbox") is not None
needs_sandbox = pytest.mark.skipif(not HAS_SANDBOX, reason="there is no sandbox")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with a good dataset of two definitions."""
    make(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _can_isolate(request: pytest.FixtureRequest) -> None:
    if HAS_SANDBOX and "root" in request.fixturenames:
        from generator.review.execute import why_not

        reason = why_not(trust=False)
        if reason is not None:
            pytest.skip(reason)


@pytest.mark.skipif(HAS_SANDBOX, reason="there is a sandbox")
def test_without_a_sandbox_nothing_is_executed(root: Path) -> None:
    changed(root, description="x")
    done = review(root, "--execute", "--trust")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "--execute is refused: this installation has no sandbox" in done.stderr


@needs_sandbox
def test_a_good_reference_passes_and_still_needs_a_gpu(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "A.matmul(B.T)"))
    found = reviewed(root, "--execute", status=GPU)
    executed = found["executed"]
    assert executed["passed"] > 0
    assert (executed["failed"], executed["problems"]) == ([], [])
    compared = [c for c in executed["comparisons"] if c["verdict"] == "PASSED"]
    assert compared
    assert all(0 <= max(map(max, c["where"]["grid"])) <= 1 for c in compared)


@needs_sandbox
def test_a_wrong_reference_fails(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "A @ B.T * 2"))
    found = reviewed(root, "--execute", status=CHANGES)
    executed = found["executed"]
    assert any("oracle" in name for name in executed["failed"])
    compared = [c for c in executed["comparisons"] if c["source"] == "oracle"]
    assert {c["verdict"] for c in compared} == {"FAILED"}
    assert all(sum(c["where"]["histogram"]) > 0 for c in compared)


@needs_sandbox
def test_the_page_shows_where_the_error_sits(root: Path) -> None:
    wrong = "C = A @ B.T\n    C[:, -2:] *= 2\n    return C"
    changed(root, reference=REFERENCE.replace("return A @ B.T", wrong))
    done = review(root, "--execute", "--format", "html")
    assert done.returncode == CHANGES
    worst = re.findall(r"Worst: \S+ in rows? [0-9 to]+, columns? ([67])\.", done.stdout)
    assert len(worst) >= 2


@needs_sandbox
@pytest.mark.parametrize(
    "line",
    [
        "import os; os._exit(0)",
        "print('TestGemm::test_matches_oracle PASSED'); raise SystemExit(0)",
        "open('junit.xml', 'w').write('<testsuites/>')",
        "eval('1')",
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


def _review(verdict: Verdict) -> Review:
    empty: Any = ()
    return Review(
        Revisions("", "", ""), verdict, ("why",), *[empty] * 3, empty, *[empty] * 4
    )


def _executed(**changes: Any) -> Executed:
    values = {"device": "cpu", "passed": 3, "failed": (), "skipped": 0, "problems": ()}
    return Executed(**{**values, **changes})


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_pass_on_the_cpu_makes_nothing_better(verdict: Verdict) -> None:
    if verdict is not Verdict.GPU:
        assert with_results(_review(verdict), _executed()).verdict is verdict


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize(
    "changes", [{"failed": ("a",)}, {"problems": ("a",)}, {"passed": 0}]
)
def test_a_bad_run_is_worse_than_none(verdict: Verdict, changes: Any) -> None:
    after = with_results(_review(verdict), _executed(**changes))
    assert after.verdict is Verdict.CHANGES
    assert after.reasons[0] == "why" or verdict is not Verdict.CHANGES
