"""Solutions under graphs, streams, soaks and strides on a GPU; skipped without one."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from tests.functional.hacks import PASSED
from tests.functional.planted import HOLDS, Planted
from tests.functional.planted_cuda import PLANTED
from tests.functional.test_evaluate_conditions import Judged, judged
from tests.functional.test_evaluate_cuda import why_not

_NEEDED = ("flashinfer", "cupy", "triton")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}"),
]


def lacks(one: Planted) -> str:
    """Return a module that a solution imports and that is not here."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    return next((n for n in missing if f"import {n}" in one.source), "")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Return what gives the verdicts on all that is planted for a condition."""

    @cache
    def found(under: str) -> dict[str, Any]:
        planted = [one for one in PLANTED if one.under == under and not lacks(one)]
        how = ("--device", "cuda", "--workloads", "cases", "--timeout", "200")
        options = (*how, "--as", under, "--soak", "6", "--jobs", "4")
        return judged(tmp_path_factory.mktemp(under), planted, *options)

    return found


@pytest.mark.parametrize("one", PLANTED, ids=[f"{p.under}: {p.name}" for p in PLANTED])
def test_condition_is_judged(one: Planted, verdicts: Judged) -> None:
    if lacks(one):
        pytest.skip(f"{lacks(one)} is not installed")
    found = verdicts(one.under)[one.name]
    assert found["verdict"] == PASSED, found["reason"]
    condition = found["conditions"][one.under]
    if one.verdict == "not holds":
        assert condition["verdict"] != HOLDS, condition
    else:
        assert condition["verdict"] == one.verdict, condition
    assert one.reason in condition["reason"], condition
