"""A test that takes too long is given up, and leaves nothing half done."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

import pytest

from kernel_judge.inputs.cpu_limit import cpu_limit
from kernel_judge.skipping import Skip

SLOW = """
import time

start = time.process_time()
while time.process_time() < start + 0.3:
    pass
LAST = 1
"""


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def import_and_burn(name: str) -> None:
    importlib.import_module(name)
    burn(5)


def test_what_takes_too_long_is_given_up() -> None:
    start = time.process_time()
    with pytest.raises(Skip) as skipped, cpu_limit(0.05):
        burn(5)
    assert "took over 0.05 s" in str(skipped.value.obstacle)
    assert time.process_time() < start + 1


def test_an_import_ends_before_a_test_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text(SLOW, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Skip) as skipped, cpu_limit(0.05):
        import_and_burn("slow_to_import")
    assert "took over 0.05 s" in str(skipped.value.obstacle)
    assert sys.modules.pop("slow_to_import").LAST == 1


def test_what_an_import_takes_is_not_of_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_once.py").write_text(SLOW, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with cpu_limit(0.2):
        importlib.import_module("slow_once")
    assert sys.modules.pop("slow_once").LAST == 1
