"""tools/nightly.py: what is worse than the night before is said, and is the exit status."""

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

    step = run_step(f"pytest -q -p no:cacheprovider --rootdir {tmp_path} {file}", 1.0)

    assert (step.status, step.tests) == (1, 2)
    assert [name.endswith("::test_b") for name in step.failed] == [True]
    assert step.seconds > 0


def test_a_step_is_ended_at_its_limit_with_all_that_it_started(tmp_path: Path) -> None:
    file, ended = tmp_path / "long.py", tmp_path / "ended"
    file.write_text(
        "import pathlib, subprocess, sys, time\n"
        "child = [sys.executable, '-c', 'import time; time.sleep(99)']\n"
        "try:\n    subprocess.run(child)\n"
        f"except KeyboardInterrupt:\n    pathlib.Path({str(ended)!r}).touch()\n"
    )

    step = run_step(f"python {file}", 1.5 / 60)

    assert (step.status, ended.exists()) == (nightly.CUT_OFF, True)
    assert 1.5 <= step.wall_seconds < 30.0
    (line,) = compared("t", step, None)
    assert line.endswith("minutes, its limit")
    # what it took by then is no figure for the next night
    assert compared("t", Step(0, 99.0, 1.0), {"status": 124, "seconds": 1.0}) == []


def test_a_night_that_was_cut_off_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, ran = nightly.run_step, []

    def cut(command: str, minutes: float) -> Step:
        ran.append(command)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return real(command, minutes)

    monkeypatch.setattr(nightly, "run_step", cut)
    with pytest.raises(KeyboardInterrupt):
        night(monkeypatch, tmp_path, "pass")
    assert not list(tmp_path.glob("*.json"))

    status, steps = night(monkeypatch, tmp_path, "pass")

    assert (status, [*steps]) == (0, ["good", "other"])
    assert len(ran) == 3
    assert "Of the night that was cut off: good." in capsys.readouterr().out
    # the next one begins anew; so does one of another commit
    assert not (tmp_path / "unfinished").exists()
    nightly.Unfinished(tmp_path).keep({"good": Step(0, 1.0, 1.0)})
    monkeypatch.setattr(nightly, "_commit", lambda: "another")
    assert nightly.Unfinished(tmp_path).steps() == {}


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


def test_ctrl_c_while_it_installs_is_one_line(tmp_path: Path) -> None:
    # a child that installs, and has one of its own
    (tmp_path / "child.py").write_text(
        "import pathlib, subprocess, sys\n"
        "pathlib.Path('begun').touch()\n"
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    )
    code = (
        "import os, runpy, sys, dev; dev.ROOT = __import__('pathlib').Path(sys.argv[1])\n"
        "try: dev.undisturbed([sys.executable, 'child.py'])\n"
        "except KeyboardInterrupt: print('Interrupted.', file=sys.stderr)"
    )
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code, str(tmp_path)],
        cwd=nightly.ROOT / "tools",
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as command:
        begun = time.monotonic()
        while not (tmp_path / "begun").exists() and time.monotonic() < begun + 20:
            time.sleep(0.02)
        # as a terminal does
        os.killpg(command.pid, signal.SIGINT)
        assert command.wait(20) == 0
        # its end comes only when nobody has it any more
        assert command.stderr.read() == "Interrupted.\n"
