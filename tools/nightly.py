"""What takes too long for each change: run it, and compare with the last night.

    python3 tools/dev.py nightly [--only WORD] [--folder DIR] [--minutes N] [--rehearse]

Each night is a file DATE.json in the folder, nightly/ if not given: of each step its exit
status, its time on the CPU, and the tests that failed. --only runs the steps whose title
has the word. A step that takes over --minutes is ended, and what its tests came to by then
counts. A night that was cut off goes on where it was, at the same commit: the steps that
ended are kept in the folder's file `unfinished`. --rehearse runs a small part of each
step, minutes in all, to see that a night works here; its folder is nightly/rehearsal. Exit
status: 1 where a step failed, or took half as long again as last time.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.parity.families import FAMILIES

SLOWER = 1.5
"""Time on the CPU, as a multiple of the last night's, that is too much."""

MINUTES = 180.0
"""What a step may take."""

_LEAST_SECONDS = 1.0
_SHOWN = 20
CUT_OFF = 124
"""The exit status of a step that took too long, as that of `timeout`."""

_LEAVING_SECONDS = 60.0
_UNFINISHED = "unfinished"
_TESTS = "pytest -q -n 2 -p no:cacheprovider"
_FAMILIES = " ".join(f"--model {name}" for name in FAMILIES)
_REFERENCES = f"{_TESTS} tests/references --each-reference"

STEPS = {
    "slow tests": f"{_TESTS} -m slow",
    "large cases": f"{_REFERENCES} --sizes large",
    "workloads": f"{_REFERENCES} --sizes small --workloads all -k workload",
    "three seeds": f"{_REFERENCES} --sizes small --workloads none --seed 1 --seed 2 --seed 3",
    "parity": f"trace-dataset parity --geometry full --level all {_FAMILIES}",
    "benchmark gen-tests": "python benchmarks/bench_gen_tests.py",
    "benchmark validate": "python benchmarks/bench_validate.py",
    "benchmark review": "python benchmarks/bench_review.py",
    "benchmark review of 500": "python benchmarks/bench_review.py --many 500 --runs 1",
    "benchmark evaluate": "python benchmarks/bench_evaluate.py",
    "benchmark push": "python benchmarks/bench_push.py",
    "benchmark mcp": "python benchmarks/bench_mcp.py --rounds 3",
}
"""Title → command, whose first word lies beside this Python."""

_ONE = f"{_TESTS} tests/references/test_rmsnorm.py --definition rmsnorm_h128"

REHEARSAL = {
    "slow tests": f"{_TESTS} -m slow tests/functional/test_first_review.py",
    "large cases": f"{_ONE} --sizes large",
    "workloads": f"{_ONE} --sizes small --workloads all -k workload",
    "three seeds": f"{_ONE} --sizes small --workloads none --seed 1 --seed 2 --seed 3",
    "parity": "trace-dataset parity --model llama",
    "benchmark gen-tests": "python benchmarks/bench_gen_tests.py --runs 1",
    "benchmark validate": "python benchmarks/bench_validate.py --runs 1",
    "benchmark review": "python benchmarks/bench_review.py --runs 1",
    "benchmark review of 500": "python benchmarks/bench_review.py --many 5 --runs 1",
    "benchmark evaluate": "python benchmarks/bench_evaluate.py 2",
    "benchmark push": "python benchmarks/bench_push.py --runs 1",
    "benchmark mcp": "python benchmarks/bench_mcp.py",
}
"""The same titles, each with a small part of the command."""


@dataclass(frozen=True)
class Step:
    """How one step ended: `seconds` are those of the CPU, `failed` the tests that failed."""

    status: int
    seconds: float
    wall_seconds: float
    tests: int = 0
    failed: tuple[str, ...] = ()


def run_step(command: str, minutes: float) -> Step:
    """Run a command in the checkout, not for longer, and read what its tests came to."""
    program, *words = shlex.split(command)
    with TemporaryDirectory(prefix="nightly-") as folder:
        junit = Path(folder) / "junit.xml"
        if program == "pytest":
            words += [f"--junitxml={junit}"]
        begun, before = time.monotonic(), _cpu()
        path = str(Path(sys.executable).parent / program)
        status = _ended([path, *words], 60.0 * minutes)
        seconds, wall = _cpu() - before, time.monotonic() - begun
        tests, failed = _outcome(junit)
    return Step(status, round(seconds, 1), round(wall, 1), tests, failed)


