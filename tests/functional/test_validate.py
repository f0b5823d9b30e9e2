"""`trace-dataset validate` as a black box: status, stdout, stderr, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import generator
from tests.forking import run_module

ROOT = Path(generator.__file__).parent.parent
COMMAND = [sys.executable, "-m", "generator.cli.trace_dataset"]
DEFINITION: dict[str, Any] = {
    "name": "gemm_n8_k4",
    "op_type": "gemm",
    "axes": {
        "M": {"type": "var"},
        "N": {"type": "const", "value": 8},
        "K": {"type": "const", "value": 4},
    },
    "inputs": {
        "A": {"shape": ["M", "K"], "dtype": "float16"},
        "B": {"shape": ["N", "K"], "dtype": "float16"},
    },
    "outputs": {"C": {"shape": ["M", "N"], "dtype": "float16"}},
    "reference": "def run(A, B):\n    return A @ B.T\n",
}
WORKLOAD = {
    "definition": "gemm_n8_k4",
    "workload": {
        "uuid": "one",
        "axes": {"M": 3},
        "inputs": {"A": {"type": "random"}, "B": {"type": "random"}},
    },
}
FILE = "definitions/gemm/gemm_n8_k4.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a valid dataset of one definition with one workload."""
    for path, value in (
        (FILE, DEFINITION),
        ("workloads/gemm/gemm_n8_k4.jsonl", WORKLOAD),
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(json.dumps(value))
    return tmp_path


def run(
    *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run trace-dataset; nothing it does may print a traceback."""
    done = run_module("generator.cli.trace_dataset", *arguments, env=env)
    assert "Traceback" not in done.stderr
    return done


def validate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("validate", "--dataset", str(root), *arguments)


def test_a_good_dataset(root: Path) -> None:
    done = validate(root)
    assert done.returncode == 0
    assert done.stdout == "1 definition, 1 workload: 0 errors, 0 warnings\n"
    assert done.stderr == ""


def test_the_current_directory_is_the_default(root: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "validate"],
        check=False,
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_problems_stand_under_their_file(root: Path) -> None:
    broken = {**DEFINITION, "referense": 1, "tags": "x"}
    (root / FILE).write_text(json.dumps(broken))
    done = validate(root)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        FILE,
        "  error: /referense: The field 'referense' is unknown. [schema-unknown-field]",
        "    fix: Remove the field or correct its name.",
        "  error: /tags: 'tags' must be an array, is 'x'. [schema-type]",
        "    fix: Write a value of the right type.",
        "1 definition, 1 workload: 2 errors, 0 warnings",
    ]


def test_json_has_the_same_problems_and_counts(root: Path) -> None:
    (root / FILE).write_text('{"name": "gemm_n8_k4"')
    done = validate(root, "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["problems"] == [
        {
            "rule": "json-syntax",
            "severity": "error",
            "file": FILE,
            "pointer": "",
            "message": "The text ends before the JSON value does.",
            "fix": "Correct the text at that place.",
            "line": 1,
        }
    ]
    assert found["counts"] == {
        "unproven": {},
        "definitions": 1,
        "workloads": 1,
        "errors": 1,
        "warnings": 0,
        "notes": 0,
    }


def test_warnings_fail_only_under_strict(root: Path) -> None:
    (root / "workloads/gemm/gemm_n8_k4.jsonl").unlink()
    assert validate(root).returncode == 0
    done = validate(root, "--strict")
    assert done.returncode == 1
    assert done.stdout.endswith("1 definition, 0 workloads: 0 errors, 1 warning\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--op-type", "gem"],
            "No op_type of the dataset is named 'gem'. Did you mean 'gemm'?",
        ),
        (
            ["--definition-name", "gemm_n8_k5"],
            "No definition is named 'gemm_n8_k5'. Did you mean 'gemm_n8_k4'?",
        ),
        (["--definition-name", "a\nb"], r"No definition is named 'a\nb'."),
        (["--format", "xml"], "'xml' is not one of"),
        (["--bogus"], "--bogus"),
    ],
)
def test_wrong_usage_is_two(root: Path, arguments: list[str], said: str) -> None:
    done = validate(root, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_selection_by_repeated_options(root: Path) -> None:
    for size, name in enumerate(("one", "two", "three")):
        axes = {**DEFINITION["axes"], "N": {"type": "const", "value": size}}
        text = json.dumps({**DEFINITION, "name": name, "axes": axes})
        (root / f"definitions/gemm/{name}.json").write_text(text)
    done = validate(root, "--definition-name", "one", "--definition-name", "two")
    assert done.stdout.endswith("2 definitions, 0 workloads: 0 errors, 2 warnings\n")
    done = validate(root, "--op-type", "gemm")
    assert done.stdout.endswith("4 definitions, 1 workload: 0 errors, 3 warnings\n")


@pytest.mark.parametrize("break_it", ["missing", "no definitions", "empty", "a file"])
def test_no_dataset_is_one_line_and_two(root: Path, break_it: str) -> None:
    (root / FILE).unlink()
    target = root
    if break_it == "missing":
        target = root / "nowhere\n"
    elif break_it == "a file":
        target = root / "file"
        target.write_text("")
    elif break_it == "no definitions":
        (root / "definitions/gemm").rmdir()
        (root / "definitions").rmdir()
    done = validate(target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: There ") or (
        done.stderr.startswith("Error: The folder ")
    )
    assert len(done.stderr.splitlines()) == 1


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(200_000_000)


@pytest.mark.parametrize(
    ("break_it", "rule"),
    [
        (lambda p: p.write_text('{"name": "x", '), "json-syntax"),
        (lambda p: p.write_text("[" * 10_000 + "]" * 10_000), "json-depth"),
        (lambda p: p.write_bytes(b'"\xff"'), "json-encoding"),
        (lambda p: p.write_text("NaN"), "json-nan"),
        (_a_folder, "file-not-regular"),
        (_sparse, "file-too-large"),
    ],
)
def test_a_bad_file(root: Path, break_it: Any, rule: str) -> None:
    break_it(root / FILE)
    start = time.perf_counter()
    done = validate(root)
    # what is quadratic takes longer than any busy machine
    assert time.perf_counter() - start < 60
    assert done.returncode == 1
    assert f"[{rule}]" in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file(root: Path) -> None:
    (root / FILE).chmod(0)
    done = validate(root)
    assert done.returncode == 1
    assert "[file-unreadable]" in done.stdout


def test_two_names_that_differ_by_case(root: Path) -> None:
    text = json.dumps({**DEFINITION, "name": "GEMM_n8_k4"})
    (root / "definitions/gemm/GEMM_n8_k4.json").write_text(text)
    done = validate(root)
    assert done.returncode == 1
    assert "differs only by case from that of" in done.stdout


def test_control_characters_are_escaped(root: Path) -> None:
    (root / "definitions/gemm/a\n\x1b[31mb.json").write_text("{")
    (root / os.fsdecode(b"definitions/gemm/\xff.json")).write_text("{")
    done = validate(root)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert r"definitions/gemm/a\n\x1b[31mb.json" in lines
    assert r"definitions/gemm/\udcff.json" in lines
    assert all(line.isprintable() for line in lines)
    assert json.loads(validate(root, "--format", "json").stdout)["problems"]


def test_a_terminal_without_unicode(root: Path) -> None:
    (root / "definitions/gemm/é.json").write_text("{")
    done = run(
        "validate", "--dataset", str(root), env={"PYTHONIOENCODING": "ascii:strict"}
    )
    assert done.returncode == 1
    assert r"definitions/gemm/\xe9.json" in done.stdout
    # the lines of tables are no thousand escapes
    done = run("model", "llama-3.1-8b", env={"PYTHONIOENCODING": "ascii:strict"})
    assert "-----" in done.stdout
    assert "\\u2500" not in done.stdout


def test_a_reader_that_goes_away(root: Path) -> None:
    (root / FILE).write_text(json.dumps({f"x{i}": 1 for i in range(900)}))
    with subprocess.Popen(
        [*COMMAND, "validate", "--dataset", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk(root: Path, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "validate", "--dataset", str(root)],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            # empty is as if it were not set: what can't be written stays in a buffer
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2
    assert done.stderr == "Error: stdout: No space left on device\n"


@pytest.mark.parametrize("closed", ["1", "2", "1 2", "0 1 2"])
def test_a_stream_that_the_caller_closed(root: Path, closed: str) -> None:
    def begin() -> None:
        for descriptor in closed.split():
            os.close(int(descriptor))

    done = subprocess.run(
        [*COMMAND, "validate", "--dataset", str(root)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        preexec_fn=begin,
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_an_interrupt_is_no_traceback(root: Path) -> None:
    os.remove(root / FILE)
    # An interrupt while files are read, at a place that does not depend on timing.
    code = (
        "import generator.validation.validate, os, signal\n"
        "def stop(*a): os.kill(os.getpid(), signal.SIGINT)\n"
        "generator.validation.validate.discover_definitions = stop\n"
        "from generator.cli.trace_dataset import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "validate", "--dataset", str(root)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr.split() == ["Interrupted."]


def test_version_and_help() -> None:
    assert run("--version").stdout == f"trace-dataset {generator.__version__}\n"
    text = run("validate", "--help").stdout
    for option in ("--dataset", "--op-type", "--definition-name", "--format"):
        assert option in text
    assert run().returncode == 2


def test_starting_up_imports_little() -> None:
    code = (
        "import sys, generator.cli.trace_dataset;"
        "heavy = ('rich', 'jsonschema', 'torch', 'jinja2', 'generator.rules.load');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout == "[]\n"
