"""Import the templates of the installed FlashInfer, and run the tests of each alone.

python tools/run_templates.py DIR [--device cuda] [--live] [--workers N] [--seconds S]
    [--axis NAME=SIZE] [--without NAME] [--only NAME]

DIR/import.json says what became of each template, DIR/results/*.jsonl what its tests
gave. Each definition is a process of its own: a kernel that breaks the CUDA context
breaks no other's test. NAME is an op_type's or a definition's. With --live only the
kernels that FlashInfer names are called. `tools/build_templates_page.py DIR [DIR]`
makes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.rendering.names import class_names

_COMPILED_LONG = ("sampling", "attention", "gqa", "mla", "pod", "prefill", "xqa")
"""What compiles for minutes: it is started first."""


def main(arguments: Sequence[str]) -> int:
    """Import, render, run; the result is 0 where the import and the rendering worked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--each", type=float, default=300, help="seconds for one")
    parser.add_argument("--axis", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    folder: Path = options.folder
    (folder / "results").mkdir(parents=True, exist_ok=True)
    if not (folder / "import.json").exists():
        _import(folder, options.axis)
    imports = json.loads((folder / "import.json").read_text("utf-8"))["imports"]
    without, only = set(options.without), set(options.only)
    chosen = []
    for found in imports:
        names = {found["op_type"], found["definition"]}
        if found["definition"] and not names & without and (not only or names & only):
            chosen.append(found)
    seen: Counter[str] = Counter()

    def rank(found: dict[str, str]) -> tuple[int, bool]:
        # the first of an op_type compiles what the others wait for
        op_type = found["op_type"]
        seen[op_type] += 1
        return seen[op_type], not any(word in op_type for word in _COMPILED_LONG)

    chosen.sort(key=rank)
    tests = ["-k", "test_matches_flashinfer"] if options.live else []

    def run(found: dict[str, str]) -> str:
        until = min(end, _now() + options.each)
        return _run(folder, found, ["--device", options.device, *tests], until)

    with ThreadPoolExecutor(options.workers) as pool:
        for line in pool.map(run, chosen):
            print(line, flush=True)
    return 0


def _now() -> float:
    return time.monotonic()


def _import(folder: Path, axes: Sequence[str]) -> None:
    dataset, tests = str(folder / "dataset"), str(folder / "tests")
    command = [sys.executable, "-m", "generator.cli.trace_dataset", "import"]
    command += ["--dialect", "flashinfer", "--from-installed", "--json"]
    command += [f"--axis={axis}" for axis in axes] + ["--output", dataset]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    command = [sys.executable, "-m", "generator.cli.gen_tests", "--all", "--force"]
    command += ["--dataset", dataset, "--output", tests]
    subprocess.run(command, cwd=ROOT, check=False)
    (folder / "import.json").write_bytes(printed.stdout)


def _run(
    folder: Path, found: dict[str, str], arguments: Sequence[str], end: float
) -> str:
    name, op_type = found["definition"], found["op_type"]
    (class_name,) = class_names([name])
    results = folder / "results" / f"{name}.jsonl"
    if results.exists():
        return f"{name} has run"
    start = _now()
    file = next(_files(folder / "tests", op_type), None)
    if file is None or end - start < 5:
        return f"{name}: not run"
    command = [sys.executable, "-m", "pytest", f"{file}::{class_name}", "-q"]
    command += ["-n", "0"] if find_spec("xdist") else []
    command += ["-p", "no:cacheprovider", "--results", str(results), *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=end - start)
            last = (printed.strip().splitlines() or ["no output"])[-1]
        except subprocess.TimeoutExpired:
            # with the compilers that it started
            os.killpg(process.pid, signal.SIGKILL)
            last = "took too long"
            results.unlink(missing_ok=True)
    return f"{name}: {last} ({_now() - start:.0f} s)"


def _files(tests: Path, op_type: str) -> Iterator[Path]:
    yield from tests.glob(f"test_{op_type}_custom_inputs.py")
    yield from tests.glob(f"test_{op_type}.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
