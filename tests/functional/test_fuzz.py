"""Some rounds of the fuzzer, with seeds that stay: `tools/fuzz.py` runs more of them."""

from __future__ import annotations

import pytest

from tools.fuzz import one


@pytest.mark.parametrize("seed", range(1000, 1003))
def test_a_bent_dataset_breaks_no_command(seed: int) -> None:
    assert one(seed) == []
