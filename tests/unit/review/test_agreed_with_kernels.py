"""Definitions of which a run on a GPU shows that a production kernel agrees with them."""

from __future__ import annotations

from typing import Any

import pytest

from generator.results import run_results
from generator.review.executed import agreed_with_kernels


def result(source: str, **record: Any) -> run_results.TestResult:
    of_output = {"source": source, "verdict": "PASSED", "output": "output", **record}
    return run_results.TestResult(
        "T::t[c]", "d", "", source, "passed", "", 0.1, (of_output,)
    )


@pytest.mark.parametrize(
    ("source", "record", "agrees"),
    [
        ("flashinfer/fa2", {}, True),
        ("pytorch/cublas", {}, True),
        ("flashinfer/fa2", {"verdict": "FAILED"}, False),
        # it gives no lse, or got other inputs: of the definition it says a part
        ("flashinfer/xqa", {"not_given": ["lse"]}, False),
        ("flashinfer", {"rewritten": ["inputs"]}, False),
        ("recorded:flashinfer/fa2", {}, False),
        ("sglang/native", {}, False),
        ("mine/fast", {}, False),
        ("oracle", {}, False),
        ("flashinfer ~ sglang", {}, False),
    ],
)
def test_a_live_kernel_with_all_outputs_agrees(
    source: str, record: dict[str, Any], agrees: bool
) -> None:
    assert agreed_with_kernels([result(source, **record)]) == ("d",) * agrees
