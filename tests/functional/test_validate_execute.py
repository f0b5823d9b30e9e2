"""`trace-dataset validate --execute`: what calling a reference shows, and survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner

from generator.problems import Problem
from generator.rules.catalogue import GROUPS
from generator.rules.load import load_definitions
from generator.validation.execute import run as execution
from tests.builders import ROOT
from tests.functional.hostile import write
from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD
from tests.functional.test_validate import run as command

GOOD = "def run(A, B):\n    return A @ B.T\n"
# what a process that is taken over would like to have said of itself and of others
FORGED = """\
import json, os
def run(A, B):
    fine = json.dumps({"ends": %d, "how": "exit 0", "report": '{"said": []}'})
    for number in range(3, 64):
        try:
            os.write(number, (fine + "\\n").encode())
        except OSError:
            pass
    os._exit(0)
"""
LOOK = """\
import os
def run(A, B):
    up = os.getppid()
    for path in (f"/proc/{up}/mem", f"/proc/{up}/fd/1", f"/proc/{up}/fd"):
        try:
            open(path, "r+b") if path[-1] != "d" else os.listdir(path)
        except OSError:
            continue
        raise ValueError("it can reach " + path)
    return A @ B.T
"""
# what a reference does → the rules that say so, and the line that is named
WRONG: dict[str, tuple[str, list[str], int | None]] = {
    "good": (GOOD, [], None),
    "raises": ("def run(A, B):\n    return A @ B\n", ["execute-raised"], 2),
    "raises in a helper": (
        "def f(x):\n    return x.nothing\n\n\ndef run(A, B):\n    return f(A)\n",
        ["execute-raised"],
        2,
    ),
    "raises when loaded": ("x = 1 / 0\n" + GOOD, ["execute-raised"], 1),
    "two outputs": (
        "def run(A, B):\n    return A @ B.T, A\n",
        ["execute-outputs"],
        None,
    ),
    "no tensor": (
        "def run(A, B):\n    return (A @ B.T).tolist\n",
        ["execute-outputs"],
        None,
    ),
    "shape": ("def run(A, B):\n    return B @ A.T\n", ["execute-shape"], None),
    "dtype": (
        "def run(A, B):\n    return (A @ B.T).float()\n",
        ["execute-dtype"],
        None,
    ),
    "device": (
        "def run(A, B):\n    return (A @ B.T).to('meta')\n",
        ["execute-device"],
        None,
    ),
    "all wrong": (
        "def run(A, B):\n    return (B @ A.T).to('meta').float()\n",
        ["execute-shape", "execute-dtype", "execute-device"],
        None,
    ),
    "writes": (
        "def run(A, B):\n    x = A.view(-1)\n    x[0] = 1\n    return A @ B.T\n",
        ["execute-writes"],
        None,
    ),
    "writes unseen by torch": (
        "def run(A, B):\n    A.numpy()[0] = 7\n    return A @ B.T\n",
        ["execute-writes"],
        None,
    ),
    "leaves": (
        "import os\ndef run(A, B):\n    os._exit(0)\n",
        ["execute-killed"],
        None,
    ),
    "leaves politely": (
        "def run(A, B):\n    raise SystemExit(0)\n",
        ["execute-raised"],
        2,
    ),
    "interrupts": (
        "def run(A, B):\n    raise KeyboardInterrupt\n",
        ["execute-raised"],
        2,
    ),
    "dies": (
        "import os, signal\ndef run(A, B):\n    os.kill(os.getpid(), 11)\n",
        ["execute-killed"],
        None,
    ),
    "loops": (
        "def run(A, B):\n    while True:\n        pass\n",
        ["execute-time"],
        None,
    ),
    "sleeps in its message": (
        (
            "import time\nclass E(Exception):\n    def __str__(self):\n"
            "        time.sleep(60)\ndef run(A, B):\n    raise E\n"
        ),
        ["execute-time"],
        None,
    ),
    "fills memory": (
        "import torch\ndef run(A, B):\n    x = [torch.ones(1 << 27) for _ in range(99)]\n",
        ["execute-raised"],
        3,
    ),
    "recurses": ("def run(A, B):\n    return run(A, B)\n", ["execute-raised"], 2),
    "forks": (
        (
            "import os, time\ndef run(A, B):\n    while True:\n        if not os.fork():\n"
            "            time.sleep(60)\n"
        ),
        ["execute-time"],
        None,
    ),
    "leaves a child behind": (
        (
            "import os, time\ndef run(A, B):\n    if not os.fork():\n        os.setsid()\n"
            "        os.closerange(0, 64)\n        time.sleep(60)\n    return A @ B.T\n"
        ),
        [],
        None,
    ),
    "fills the disk": (
        "def run(A, B):\n    open('/tmp/x', 'wb', 0).write(bytes(1 << 20))\n",
        ["execute-raised"],
        2,
    ),
    "reads the environment": (
        "import os\ndef run(A, B):\n    return os.environ['SECRET_TOKEN']\n",
        ["execute-raised"],
        3,
    ),
    "reads the network": (
        "import socket\ndef run(A, B):\n    socket.create_connection(('1.1.1.1', 53))\n",
        ["execute-raised"],
        3,
    ),
    "prints": (
        "def run(A, B):\n    print('{\"ends\": 0}' * 9999)\n    return A @ B.T\n",
        [],
        None,
    ),
    "patches torch": (
        "import torch\ntorch.equal = lambda a, b: True\ntorch.Tensor.clone = None\n"
        + GOOD,
        [],
        None,
    ),
    "says nothing good of others": (FORGED % 1, ["execute-killed"], None),
    "answers nonsense": (
        "import os\ndef run(A, B):\n    os.write(3, b'[' * 9999)\n    os._exit(0)\n",
        ["execute-killed"],
        None,
    ),
    "answers what would grow": (
        "import os\ndef run(A, B):\n    os.write(3, b'\\0' * 16000)\n    os._exit(0)\n",
        ["execute-killed"],
        None,
    ),
    "answers without end": (
        "import os\ndef run(A, B):\n    while True:\n        os.write(3, bytes(1 << 20))\n",
        ["execute-killed"],
        None,
    ),
    "accuses of unknown rules": (
        (
            'import os\ndef run(A, B):\n    os.write(3, b\'{"said": [["x", "y", null]]}\')\n'
            "    os._exit(0)\n"
        ),
        ["execute-killed"],
        None,
    ),
    "accuses falsely": (
        (
            'import os\ndef run(A, B):\n    os.write(3, b\'{"said": [["execute-time", "\\\\u001b[2J", 9]]}\')\n'
            "    os._exit(0)\n"
        ),
        ["execute-time"],
        None,
    ),
    "looks at its watcher": (LOOK, [], None),
    "kills its watcher": (
        # which is the first process of its namespace, and takes no signal from it
        "import os\ndef run(A, B):\n    os.kill(os.getppid(), 9)\n    return A @ B.T\n",
        [],
        None,
    ),
    "stops its watcher": (
        "import os\ndef run(A, B):\n    os.kill(os.getppid(), 19)\n    return A @ B.T\n",
        [],
        None,
    ),
    "good after all": (GOOD, [], None),
}


@pytest.fixture(autouse=True, scope="module")
def _can_isolate() -> None:
    reason = execution.why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Problem]]:
    """Return the Problems of each way to be wrong; all are called in one sandbox."""
    root = tmp_path_factory.mktemp("dataset")
    write(root, FILE, DEFINITION)
    (good,) = load_definitions(root).definitions
    definitions = [
        replace(good, name=f"gemm_{n}", path=f"{n}", reference=source)
        for n, (source, _, _) in enumerate(WRONG.values())
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "SECONDS", 2.0)
        patch.setattr(execution, "_MEMORY", 1 << 30)
        patch.setattr(execution, "_FEW", len(WRONG))
        patch.setenv("SECRET_TOKEN", "secret")
        problems = execution.check(definitions, trust=True)
    return {
        name: [problem for problem in problems if problem.file == str(n)]
        for n, name in enumerate(WRONG)
    }


@pytest.mark.parametrize("name", WRONG)
def test_what_a_reference_does_is_said(
    name: str, found: dict[str, list[Problem]]
) -> None:
    _, rules, line = WRONG[name]
    assert [problem.rule for problem in found[name]] == rules
    assert [p.line for p in found[name] if p.line is not None] == [line] * bool(line)
    assert all(str(problem).isprintable() for problem in found[name])
    assert "secret" not in str(found[name])


def test_every_rule_of_the_group_is_met_here() -> None:
    met = {rule for _, rules, _ in WRONG.values() for rule in rules}
    others = {"execute-blocked", "execute-guessed", "execute-not-run"}
    others |= {"execute-workload"}
    assert met | others == {rule.id for rule in GROUPS["execute"]}


def _definitions(root: Path, **changes: Any) -> list[Any]:
    write(root, FILE, DEFINITION)
    (good,) = load_definitions(root).definitions
    return [replace(good, **changes)]


def test_what_the_screen_finds_is_not_called(tmp_path: Path) -> None:
    source = f"import os\n\n\nopen({str(tmp_path / 'x')!r}, 'w')\n{GOOD}"
    problems = execution.check(_definitions(tmp_path, reference=source))
    assert {problem.rule for problem in problems} == {"execute-blocked"}
    assert [problem.line for problem in problems] == [1, 4]


def test_guessed_inputs_accuse_nobody(tmp_path: Path) -> None:
    source = "def run(A, B):\n    assert A.shape[0] == 77\n"
    (problem,) = execution.check(
        _definitions(tmp_path, op_type="unheard_of", reference=source)
    )
    assert (problem.rule, problem.severity.value) == ("execute-guessed", "note")


def test_what_is_too_large_is_not_called(tmp_path: Path) -> None:
    (large,) = _definitions(tmp_path)
    axis = replace(large.axes["N"], value=1 << 40)
    (problem,) = execution.check([replace(large, axes={**large.axes, "N": axis})])
    assert problem.rule == "execute-not-run"


def test_the_command_calls_and_says(tmp_path: Path) -> None:
    reference = "def run(A, B):\n    return (A @ B.T).float()\n"
    write(tmp_path, FILE, {**DEFINITION, "reference": reference})
    write(tmp_path, "workloads/gemm/gemm_n8_k4.jsonl", json.dumps(WORKLOAD))
    before = command("validate", "--dataset", str(tmp_path))
    assert (before.returncode, before.stderr) == (0, "")
    done = command("validate", "--dataset", str(tmp_path), "--execute")
    assert done.returncode == 1
    assert "`C` is torch.float32, declared float16. [execute-dtype]" in done.stdout


def test_it_calls_wherever_the_package_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox has no folder of this name beside the package: it can't list it."""
    write(tmp_path, FILE, DEFINITION)
    with TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        for package in execution.PACKAGES:
            copytree(ROOT / package, Path(name, package))
        monkeypatch.setattr(execution, "_PROJECT", Path(name))
        definitions = load_definitions(tmp_path).definitions
        assert execution.check(definitions) == []


