"""Planted defects below compute-sanitizer, and between blocks; skipped without a GPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from generator.evaluation.conditions.condition import SANITIZERS
from tests.functional.hacks import PASSED
from tests.functional.planted import BROKEN, HOLDS
from tests.functional.planted_kernels import RACE, RIGHT_KERNEL, SANITIZED
from tests.functional.test_evaluate_conditions import judged
from tests.functional.test_evaluate_cuda import why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]
_OPTIONS = ("--device", "cuda", "--workloads", "cases", "--timeout", "200")


@cache
def lacking() -> str:
    from generator.evaluation.sanitizing import tool

    return tool.lacking("cuda")


@pytest.mark.parametrize("tool", SANITIZERS)
def test_planted_defect_is_named_by_its_tool(tool: str, tmp_path: Path) -> None:
    if lacking():
        pytest.skip(lacking())
    planted = [one for one in SANITIZED if one.under == tool]
    asked = [RIGHT_KERNEL, *planted]
    options = (*_OPTIONS, "--sanitize", tool, "--jobs", "4")
    found = judged(tmp_path / "solutions", asked, *options)
    for one in asked:
        verdict = found[one.name]
        assert verdict["verdict"] == PASSED, verdict["reason"]
        condition = verdict["conditions"][tool]
        print(f"{tool} {one.name}: {condition}")
    assert found[RIGHT_KERNEL.name]["conditions"][tool]["verdict"] == HOLDS
    for one in planted:
        condition = found[one.name]["conditions"][tool]
        assert condition["verdict"] == BROKEN, condition
        assert one.reason in condition["reason"], condition


def test_race_between_blocks_is_named_by_batch(tmp_path: Path) -> None:
    asked = [RIGHT_KERNEL, RACE]
    options = (*_OPTIONS, "--as", "batch", "--jobs", "2")
    found = judged(tmp_path / "solutions", asked, *options)
    for one in asked:
        assert found[one.name]["verdict"] == PASSED, found[one.name]["reason"]
        print(f"batch {one.name}: {found[one.name]['conditions']['batch']}")
    assert found[RIGHT_KERNEL.name]["conditions"]["batch"]["verdict"] == HOLDS
    condition = found[RACE.name]["conditions"]["batch"]
    assert condition["verdict"] == BROKEN, condition
    assert RACE.reason in condition["reason"]