def _ended(command: Sequence[str], seconds: float) -> int:
    """Run a command with all that it starts; return its exit status, or CUT_OFF."""
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            return process.wait(seconds)
        except BaseException as error:
            # pytest writes then what its tests came to
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(_LEAVING_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
    return CUT_OFF


def _cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _outcome(junit: Path) -> tuple[int, tuple[str, ...]]:
    if not junit.exists():
        return 0, ()
    cases = list(ET.parse(junit).getroot().iter("testcase"))
    failed = (
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    )
    return len(cases), tuple(failed)


def compared(title: str, now: Step, last: Mapping[str, object] | None) -> list[str]:
    """Return what is worse than in the last night, or broken without one."""
    last_failed: Sequence[object] = ()
    last_seconds = 0.0
    if last is not None:
        listed, seconds = last.get("failed"), last.get("seconds")
        last_failed = listed if isinstance(listed, list) else ()
        last_seconds = float(seconds) if isinstance(seconds, (int, float)) else 0.0
    lines = []
    if now.status == CUT_OFF:
        minutes = now.wall_seconds / 60
        lines.append(f"{title}: ended after {minutes:.0f} minutes, its limit")
    elif now.status:
        before = "" if last is None else f", {last.get('status')} the night before"
        lines.append(f"{title}: exit status {now.status}{before}")
    new = [name for name in now.failed if name not in last_failed]
    lines += [f"{title}: failed: {name}" for name in new[:_SHOWN]]
    if len(new) > _SHOWN:
        lines.append(f"{title}: and {len(new) - _SHOWN} more tests failed")
    is_whole = CUT_OFF not in (now.status, (last or {}).get("status"))
    is_slower = is_whole and now.seconds > SLOWER * max(last_seconds, _LEAST_SECONDS)
    if last_seconds and is_slower:
        times = now.seconds / last_seconds
        lines.append(
            f"{title}: {now.seconds:.0f} s of the CPU, {times:.1f} times as long"
        )
    return lines


def ratio(now: Step, last: Mapping[str, object] | None) -> str:
    """Return the time on the CPU as a multiple of the last night's, `-` without one."""
    before = None if last is None else last.get("seconds")
    if not isinstance(before, (int, float)) or not before:
        return "-"
    return f"{now.seconds / before:.2f}"


def last_night(folder: Path) -> dict[str, dict[str, object]]:
    """Return the steps of the newest file, none where there is no night yet."""
    nights = sorted(folder.glob("*.json"))
    if not nights:
        return {}
    steps: dict[str, dict[str, object]] = json.loads(nights[-1].read_text("utf-8"))
    return steps


class Unfinished:
    """The steps of a night that was cut off, and the commit that they are of."""

    def __init__(self, folder: Path) -> None:
        self._path, self._commit = folder / _UNFINISHED, _commit()

    def steps(self) -> dict[str, Step]:
        """Return the steps that ended, none where they are of another commit."""
        try:
            value = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        if not self._commit or value["commit"] != self._commit:
            return {}
        steps = value["steps"].items()
        return {t: Step(**{**s, "failed": tuple(s["failed"])}) for t, s in steps}

    def keep(self, steps: Mapping[str, Step]) -> None:
        """Keep the steps that ended, in one write."""
        plain = {title: asdict(step) for title, step in steps.items()}
        beside = self._path.with_name(f".{_UNFINISHED}.tmp")
        beside.write_text(json.dumps({"commit": self._commit, "steps": plain}), "utf-8")
        beside.replace(self._path)

    def end(self) -> None:
        """Forget them: the night has its own file."""
        self._path.unlink(missing_ok=True)


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    with suppress(OSError):
        done = subprocess.run(
            command, cwd=ROOT, check=False, capture_output=True, text=True
        )
        return done.stdout.strip()
    return ""


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options. Raises SystemExit for --help, and for what is none."""
    parser = argparse.ArgumentParser(
        prog="python3 tools/dev.py nightly",
        usage="%(prog)s [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--folder", type=Path, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N")
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args(arguments)
    if not any(options.only in title for title in STEPS):
        parser.error(f"--only {options.only}: choose a word of {', '.join(STEPS)}")
    if options.folder is None:
        options.folder = ROOT / "nightly" / ("rehearsal" if options.rehearse else "")
    return options


def main() -> int:
    """Run the steps and compare; return the exit status."""
    options = parsed(sys.argv[1:])
    steps_of = REHEARSAL if options.rehearse else STEPS
    chosen = {t: c for t, c in steps_of.items() if options.only in t}
    options.folder.mkdir(parents=True, exist_ok=True)
    last, worse = last_night(options.folder), []
    unfinished = Unfinished(options.folder)
    # --only asks for a step again, and leaves a night that was cut off as it is
    steps = {} if options.only else unfinished.steps()
    if steps:
        print(f"Of the night that was cut off: {', '.join(steps)}.", flush=True)
    for title, command in chosen.items():
        if title not in steps:
            print(f"\n== {title}: {command}", flush=True)
            steps[title] = run_step(command, options.minutes)
            if not options.only:
                unfinished.keep(steps)
        worse += compared(title, steps[title], last.get(title))
    name = time.strftime("%Y-%m-%dT%H%M%S.json", time.gmtime())
    # a step that was not run this time is compared with its last one the next time
    known = {**last, **{title: asdict(step) for title, step in steps.items()}}
    path = options.folder / name
    path.write_text(f"{json.dumps(known, indent=1)}\n", "utf-8")
    if not options.only:
        unfinished.end()
    print(f"\n{'step':<22} {'status':>6} {'tests':>6} {'failed':>6} {'CPU s':>8} ratio")
    for title, step in steps.items():
        print(
            f"{title:<22} {step.status:>6} {step.tests:>6} {len(step.failed):>6} "
            f"{step.seconds:>8.1f} {ratio(step, last.get(title))}"
        )
    print("\n".join(["", *worse, f"Wrote {path}"]))
    return int(bool(worse))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
