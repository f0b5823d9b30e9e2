"""The options of a run of reference tests."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import pytest

SIZES = ("small", "medium", "large")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of reference tests; --strict is pytest's own, see below."""
    group = parser.getgroup("reference tests")
    group.addoption(
        "--device",
        help="cpu, cuda or cuda:N (default: cuda where usable, else cpu)",
    )
    group.addoption(
        "--sizes",
        help="comma-separated case sizes out of small, medium, large (default: as "
        "rendered); large cases are marked slow",
    )
    group.addoption(
        "--workloads",
        choices=("none", "fit", "all"),
        default="fit",
        help="compare at the dataset's workloads too: at none, at those that fit (on a "
        "CPU those of 64 MiB and --workload-seconds at most, on a GPU all that its "
        "memory holds), or at all (default: fit)",
    )
    group.addoption(
        "--workload-seconds",
        type=_seconds,
        default=1.0,
        metavar="S",
        help="CPU seconds after which --workloads fit skips a workload (default: 1)",
    )
    group.addoption(
        "--definition",
        action="append",
        default=[],
        metavar="NAME",
        help="run the tests of this definition only; may be repeated",
    )
    group.addoption(
        "--each-reference",
        action="store_true",
        help="run of the definitions that share a reference's text the smallest one",
    )
    group.addoption(
        "--recordings",
        type=_folder,
        metavar="DIR",
        help="folder of recorded outputs (default: the dataset's blob/ground_truth)",
    )
    group.addoption(
        "--test-timeout",
        type=_seconds,
        metavar="S",
        help="fail a test after so many seconds, and replace its worker (default: 20 "
        "times as long as it took before, at least 120)",
    )
    group.addoption(
        "--seed",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="make other inputs than every run has: those of this seed (recordings, "
        "which are of the usual inputs, are not replayed then); may be repeated",
    )
    group.addoption(
        "--error-maps",
        action="store_true",
        help="record in the results where the error sits also of comparisons that "
        "pass (of those that fail it is recorded anyway)",
    )
    group.addoption(
        "--figures",
        action="store_true",
        help="print the figures and the five worst elements of each comparison, also of "
        "those that pass",
    )
    group.addoption(
        "--keep-failures",
        metavar="DIR",
        help="write of each test that fails what is known and its values there, for "
        "trace-dataset replay",
    )
    group.addoption(
        "--results",
        metavar="FILE",
        help="write what each test compared, as JSON Lines, for trace-dataset verify",
    )


def _seconds(text: str) -> float:
    """Return a number of seconds. Raises ArgumentTypeError, which pytest prints."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return number


def _folder(text: str) -> str:
    """Return a folder that is there: without one every replay would be skipped."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return text
