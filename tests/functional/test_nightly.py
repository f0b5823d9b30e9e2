"""tools/nightly.py: what is worse than the night before is said, and is the exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import nightly
from tools.nightly import Step, compared, run_step

NIGHT = {"status": 0, "seconds": 10.0, "failed": ["a::x"]}


@pytest.mark.parametrize(
    ("now", "worse"),
    [
        (Step(0, 14.0, 1.0, 3), []),
        (Step(1, 10.0, 1.0, 3, ("a::x",)), ["t: exit status 1, 0 the night before"]),
        (
            Step(1, 10.0, 1.0, 3, ("a::x", "a::y")),
            ["t: exit status 1, 0 the night before", "t: failed: a::y"],
        ),
        (Step(0, 25.0, 1.0, 3), ["t: 25 s of the CPU, 2.5 times as long"]),
    ],
)
def test_what_is_worse_than_the_last_night(now: Step, worse: list[str]) -> None:
    assert compared("t", now, NIGHT) == worse


def test_the_first_night_is_compared_with_none() -> None:
    assert compared("t", Step(0, 99.0, 1.0), None) == []
    assert compared("t", Step(1, 9.0, 1.0), None) == ["t: exit status 1"]


def test_a_step_counts_its_tests_and_names_what_failed(tmp_path: Path) -> None:
    file = tmp_path / "test_two.py"
    file.write_text("def test_a():\n    pass\n\ndef test_b():\n    assert False\n")

    step = run_step(f"pytest -q -p no:cacheprovider --rootdir {tmp_path} {file}")

    assert (step.status, step.tests) == (1, 2)
    assert [name.endswith("::test_b") for name in step.failed] == [True]
    assert step.seconds > 0


def night(
    monkeypatch: pytest.MonkeyPatch, folder: Path, code: str, *options: str
) -> tuple[int, dict[str, Any]]:
    """Return the exit status of a night of two steps, and what it wrote."""
    steps = {"good": "python -c pass", "other": f'python -c "{code}"'}
    monkeypatch.setattr(nightly, "STEPS", steps)
    monkeypatch.setattr(sys, "argv", ["nightly", "--folder", str(folder), *options])
    status = nightly.main()
    newest = max(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    return status, json.loads(newest.read_text())


def test_nights_follow_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert night(monkeypatch, tmp_path, "pass")[0] == 0
    status, steps = night(monkeypatch, tmp_path, "raise SystemExit(3)")
    assert (status, steps["other"]["status"]) == (1, 3)
    assert "other: exit status 3, 0 the night before" in capsys.readouterr().out
    # a step that is left out keeps what is known of it
    status, steps = night(monkeypatch, tmp_path, "pass", "--only", "good")
    assert (status, steps["other"]["status"]) == (0, 3)


def test_every_step_is_there() -> None:
    assert [*nightly.REHEARSAL] == [*nightly.STEPS]
    for command in (*nightly.STEPS.values(), *nightly.REHEARSAL.values()):
        program, *words = command.split()
        assert (Path(sys.executable).parent / program).exists()
        scripts = [word for word in words if word.endswith(".py")]
        assert all((nightly.ROOT / script).is_file() for script in scripts)


def test_a_rehearsal_is_compared_with_rehearsals() -> None:
    assert nightly.parsed([]).folder == nightly.ROOT / "nightly"
    rehearsal = nightly.parsed(["--rehearse"])
    assert rehearsal.folder == nightly.ROOT / "nightly/rehearsal"
    assert nightly.last_night(Path("no such folder")) == {}


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--help"], 0, "tools/dev.py nightly"),
        (["nightly", "--help"], 0, "--rehearse"),
        (["run", "-h"], 0, "tools/dev.py run"),
        (["nightly", "--only", "benchmrk"], 2, "choose a word of slow tests"),
        (["runn"], 2, "Error: runn"),
    ],
)
def test_what_needs_no_environment_makes_none(
    options: list[str], status: int, says: str
) -> None:
    # no package is installed, and no environment can be made
    code = "import dev, sys; dev.set_up = None; sys.exit(dev.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *options],
        cwd=nightly.ROOT / "tools",
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == status, done.stderr
    assert says in done.stdout + done.stderr
