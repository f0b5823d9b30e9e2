"""Run chosen reference tests again in the sandbox: to replay a failure, or to keep its files.

What comes back was written by the process that ran the reference: it is read as a
stranger's, and nothing of it says that a definition is right.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.failure_file import FAILURE, TENSORS
from generator.execution import sandbox
from generator.problems import Failure
from generator.problems.messages import one_line, plural
from generator.rendering.plan import TestPlan
from generator.results.run_results import TestResult, parse_results
from generator.review.change import Change
from generator.review.confined_folder import lay_out, readable
from generator.review.executed import Executed
from generator.review.scratch import scratch

MOST = 40
"""Tests that are run again to keep their files."""

_FILE = "results.tar"
_RESULTS, _FAILURES = "results.jsonl", "failures"
_MOST_BYTES = 1 << 30
_KEPT = re.compile(rf"{_FAILURES}/([\w.-]+/[\w.-]+)/({FAILURE}|{TENSORS})")
# pytest, then what it left as one file: nothing else leaves the sandbox
_DRIVER = f"""
import os, subprocess, sys, tarfile
archive, *words = sys.argv[1:]
kept = ["--results", "/tmp/{_RESULTS}", "--keep-failures", "/tmp/{_FAILURES}"]
command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
subprocess.run([*command, *kept, *words])
with tarfile.open(archive, "w") as tar:
    for name in ("{_RESULTS}", "{_FAILURES}"):
        if os.path.exists("/tmp/" + name):
            tar.add("/tmp/" + name, name)
"""


@dataclass(frozen=True)
class Rerun:
    """The results of rerun tests, and the files of those that failed.

    `files` are path → content, FOLDER/failure.json and the tensors beside it.
    """

    tests: tuple[TestResult, ...]
    files: Mapping[str, bytes]


def replay_test(failure: Mapping[str, Any], dataset: Path) -> TestResult:
    """Run the test of a failure on the definition as the dataset has it now.

    Raises Failure where it can't be run.
    """
    name, device = failure["definition"], failure["device"]
    _, _, function = failure["test"].partition("::")
    with scratch("trace-dataset-replay-") as folder:
        plans = lay_out([name], dataset, folder, failure.get("tolerance"))
        planned = [(plan, c) for plan in plans for c in plan.classes]
        if not planned:
            raise Failure(
                f"{one_line(name, 200)} can't be rendered: trace-dataset validate "
                f"--definition-name {one_line(name, 200)} says why."
            )
        # the class of a definition that is rendered alone may have another number
        test = f"{planned[0][1].class_name}::{function}"
        options = []
        if failure.get("seed") is not None:
            options += ["--seed", str(failure["seed"])]
        rerun = _rerun(plans, [test], folder, device, options)
    for result in rerun.tests:
        if result.test == test:
            return result
    raise Failure(f"no test of {one_line(name, 200)} is named {one_line(test, 300)}.")


def keep_failures_of(
    changes: Sequence[Change], executed: Executed, dataset: Path, output: Path
) -> str:
    """Run the tests of a change that failed again and write their files below `output`.

    Return a sentence on how many it wrote. Raises OSError where that can't be done.
    """
    names = [change.name for change in changes if change.new is not None]
    with scratch("trace-dataset-failures-") as folder:
        plans = lay_out(names, dataset, folder)
        try:
            failed = executed.failed[:MOST]
            rerun = _rerun(plans, failed, folder, executed.device, [])
        except Failure as error:
            return str(error)
    for path, content in _readable(rerun.files, output):
        write_below(output, path, content)
    count = sum(path.endswith(FAILURE) for path in rerun.files)
    return f"Wrote {count} of {plural(len(executed.failed), 'failure')} to {output}"


def _rerun(
    plans: Sequence[TestPlan],
    tests: Sequence[str],
    folder: Path,
    device: str,
    options: Sequence[str],
) -> Rerun:
    files = {c.class_name: plan.module for plan in plans for c in plan.classes}
    tests_folder = folder / "tests" / "references"
    chosen = [
        f"{tests_folder / files[of_class]}.py::{test}"
        for test in tests
        if (of_class := test.partition("::")[0]) in files
    ]
    arguments = folder / "tests" / "arguments"
    arguments.write_text("\n".join(chosen) + "\n", "utf-8")
    is_cuda = device == "cuda"
    words = ["--device", device, "--sizes", "small,medium,large"]
    words += ["--workloads", "all", *options]
    archive = folder / _FILE
    outcome = sandbox.run_confined(
        [sys.executable, "-c", _DRIVER, _FILE, *words, f"@{arguments}"],
        read_only=readable(folder),
        results=archive,
        limits=sandbox.CUDA_LIMITS if is_cuda else sandbox.Limits(),
        devices=is_cuda,
    )
    data = sandbox.read_result(archive, _MOST_BYTES)
    if data is None:
        lines = (outcome.detail or outcome.stderr or outcome.stdout).split("\n")
        last = next(filter(None, reversed(lines)), f"it {outcome.status}")
        raise Failure(f"the tests could not be run again: {one_line(last, 300)}")
    return _unpacked(data)


def _unpacked(data: bytes) -> Rerun:
    """Return what an archive has of the files that are expected in it."""
    tests: tuple[TestResult, ...] = ()
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                opened = archive.extractfile(member) if member.isreg() else None
                if opened is None:
                    continue
                if member.name == _RESULTS:
                    # without a test it is no file of results
                    with suppress(Failure):
                        tests = tuple(parse_results(opened.read(), _RESULTS).tests)
                elif place := _KEPT.fullmatch(member.name):
                    files["/".join(place.groups())] = opened.read()
    except (tarfile.TarError, OSError, ValueError) as error:
        raise Failure(f"the results can't be read: {one_line(str(error))}") from None
    return Rerun(tests, files)


def _readable(files: Mapping[str, bytes], output: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files as they are to be written: a JSON file names where it lies."""
    for path, content in files.items():
        if not path.endswith(FAILURE):
            yield path, content
            continue
        with suppress(ValueError, RecursionError):
            value = json.loads(content)
            if isinstance(value, dict):
                place = shlex.quote(str((output / path).resolve()))
                value["next"] = f"trace-dataset replay {place}"
                yield path, f"{json.dumps(value, indent=1)}\n".encode()
