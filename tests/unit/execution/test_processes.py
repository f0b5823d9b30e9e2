"""Processes look for nothing in the current folder, and get no token."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

import generator
from generator.execution import processes
from generator.execution.processes import (
    run,
    run_python,
    safe_environment,
    start,
)
from generator.ground_truth import machine

PACKAGE = Path(generator.__file__).parent
# the helper; the sandbox's own start of bubblewrap, with an environment of its own; and
# what runs confined, where there is nothing of ours to import
MAY_START = ("execution/processes.py", "execution/sandbox/", "evaluation/worker.py")
STARTS = {
    "subprocess": "Popen run call check_call check_output getoutput getstatusoutput",
    "os": "system popen execl execle execlp execlpe execv execve execvp execvpe spawnl "
    "spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp "
    "startfile",
    "pty": "spawn",
    "multiprocessing": "Process Pool get_context set_start_method Manager",
    "asyncio": "create_subprocess_exec create_subprocess_shell",
}


def starts(source: str) -> list[str]:
    """Return what of a module starts a program: calls, and names that were imported."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                named = [(module, name)]
            case ast.ImportFrom(module=str(module), names=names):
                named = [(module, alias.name) for alias in names]
            case _:
                named = []
        found += [
            f"{node.lineno}: {module}.{name}"
            for module, name in named
            if name in STARTS.get(module, "").split()
        ]
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess\nsubprocess.run(['x'])",
        "import os\nos.execv('x', [])",
        "from subprocess import Popen",
        "from os import system",
        "f = subprocess.check_output",
    ],
)
def test_a_start_is_recognised(source: str) -> None:
    assert starts(source)


def test_one_module_starts_processes() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        # an annotation names Popen, which starts nothing
        text = path.read_text("utf-8").replace("subprocess.Popen[", "Started[")
        if not name.startswith(MAY_START) and (there := starts(text)):
            found[name] = there
    assert found == {}


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, in which every module that could be imported bites."""
    bite = f"open({str(tmp_path / 'bitten')!r}, 'w').write('')\n"
    folder = tmp_path / "checkout"
    folder.mkdir()
    names = (
        "json torch flashinfer sglang importlib sitecustomize usercustomize numpy os_x"
    )
    for name in names.split():
        (folder / f"{name}.py").write_text(bite)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    return tmp_path


def test_the_doctor_imports_nothing_of_a_stranger_s_checkout(stranger: Path) -> None:
    machine._import_failure.cache_clear()
    machine._import_failure("os_x")
    assert machine._import_failure("json") == ""
    machine._import_failure.cache_clear()
    assert not (stranger / "bitten").exists()


@pytest.mark.parametrize("paths", [".", "", "checkout", ":", f"{os.sep}nowhere:."])
def test_pythonpath_brings_no_current_folder_in(
    stranger: Path, monkeypatch: pytest.MonkeyPatch, paths: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", paths)
    arguments = ["-c", "import json, sys; print(json.dumps(sys.path))"]
    done = run_python(arguments, environment=safe_environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    assert "checkout" not in done.stdout
    assert not (stranger / "bitten").exists()


def test_no_secret_is_passed_on() -> None:
    given = {
        "HF_TOKEN": "x",
        "GITHUB_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "SSH_AUTH_SOCK": "x",
        "NVIDIA_API_KEY": "x",
        "TORCH_HUB_TOKEN": "x",
        "XDG_PASSWORD": "x",
        "https_proxy": "http://me:secret@proxy:1",
        "PYTHONSTARTUP": "x",
        "PYTHONOPTIMIZE": "1",
        "PYTHONHOME": "x",
        "LD_PRELOAD": "x",
        "PATH": "/usr/bin",
        "CUDA_VISIBLE_DEVICES": "0",
        "http_proxy": "http://proxy:1",
    }
    assert safe_environment(given) == {
        "PATH": "/usr/bin",
        "CUDA_VISIBLE_DEVICES": "0",
        "http_proxy": "http://proxy:1",
        "PYTHONSAFEPATH": "1",
    }


def test_a_program_is_named_by_its_whole_path() -> None:
    with pytest.raises(ValueError, match="no absolute path"):
        start(["true"], environment={})


def test_what_ran_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    script = f"sleep 3 && touch {tmp_path}/late & sleep 60"
    with pytest.raises(subprocess.TimeoutExpired):
        run(["/bin/sh", "-c", script], environment={}, timeout=0.5)
    # its process group is gone, not only itself
    done = run(["/bin/sh", "-c", "sleep 3"], environment={}, timeout=10)
    assert done.returncode == 0
    assert not (tmp_path / "late").exists()


def test_a_program_runs_where_nobody_else_writes() -> None:
    done = run(["/bin/pwd"], environment={}, timeout=10)
    assert done.stdout == "/\n"
    assert processes.safe_environment({})["PYTHONSAFEPATH"] == "1"
