"""Canaries: what is planted, and that every one of a sound judge fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from generator.rendering import plan as planning
from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.review.canary import plant
from generator.review.corrupt_outputs import spoiled, wrong
from generator.rules.load import load_definitions
from kernel_judge.comparison.compare import compare
from kernel_judge.comparison.tolerance import Tolerance

ROOT = Path(__file__).parents[3]
LISTED = [
    f"Test{name}::test_{test}[{case}]"
    for name in ("GemmN256K7168", "RopeWithCosSinCacheNeoxStyleD128Rd64")
    for test in ("contract", "matches_oracle")
    for case in ("first", "second")
]


def rendered(tests: Path) -> tuple[planning.TestPlan, ...]:
    names = ["gemm_n256_k7168", "rope_with_cos_sin_cache_neox_style_d128_rd64"]
    loaded = load_definitions(ROOT, names=names)
    return generate(ROOT, loaded, tests, RenderOptions()).plans


def test_each_class_has_one_before_and_one_after(tmp_path: Path) -> None:
    plans = rendered(tmp_path)
    canaries = plant(plans, LISTED, tmp_path)
    firsts = [n for n in LISTED if n.endswith("test_matches_oracle[first]")]
    assert [*canaries.before.values()] == [*canaries.after.values()] == firsts
    files = sorted(tmp_path.glob("test_*.py"))
    arguments = canaries.arguments(files)
    assert arguments[2:4] == [str(file) for file in files]
    assert len({*arguments}) == 6
    again = plant(plans, LISTED, tmp_path)
    assert not {*again.before, *again.after} & {*canaries.before, *canaries.after}


def test_canaries_fail_and_leave_the_exit_status_to_the_tests(tmp_path: Path) -> None:
    plans = rendered(tmp_path)
    ids = ["TestGemmN256K7168::test_matches_oracle[one-row]"]
    canaries = plant(plans[:1], ids, tmp_path)
    (test,) = canaries.before.values()
    arguments = canaries.arguments([tmp_path / f"test_gemm.py::{test}"])
    done = pytest_of(tmp_path, *arguments)
    assert (done.returncode, "2 failed, 1 passed" in done.stdout) == (0, True)
    path = tmp_path / "test_gemm.py"
    text = path.read_text().replace("torch.cat(columns", "1 + torch.cat(columns")
    path.write_text(text)
    done = pytest_of(tmp_path, *arguments)
    assert (done.returncode, "3 failed" in done.stdout) == (1, True), done.stdout


def pytest_of(tests: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--device", "cpu", *arguments]
    return subprocess.run(
        command, cwd=tests, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "right",
    [
        torch.tensor([1.0, -2.0, 3.0], dtype=torch.bfloat16),
        torch.zeros(3),
        torch.tensor([float("-inf"), 2.0]),
        torch.full((4,), -0.5, dtype=torch.float16),
        torch.tensor([1.0, 300.0]).to(torch.float8_e4m3fn),
    ],
    ids=["mixed", "zeros", "infinite", "negative", "float8"],
)
def test_no_tolerance_lets_a_spoiled_output_pass(right: torch.Tensor) -> None:
    spoilt = spoiled(right)
    assert (spoilt.shape, spoilt.dtype) == (right.shape, right.dtype)
    loose = Tolerance(rtol=0.2, atol=0.1, hit_ratio=0.85)
    assert compare(right, right, loose, same_dtype=True).passed
    assert not compare(spoilt, right, loose, same_dtype=True).passed


@pytest.mark.parametrize(
    "right", [torch.tensor([3, -1, 0]), torch.tensor([True, False]), 2, 0.5, True]
)
def test_every_element_of_other_outputs_differs(right: object) -> None:
    assert bool(torch.ne(torch.as_tensor(spoiled(right)), torch.as_tensor(right)).all())


def test_a_wrong_run_calls_the_right_one() -> None:
    def run(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [a + b, a.abs().int()]

    first, second = wrong(lambda: run)()(torch.ones(2), torch.ones(2))
    assert first.tolist() == [-11.0, -11.0]
    assert second.tolist() == [2, 2]