@pytest.mark.parametrize("options", [["--trust"], ["--workloads", "all"]])
def test_what_needs_execute_is_wrong_usage_without(
    tmp_path: Path, options: list[str]
) -> None:
    done = command("validate", "--dataset", str(tmp_path), *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{options[0]} goes with --execute" in done.stderr


def test_without_isolation_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from generator.cli import validate

    write(tmp_path, FILE, DEFINITION)
    monkeypatch.setattr(execution, "refusal", lambda: "no")
    arguments = ["--dataset", str(tmp_path), "--execute"]
    done = CliRunner().invoke(validate.validate, arguments)
    assert isinstance(done.exception, validate.Failure)
    assert "--execute is refused: no" in str(done.exception)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_what_is_called_at_once(tmp_path: Path, number: int) -> None:
    for n in range(9, 90):
        value = {**DEFINITION, "name": f"gemm_n{n}_k4"}
        value["axes"] = {**DEFINITION["axes"], "N": {"type": "const", "value": n}}
        value["reference"] = "def run(A, B):\n    while True:\n        pass\n"
        write(tmp_path, f"definitions/gemm/gemm_n{n}_k4.json", value)
    folder = tmp_path / "tmp"
    folder.mkdir()
    arguments = ["validate", "--execute", "--trust", "--dataset", str(tmp_path)]
    started = subprocess.Popen(
        [sys.executable, "-m", "generator.cli.trace_dataset", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not any(folder.glob("*/told/jobs.json")) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1.5)
    begun = time.monotonic()
    started.send_signal(number)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, err.split()) == (130, ["Interrupted."]), out
    # one on a quiet machine
    assert time.monotonic() - begun < 5
    assert not any(folder.iterdir())
