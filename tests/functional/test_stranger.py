"""Commands in a stranger's checkout: no link is read or written through, none waits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.gen_tests_command import ROOT
from tests.functional.hostile import make
from tests.functional.reviewed import commit, git
from tests.results import H200, comparison, result, write_results

TESTS = "tests/references"
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from generator.cli import gen_tests, trace_dataset
programs = {"gen-tests": gen_tests, "trace-dataset": trace_dataset}
programs[sys.argv.pop(1)].main()
"""
READING = [
    ("gen-tests", "--all"),
    ("gen-tests", "--all", "--check"),
    ("trace-dataset", "validate"),
    ("trace-dataset", "card", "--check"),
    ("trace-dataset", "verify"),
    ("trace-dataset", "traces"),
    ("trace-dataset", "doctor"),
    ("trace-dataset", "review"),
]


def called(
    root: Path, program: str, *arguments: str, home: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command with bounded memory and time; it may print no traceback."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, program, *arguments, "--dataset", str(root)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")},
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "MemoryError" not in done.stderr
    assert done.returncode in (0, 1, 2, 3), done.stderr
    assert time.monotonic() - begun < 40
    return done


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a rendered dataset in a repository, beside a folder of the user's."""
    root = tmp_path / "dataset"
    root.mkdir()
    make(root)
    called(root, "gen-tests", "--all", home=tmp_path)
    git(root, "init", "-q", "-b", "main")
    commit(root)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/precious").write_text("precious")
    return root


def precious(root: Path) -> list[str]:
    """Return the names in the user's folder, whose file must be as it was."""
    mine = root.parent / "mine"
    assert (mine / "precious").read_text() == "precious"
    return sorted(path.name for path in mine.rglob("*"))


def link(path: str, target: str) -> Callable[[Path], None]:
    def plant(root: Path) -> None:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            place.rename(root / f"moved_{path.replace('/', '_')}")
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    return plant


def pipe(path: str) -> Callable[[Path], None]:
    def plant(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        os.mkfifo(root / path)

    return plant


PLACES = (
    f"{TESTS}/test_gemm.py",
    f"{TESTS}/SHA256SUMS",
    f"{TESTS}/conftest.py",
    f"{TESTS}/reference_support/__init__.py",
    "definitions/gemm/gemm_n8_k4.json",
    "workloads/gemm/gemm_n8_k4.jsonl",
    "traces/baseline/gemm/gemm_n8_k4.jsonl",
    "solutions/baseline/gemm/gemm_n8_k4/fast.json",
    "verification/audit.json",
    "verification/checkers.json",
    "verification/run.json",
    "blob/ground_truth/gemm/gemm_n8_k4.safetensors",
    "blob/ground_truth/unrecorded.json",
    "custom_inputs/gemm/gemm_n8_k4.py",
    "README.md",
    "LICENSE",
    "tables/definitions.jsonl",
)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("makes", ["endless", "pipe"])
def test_an_endless_file_or_a_pipe_anywhere_holds_no_command(
    root: Path, place: str, makes: str
) -> None:
    (pipe(place) if makes == "pipe" else link(place, "/dev/zero"))(root)
    for command in READING:
        called(root, *command, home=root.parent)


@pytest.mark.parametrize(
    ("place", "makes"),
    [(PLACES[0], "endless"), (PLACES[1], "endless"), (PLACES[0], "pipe")],
)
def test_gen_tests_and_a_review_are_not_held(
    root: Path, place: str, makes: str
) -> None:
    (pipe(place) if makes == "pipe" else link(place, "/dev/zero"))(root)
    for command in READING[:2]:
        done = called(root, *command, home=root.parent)
        assert done.returncode == 2
        *_, line = done.stderr.splitlines()
        assert place in line
        assert line.startswith("Error: ")
    called(root, "trace-dataset", "review", home=root.parent)
    if makes == "endless":
        commit(root)
        git(root, "checkout", "-q", "-f", "HEAD")
        revisions = ("--base", "HEAD~1", "--head", "HEAD")
        called(root, "trace-dataset", "review", *revisions, home=root.parent)


TOPS = ("definitions", "traces", "verification")


@pytest.mark.parametrize("top", TOPS)
def test_a_top_folder_that_is_a_link_is_not_listed(root: Path, top: str) -> None:
    mine = root.parent / "mine"
    (mine / "hidden_op").mkdir()
    (mine / "hidden_op" / "hidden_name.json").write_text('{"hidden_field": 1}')
    (mine / "hidden_op" / "hidden_name.jsonl").write_text('{"hidden_field": 1}')
    link(top, str(mine))(root)
    for command in (*READING[2:3], ("trace-dataset", "review")):
        done = called(root, *command, "--format", "json", home=root.parent)
        assert "hidden" not in done.stdout + done.stderr
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "link")
    done = called(
        root,
        *("trace-dataset", "review", "--base", "HEAD~1", "--head", "HEAD"),
        home=root.parent,
    )
    assert done.returncode != 0
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize("place", ["tests", TESTS])
def test_gen_tests_writes_through_no_folder(root: Path, place: str) -> None:
    link(place, str(root.parent / "mine"))(root)
    for more in ((), ("--force",), ("--output", str(root / TESTS))):
        done = called(root, "gen-tests", "--all", *more, home=root.parent)
        assert done.returncode == 2
        assert "symbolic link" in done.stderr
    assert precious(root) == ["precious"]


@pytest.mark.parametrize("name", ["test_gemm.py", "SHA256SUMS", "conftest.py"])
def test_gen_tests_writes_through_no_planted_temporary_name(
    root: Path, name: str
) -> None:
    (root / TESTS / name).unlink()
    victim = root.parent / "mine/precious"
    for pid in range(1, 40_000):
        os.symlink(victim, root / TESTS / f".{name}.{pid}.tmp")
    done = called(root, "gen-tests", "--all", "--force", home=root.parent)
    assert done.returncode == 0
    assert precious(root) == ["precious"]
    assert (root / TESTS / name).is_file()


def test_the_card_writes_through_no_folder(root: Path) -> None:
    link("tables", str(root.parent / "mine"))(root)
    done = called(root, "trace-dataset", "card", home=root.parent)
    assert done.returncode == 2
    assert "symbolic link" in done.stderr
    assert precious(root) == ["precious"]


def test_verify_writes_through_no_folder(root: Path) -> None:
    results = write_results(
        root.parent / "results.jsonl", result("oracle", comparison()), machine=H200
    )
    link("verification", str(root.parent / "mine"))(root)
    record = ("verify", "--record", str(results))
    done = called(root, "trace-dataset", *record, home=root.parent)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "symbolic link" in done.stderr
    assert precious(root) == ["precious"]
