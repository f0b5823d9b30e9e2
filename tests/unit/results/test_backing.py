"""What evidence makes a definition verified, and by which sources."""

from __future__ import annotations

import pytest

from generator.results.evidence import kept_runs
from generator.results.kernel_evidence import KernelEvidence
from generator.results.sources import backs_verified, is_ground_truth
from generator.results.verification import VerificationLine, agreed
from tests.results import write_evidence

NAME = "gemm_n8_k4"
PASS = {"verdict": "PASSED", "cases": 1}


@pytest.mark.parametrize(
    ("source", "ground_truth", "backs"),
    [
        ("flashinfer/fa2", True, True),
        ("flashinfer", True, True),
        ("sglang/native", True, True),
        ("recorded:flashinfer/fa2", True, True),
        # of a gemm's kernel: live it may be the CPU's, recorded it is a GPU's
        ("pytorch/cublas", True, False),
        ("pytorch", True, False),
        ("recorded:pytorch/cublas", True, True),
        ("oracle", False, False),
        ("oracle/other", False, False),
        ("metamorphic:rows-reversed", False, False),
        ("its own tests", False, False),
        ("flashinfer/fa2 ~ sglang/native", False, False),
        ("pytorch/cublas ~ recorded:pytorch/cublas", False, False),
    ],
)
def test_what_a_source_is(source, ground_truth, backs):
    assert is_ground_truth(source) is ground_truth
    assert backs_verified(source) is backs


FAIL = {"verdict": "FAILED", "cases": 1}
PART = {**PASS, "not_given": ["lse"]}


@pytest.mark.parametrize(
    ("sources", "verified"),
    [
        ({"flashinfer": PASS}, True),
        ({"recorded:pytorch/cublas": PASS, "pytorch/cublas": FAIL}, True),
        ({"pytorch/cublas": PASS}, False),
        ({"flashinfer": PASS, "sglang": FAIL}, False),
        # nobody has seen the other outputs
        ({"flashinfer/xqa": PART}, False),
        ({"flashinfer/xqa": PART, "flashinfer/fa2": PASS}, True),
        ({"flashinfer/xqa": {**PART, **FAIL}, "flashinfer/fa2": PASS}, False),
        # two kernels that agree show nothing of the reference, two that don't do
        ({"flashinfer ~ sglang": PASS}, False),
        ({"flashinfer": PASS, "flashinfer ~ sglang": PASS}, True),
        ({"flashinfer": PASS, "flashinfer ~ sglang": FAIL}, False),
        ({"flashinfer": PASS, "flashinfer ~ sglang": {"verdict": "SKIPPED"}}, True),
    ],
)
def test_what_makes_a_definition_verified(tmp_path, sources, verified):
    write_evidence(tmp_path, "a.json", *sources.items())
    assert KernelEvidence(tmp_path)(NAME, "0" * 64) is verified


def test_a_source_that_gives_some_outputs_alone_is_not_one_agreed_with(tmp_path):
    write_evidence(tmp_path, "a.json", ("flashinfer/xqa", PART), ("flashinfer", PASS))
    (run,) = kept_runs(tmp_path)
    lines = [
        VerificationLine("gemm", NAME, source, of.verdict, False, run, of, "")
        for source, of in run.definitions[NAME].sources.items()
    ]
    assert agreed(lines) == {NAME: ("flashinfer",)}
