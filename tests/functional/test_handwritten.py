"""Tests that a person wrote run beside rendered ones, with the names that they import."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from generator.running.handwritten import assert_close
from tests.builders import resized_json, write_dataset

NORM = "rmsnorm_h128"
HAND_WRITTEN = """
import torch
from conftest import (assert_close, check_hit_ratio, compile_reference,
                      compute_error_metrics, load_definition)

def test_by_hand(device):
    definition = load_definition("rmsnorm_h128")
    run = compile_reference(definition["reference"])
    x = torch.randn(3, 128, dtype=torch.bfloat16, device=device)
    weight = torch.ones(128, dtype=torch.bfloat16, device=device)
    wide = x.double()
    wanted = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    output = run(x, weight)
    absolute, relative = compute_error_metrics(output, wanted)
    assert absolute.shape == relative.shape == x.shape
    assert check_hit_ratio(output, wanted, 8e-3, 1e-2)
    assert not check_hit_ratio(output * float("nan"), wanted, 8e-3, 1e-2)
    assert_close((output.double(),), (wanted,), rtol=1e-2, atol=8e-3)
"""


def rendered(tmp_path):
    root = write_dataset(tmp_path, [resized_json(NORM, NORM)])
    tests = root / "tests" / "references"
    command = ["-m", "generator.cli.gen_tests", "--all", "--dataset", str(root)]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    return tests


def pytest_in(tests, *options):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, check=False, cwd=tests, capture_output=True, text=True
    )


def test_hand_written_tests_run_beside_rendered_ones(tmp_path):
    tests = rendered(tmp_path)
    (tests / "test_by_hand.py").write_text(HAND_WRITTEN)
    done = pytest_in(tests, "-s", "test_by_hand.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "output: of 384 elements" in done.stdout
    assert "hit ratio 100.00%, at least 85.00%" in done.stdout


def test_figures_are_printed_where_a_comparison_passes(tmp_path):
    options = ("--figures", "--workloads", "none", "-k", "matches_oracle and one")
    done = pytest_in(rendered(tmp_path), "test_rmsnorm.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{NORM} 'output' against oracle, one-row: PASSED" in done.stdout
    for word in ("mean ", "MSE ", "cosine ", "difference "):
        assert word in done.stdout
    assert done.stdout.count(": actual ") == 5


def test_close_asks_for_every_value():
    one = torch.ones(2)
    assert_close({"x": [one, one]}, {"x": (one, one)})
    for wrong in ({"x": one}, {"y": [one, one]}, {"x": [one]}):
        with pytest.raises(AssertionError):
            assert_close({"x": [one, one]}, wrong)
    with pytest.raises(AssertionError):
        assert_close(one, one * 1.01)
