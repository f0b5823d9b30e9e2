"""Commands in a stranger's checkout: no link is read or written through, none waits."""

from __future__ import annotations

import json
import os
import signal
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


def test_two_writers_lose_no_line(root: Path) -> None:
    """Each adds its own definition to the record of one day and machine."""
    from generator.results.evidence import read_evidence

    for turn in range(4):
        names = [f"gemm_{turn}_{number}" for number in range(4)]
        started = []
        for name in names:
            one = result("oracle", comparison(definition=name), definition=name)
            path = write_results(root.parent / f"{name}.jsonl", one, machine=H200)
            command = (sys.executable, "-m", "generator.cli.trace_dataset", "verify")
            command += ("--record", str(path), "--dataset", str(root))
            started.append(
                subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
            )
        assert {process.wait(60) for process in started} <= {0, 1}
        (file,) = (root / "verification").glob("2026-*.json")
        (run,) = read_evidence(root, f"verification/{file.name}")
        assert set(names) <= set(run.definitions)


def test_a_second_writer_says_that_it_waits(root: Path) -> None:
    from generator.dataset.lock import locked

    command = [sys.executable, "-m", "generator.cli.gen_tests", "--all", "--force"]
    with locked(root):
        waiting = subprocess.Popen(
            [*command, "--dataset", str(root)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert "waiting for it" in waiting.stderr.readline()
        assert waiting.poll() is None
    assert waiting.wait(60) == 0
    waiting.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_ended_by_a_signal_leaves_nothing(root: Path, number: int) -> None:
    folder = root.parent / "tmp"
    folder.mkdir()
    code = (
        "import time\n"
        "from generator.review import review\n"
        "def long(*a, **k): print('begun', flush=True); time.sleep(60)\n"
        "review.make_review = long\n"
        "import generator.cli.review as command\n"
        "from generator.cli.trace_dataset import main\n"
        "main()\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code, "review", "--dataset", str(root)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "begun\n"
    assert any(folder.iterdir())
    started.send_signal(number)
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err.split()) == (130, ["Interrupted."])
    assert not any(folder.iterdir())


def test_an_empty_output_is_refused(root: Path) -> None:
    done = called(root, "gen-tests", "--all", "--output", "", home=root.parent)
    assert done.returncode == 2
    assert "the path is empty" in done.stderr
    assert not (root / "test_gemm.py").exists()


def test_a_broken_definition_keeps_its_tests(root: Path) -> None:
    good = root / "definitions/gemm/gemm_n8_k4.json"
    text = good.read_text()
    other = json.loads(text)
    other["name"] = "gemm_n9_k4"
    other["axes"]["N"]["value"] = 9
    (good.parent / "gemm_n9_k4.json").write_text(json.dumps(other))
    assert called(root, "gen-tests", "--all", home=root.parent).returncode == 0
    test = root / TESTS / "test_gemm.py"
    before = test.read_bytes()
    good.write_text("{")
    done = called(root, "gen-tests", "--all", home=root.parent)
    assert done.returncode == 1
    assert done.stdout.split() == ["kept", "test_gemm.py"]
    assert "rendered-file-kept" in done.stderr
    assert "gemm_n8_k4" in done.stderr
    assert test.read_bytes() == before
    # a stray copy makes the good one a duplicate
    good.write_text(text)
    (root / "definitions/other").mkdir()
    (root / "definitions/other/gemm_n8_k4.json").write_text(text)
    assert called(root, "gen-tests", "--all", home=root.parent).returncode == 1
    assert test.read_bytes() == before


def test_line_ends_are_named(root: Path) -> None:
    test = root / TESTS / "test_gemm.py"
    test.write_bytes(test.read_bytes().replace(b"\n", b"\r\n"))
    done = called(root, "gen-tests", "--all", "--check", home=root.parent)
    assert done.returncode == 1
    assert "CRLF" in done.stderr
    assert ".gitattributes" in done.stderr


@pytest.mark.parametrize("how", ["option", "variable"])
def test_tests_without_assertions_do_not_run(root: Path, how: str) -> None:
    flags = ["-O"] if how == "option" else []
    more = {"PYTHONOPTIMIZE": "1"} if how == "variable" else {}
    done = subprocess.run(
        [sys.executable, *flags, "-m", "pytest", "-q", str(root / TESTS)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **more},
    )
    assert done.returncode == 4, done.stdout
    assert "removes the assertions" in done.stderr
    assert "passed" not in done.stdout


def test_no_command_of_a_runner_comes_through(root: Path) -> None:
    evil = "##[set-output name=reports;]x ::error::y"
    (root / "definitions/gemm" / f"{evil}.json").write_text("{")
    for form in ("text", "json", "sarif", "junit", "markdown", "github"):
        done = called(
            root, "trace-dataset", "validate", "--format", form, home=root.parent
        )
        assert "##[" not in done.stdout + done.stderr
        assert "set-output" in done.stdout
    done = called(root / evil, "trace-dataset", "validate", home=root.parent)
    assert done.returncode == 2
    assert "##[" not in done.stderr
    done = called(root, "gen-tests", "--op-type", evil, home=root.parent)
    assert done.returncode == 2
    assert "##[" not in done.stderr
