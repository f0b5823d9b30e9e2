"""No function calls one of a package above its own, as the commands run.

Imports alone can't say that: a function that is passed down, a callback, is a call up.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest

from generator.cli.gen_tests import cli as gen_tests
from generator.cli.trace_dataset import cli as trace_dataset
from tests.builders import ROOT
from tests.functional.reviewed import changed, commit, git, make

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
_LAYERS = _CONTRACTS["tool"]["importlinter"]["contracts"][0]["layers"]
# a generator runs when it is read, whoever reads it; anyone may make a Problem
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
FLOORS = {
    package.strip(): -floor
    for floor, layer in enumerate(_LAYERS)
    for package in layer.split("|")
    if package.strip() != "problems"
} | {"kernel_judge": -len(_LAYERS)}


def package_of(frame: FrameType) -> str | None:
    """Return the package of a frame's code, None where it is not ours."""
    return _package(frame.f_code.co_filename)


@cache
def _package(file: str) -> str | None:
    try:
        parts = Path(file).relative_to(ROOT).with_suffix("").parts
    except ValueError:
        return None
    name = parts[1] if parts[0] == "generator" and len(parts) > 1 else parts[0]
    return name if name in FLOORS else None


@contextmanager
def climbs() -> Iterator[set[str]]:
    """Yield the calls into a package above, filled as they happen in this thread."""
    calls: set[str] = set()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_flags & _GENERATORS:
            return
        called, caller = package_of(frame), frame.f_back
        while called and caller is not None and package_of(caller) is None:
            caller = caller.f_back
        if called is None or caller is None or code.co_name == "<module>":
            return
        calling = package_of(caller)
        if calling is not None and FLOORS[calling] < FLOORS[called]:
            calls.add(f"{calling}.{caller.f_code.co_name} {called}.{code.co_name}")

    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dataset")
    make(place)
    git(place, "checkout", "-q", "-b", "change")
    changed(place, description="A product, in other words.")
    commit(place)
    return place


@pytest.mark.parametrize(
    ("command", "line", "calls"),
    [
        (gen_tests, "--definition-name gemm_n8_k4 --output {root}/out", set()),
        # how many problems there are is known once they have been printed
        (
            trace_dataset,
            "validate --definition-name gemm_n8_k4",
            {"reports.conclude validation.conclude"},
        ),
        (trace_dataset, "review --base main", set()),
    ],
)
def test_no_call_climbs_on_the_way_of_one_definition(
    root: Path, command: click.Group, line: str, calls: set[str]
) -> None:
    words = line.format(root=root).split()
    with climbs() as seen:
        command.main([*words, "--dataset", str(root)], standalone_mode=False)
    assert seen == calls
