"""A test that does not return is failed, and the run goes on or ends with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.rules.load import load_definitions
from tests.builders import replaced, resized_json, write_dataset
from tests.forking import PYTEST, run_module

NAME = "rmsnorm_h128"


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """Return the tests of a reference that never returns, and of one that does."""
    text = resized_json(NAME, NAME)["reference"]
    first = "x = hidden_states.float()\n"
    hanging = replaced(text, first, f"{first}    import time\n    time.sleep(3600)\n")
    definitions = [
        {**resized_json(NAME, f"{NAME}_hangs"), "reference": hanging},
        resized_json(NAME, NAME),
    ]
    root = write_dataset(tmp_path, definitions)
    output = root / "tests/references"
    loaded = load_definitions(root)
    generate(root, loaded, output, RenderOptions(), everything=True)
    return output


def test_under_xdist_it_fails_with_its_stack_and_a_fresh_worker_goes_on(tests):
    options = ("-n1", "--test-timeout", "8", "-k", "dtype and one-row")
    done = _run(tests, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "took over 8 s (--test-timeout): it is ended" in done.stdout
    assert " in run" in done.stdout
    assert "passed" in done.stdout.splitlines()[-1]


def test_without_xdist_the_run_ends_with_one_line(tests):
    done = _run(tests, "--test-timeout", "8", "-k", "dtype and hangs")
    assert done.returncode not in (0, 1)
    last = done.stderr.splitlines()[-1]
    assert "::test_output_dtype[" in last
    assert last.endswith("the tests after it were not run: -n 1 runs them")
    assert " in run" in done.stderr


def test_one_in_time_is_left_alone(tests):
    options = ("--test-timeout", "30", "-k", "contract and not hangs")
    assert _run(tests, *options).returncode == 0


def _run(tests: Path, *options: str):
    fixed = ("--device", "cpu", "-q", "-p", "no:cacheprovider")
    every = (*fixed, *options)
    return run_module("pytest", tests, *every, imports=PYTEST, timeout=200)
