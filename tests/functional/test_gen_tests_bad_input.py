"""Input that nobody should have: reported in a line, the good part still rendered."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.gen_tests_command import (
    DEFINITION,
    NOTHING,
    RMSNORM,
    ROOT,
    Dataset,
    gen_tests,
)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Return a dataset of one good definition."""
    made = Dataset(tmp_path)
    made.add()
    return made


def _folder(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(200_000_000)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere.json")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda p: p.write_text('{"name": "bad_n4", '), "json-syntax"),
        (lambda p: p.write_text(""), "json-syntax"),
        (lambda p: p.write_bytes(b'{"name": "\xff"}'), "json-encoding"),
        (lambda p: p.write_text("[" * 10_000 + "]" * 10_000), "json-depth"),
        (lambda p: p.write_text('{"a":' * 10_000 + "1" + "}" * 10_000), "json-depth"),
        (_sparse, "file-too-large"),
        (_folder, "file-not-regular"),
        (_fifo, "file-not-regular"),
        (_dangling, "path-link"),
    ],
    ids=[
        "cut",
        "empty",
        "latin",
        "lists",
        "objects",
        "200 MB",
        "folder",
        "fifo",
        "link",
    ],
)
def test_a_bad_file_beside_a_good_one(
    dataset: Dataset, make: Callable[[Path], object], rule: str
) -> None:
    make(dataset.root / "definitions/twice/bad_n4.json")
    start = time.perf_counter()
    done = dataset.run("--all")
    assert time.perf_counter() - start < 5
    assert done.returncode == 1
    problem, loud, summary = done.stderr.splitlines()
    assert loud == NOTHING
    assert problem.startswith("definitions/twice/bad_n4.json")
    assert f"[{rule}]" in problem
    assert summary.startswith("1 definition in 1 test file")
    assert "class TestTwiceN4(" in dataset.text()
    assert "bad_n4" not in dataset.text()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file(dataset: Dataset) -> None:
    dataset.add(name="bad_n4").chmod(0)
    done = dataset.run("--all")
    assert done.returncode == 1
    assert "[file-unreadable]" in done.stderr
    assert "class TestTwiceN4(" in dataset.text()


def test_a_file_that_the_system_refuses_to_read(dataset: Dataset) -> None:
    dataset.add(name="bad_n4")
    refuse = """
import errno, os
whole = os.open
def refuse(path, *arguments, **keywords):
    if os.fspath(path).endswith("bad_n4.json"):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return whole(path, *arguments, **keywords)
os.open = refuse
"""
    done = dataset.run("--all", before=refuse)
    assert done.returncode == 1
    assert "bad_n4.json: error: The file can't be read: Permission denied." in (
        done.stderr
    )
    assert "class TestTwiceN4(" in dataset.text()


def test_names_that_differ_by_case(dataset: Dataset) -> None:
    dataset.add(name="TWICE_n4")
    done = dataset.run("--all")
    assert done.returncode == 1
    assert "differs only by case from that of" in done.stderr
    assert "[name-case]" in done.stderr
    names = {
        dataset.text().count(f'name = "{name}"\n') for name in ("twice_n4", "TWICE_n4")
    }
    assert names == {0, 1}, "one of the two is rendered"


def test_class_names_that_meet_are_numbered(dataset: Dataset) -> None:
    dataset.add(name="twice__n4")
    dataset.add(name="twiceN4")
    dataset.render()
    for name in ("TestTwiceN4", "TestTwiceN4_2", "TestTwiceN4_3"):
        assert re.search(rf"^class {name}\(\w+\):$", dataset.text(), re.MULTILINE)


@pytest.mark.parametrize("what", ["missing", "a file", "no folder", "empty", "bare"])
def test_no_definitions_is_one_line_and_two(tmp_path: Path, what: str) -> None:
    root = tmp_path / "dataset"
    if what == "a file":
        root.write_text("")
    elif what == "no folder":
        root.mkdir()
    elif what == "empty":
        (root / "definitions").mkdir(parents=True)
    elif what == "bare":
        (root / "definitions/twice").mkdir(parents=True)
    for arguments in (("--all",), ("--all", "--list"), ("--op-type", "thrice")):
        if what == "bare" and "--op-type" in arguments:
            continue
        done = gen_tests("--dataset", root, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("Error: The")
        assert str(root) in done.stderr
    assert not (root / "tests").exists()


def test_nothing_but_broken_definitions(dataset: Dataset) -> None:
    (dataset.root / "definitions/twice/twice_n4.json").write_text("{")
    done = dataset.run("--all")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "0 definitions in 0 test files; files: none"
    )
    assert not dataset.output.exists()


def test_hundreds_of_problems_are_lines(dataset: Dataset) -> None:
    dataset.add(name="bad_n4", **{f"field_{number}": 1 for number in range(300)})
    done = dataset.run("--all")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) > 100
    assert all(line.isprintable() for line in done.stderr.splitlines())
    assert "class TestTwiceN4(" in dataset.text()


def test_control_characters_in_paths_are_escaped(dataset: Dataset) -> None:
    (dataset.root / "definitions/twice/a\n\x1b[31mb.json").write_text("{")
    done = dataset.run("--all")
    assert done.returncode == 1
    assert r"definitions/twice/a\n\x1b[31mb.json" in done.stderr
    assert "\x1b" not in done.stderr


def test_odd_escapes_in_a_reference_are_no_talk_of_ours(dataset: Dataset) -> None:
    dataset.add(reference="X = '\\d'\n" + DEFINITION["reference"])
    dataset.add(RMSNORM, reference="X = '\\d'\n" + RMSNORM["reference"])
    done = dataset.run("--all", env={"PYTHONWARNINGS": "always"})
    assert done.returncode == 0
    loud, _ = done.stderr.splitlines()
    assert loud == NOTHING


def test_a_reference_nested_very_deep(dataset: Dataset) -> None:
    deep = "X = " + "+".join(["1"] * 600) + "\n"
    dataset.add(name="deep_n4", reference=deep + DEFINITION["reference"])
    deeper = "X = " + "-" * 50_000 + "1\n"
    dataset.add(name="deeper_n4", reference=deeper + DEFINITION["reference"])
    done = dataset.run("--all")
    assert done.returncode == 1
    assert "deeper_n4.json#/reference" in done.stderr
    assert "class TestDeepN4(" in dataset.text()
    assert "class TestTwiceN4(" in dataset.text()


def test_an_op_type_without_a_module_is_tested_and_says_why_not(
    dataset: Dataset,
) -> None:
    pytest.importorskip("torch")
    dataset.add(name="test_n4", op_type="test_twice")
    done = dataset.render()
    assert done.returncode == 0
    assert "class TwiceTests(ReferenceTests):" in dataset.text()
    assert '    unresolved = "no op module for twice"\n' in dataset.text()
    assert "every ground truth is UNRESOLVED" in " ".join(dataset.text().split())
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-v", "--device", "cpu", "."],
        check=False,
        capture_output=True,
        text=True,
        cwd=dataset.output,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST")},
    )
    assert ran.returncode == 0, ran.stdout
    # two definitions: all pass but the oracle and the GPU's comparison with the CPU
    assert "12 passed, 4 skipped" in ran.stdout
    assert "SKIPPED [2]" in ran.stdout
    assert "it compares a GPU with the CPU" in ran.stdout
    for op_type in ("twice", "test_twice"):
        assert f"oracle: UNRESOLVED: no op module for {op_type}" in ran.stdout
    assert str(ROOT) not in dataset.text()
