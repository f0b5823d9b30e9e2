"""Set up a virtual environment and use it: one command from a clone to a result.

    python3 tools/dev.py run          render the reference tests and run them: small cases,
                                      of definitions with the same run() the smallest
    python3 tools/dev.py run --all    run all of them
    python3 tools/dev.py test         everything that a change must pass
    python3 tools/dev.py nightly      slow tests, large cases, workloads, seeds, parity and
                                      benchmarks, compared with the last night

The environment is .venv in the checkout; pip installs into it once, and again where
pyproject.toml, constraints.txt or a file of requirements/ changed: for `run` what runs
definitions and tests, for the others also what checks this project. Other arguments after
`run` go to pytest.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
OLDEST = (3, 10)

# memory that tensors freed is kept for the next ones, in large pages: what a reference
# makes comes and goes at every call, and the kernel would clear each page each time
MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "THP_MEM_ALLOC_ENABLE": "1",
}
# of small cases the blocks over 32 MiB too: large ones leave gaps that are never given back
SMALL_CASES = {"MALLOC_TRIM_THRESHOLD_": str(2**31), "MALLOC_MMAP_MAX_": "0"}

PIP = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]

# whose models judge beside ours; what it requires beyond them is for GPUs
PEER = "flashinfer-bench==0.1.2"
# what parity compares models with: in a folder of its own, since it needs another
# huggingface_hub than ours
MODELS = "transformers==5.17.0"
MODELS_FOLDER = ".transformers"

# what `run` shows first
FIRST = "tests/references/test_rmsnorm.py"

# what `test` runs, in this order: a title and a command, whose first word lies in BIN
STEPS = (
    ("definitions are up to date", "python tools/build_definitions.py --check"),
    ("rendering is up to date", "gen-tests --all --check"),
    ("dataset is valid", "trace-dataset validate"),
    ("pages are up to date", "python tools/build_pages.py --check"),
    ("lint", "ruff check ."),
    ("format", "ruff format --check ."),
    ("types", "mypy"),
    ("imports", "lint-imports"),
    (
        "project tests",
        # unmeasured: coverage takes 1.8 times the CPU (CONTRIBUTING.md has the command)
        "python -m pytest -q -m 'not slow' -n 2",
    ),
    (
        "reference tests",
        # of each reference's text the smallest definition, small cases: `dev.py run
        # --all` runs the rest. No reference test uses Hypothesis, which its plug-in
        # imports in each process
        "python -m pytest -q -p no:hypothesispytest --strict -m 'not slow' -n 2 --each-reference --sizes small --workload-seconds 0.1 tests/references",
    ),
)


def main(arguments: list[str]) -> int:
    """Set up, then run or test; return the exit status."""
    if sys.version_info < OLDEST:
        found = ".".join(str(n) for n in sys.version_info[:3])
        print(f"Error: Python 3.10 or later is needed, this is {found}.")
        return 2
    wants_help = any(word in ("-h", "--help") for word in arguments)
    if wants_help and arguments[0] != "nightly":
        print(__doc__)
        return 0
    if arguments[:1] not in (["run"], ["test"], ["nightly"]) or (
        arguments[0] == "test" and len(arguments) > 1
    ):
        print(__doc__)
        if arguments:
            print(f"Error: {shlex.join(arguments)}: it is none of these.")
        return 2
    if arguments[0] == "run":
        return run(arguments[1:]) if set_up("run") else 2
    if arguments[0] == "nightly":
        # options that are none of its own are said before anything is installed
        sys.path.insert(0, str(ROOT))
        from tools import nightly

        nightly.parsed(arguments[1:])
    if not set_up("test") or not set_up_models():
        return 2
    if arguments[0] == "nightly":
        return call(["python", "tools/nightly.py", *arguments[1:]])
    return test()


def run(arguments: list[str]) -> int:
    """Render the reference tests and run them; return the exit status."""
    given = [a for a in arguments if a != "--all"]
    rendered = call(["gen-tests", "--all"])
    # what was rendered is run even where some definition has a problem
    tests = ["python", "-m", "pytest", "-p", "no:hypothesispytest", "-m", "not slow"]
    if "--all" in arguments:
        return call([*tests, "tests/references", "-n", "2", *given]) or rendered
    options = ["--each-reference", "--sizes", "small", "--workload-seconds", "0.1"]
    print(f"\nFirst {FIRST} alone, for a result within seconds:", flush=True)
    call([*tests, FIRST, "-q", *options, *given])
    print("\nNow all op_types:", flush=True)
    ran = call([*tests, "tests/references", "-n", "2", *options, *given])
    print(
        "\nThese were small cases, of definitions with the same run() the smallest; all: "
        "python3 tools/dev.py run --all"
    )
    return ran or rendered


def set_up(extra: str) -> bool:
    """Create the environment and install an extra into it, unless that was done already."""
    # the packages for tests are those for a run as well
    if any(is_set_up(done) for done in (extra, "test")):
        return True
    print(
        f"Setting up {VENV.relative_to(ROOT)}; pip may take some minutes.", flush=True
    )
    # without --clear: whatever else somebody installed there stays
    failed = undisturbed([sys.executable, "-m", "venv", str(VENV)])
    # all but torch, of which machines have builds of their own: with known hashes
    hashed = [*PIP, "--require-hashes", "-r", f"requirements/{extra}.txt"]
    ours = [*PIP, "--no-build-isolation", "-c", "constraints.txt", "-e", f".[{extra}]"]
    peer = [[*PIP, "--no-deps", PEER]] if extra == "test" else []
    commands = [[str(BIN / first), *rest] for first, *rest in (hashed, ours, *peer)]
    if failed or any(map(undisturbed, commands)):
        print("Error: the environment could not be set up; see pip's message above.")
        return False
    stamp(extra).write_text(digest(extra))
    return True


def is_set_up(extra: str) -> bool:
    """Return whether an extra was installed, by files that are as they were then."""
    return stamp(extra).exists() and stamp(extra).read_text() == digest(extra)


def stamp(extra: str) -> Path:
    """Return the file that says what was installed."""
    return VENV / f"gen-tests-{extra}.stamp"


def digest(extra: str) -> str:
    """Return a hash of all that says what is installed."""
    found = hashlib.sha256(f"{sys.version} {PEER}".encode())
    for name in ("pyproject.toml", "constraints.txt", f"requirements/{extra}.txt"):
        found.update((ROOT / name).read_bytes())
    return found.hexdigest()


def set_up_models() -> bool:
    """Install what parity compares models with, unless that was done already."""
    done = ROOT / MODELS_FOLDER / "gen-tests.stamp"
    if done.exists() and done.read_text() == MODELS:
        return True
    print(f"Setting up {MODELS_FOLDER}, for the tests of whole models.", flush=True)
    # what it requires beside our own packages is no conflict: it has a folder of its own
    options = ["--no-warn-conflicts", "--upgrade", "--target", MODELS_FOLDER]
    if undisturbed([str(BIN / PIP[0]), *PIP[1:], *options, MODELS]):
        print(f"Error: {MODELS} could not be installed; see pip's message above.")
        return False
    done.write_text(MODELS)
    return True


def test() -> int:
    """Run every step, also after a failure, and print a line on each."""
    results = []
    for title, command in STEPS:
        print(f"\n== {title}: {command}", flush=True)
        start = time.monotonic()
        status = call(shlex.split(command))
        results.append((title, status, time.monotonic() - start))
    print()
    for title, status, seconds in results:
        print(f"{'ok    ' if status == 0 else 'FAILED'} {title} ({seconds:.0f} s)")
    return int(any(status for _, status, _ in results))


def undisturbed(command: list[str]) -> int:
    """Run a program in the checkout that Ctrl-C reaches by this one; return its status.

    It and what it started end then, without tracebacks of their own.
    """
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise


def call(command: list[str]) -> int:
    """Run a program of the environment in the checkout; return its exit status."""
    program = str(BIN / command[0])
    # two workers of the project tests took 23.7 GB with what they kept
    memory = dict(MEMORY) if "tests/references" in command else {}
    memory |= SMALL_CASES if "small" in command else {}
    environment = {**memory, **os.environ}
    return subprocess.call([program, *command[1:]], cwd=ROOT, env=environment)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
