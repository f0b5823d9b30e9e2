"""Write docs/generated/rules.md and README.md's table of op_types, or check them.

python tools/build_pages.py [--check]
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.atomic_write import write_atomically
from generator.dataset.paths import discover_definitions
from generator.ops.registry import op_packages
from generator.results.evidence import runs_in
from generator.results.sources import is_ground_truth
from generator.results.verification import Verification, table_of
from generator.rules.explain import PAGE, as_page

START = "<!-- op_types: written by tools/build_pages.py -->\n"
END = "<!-- end of op_types -->\n"


def main() -> int:
    """Write or check the pages; the exit status says whether one had drifted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check: bool = parser.parse_args().check
    status = 0
    for name, text in ((PAGE, as_page()), ("README.md", readme())):
        path, content = ROOT / name, text.encode("utf-8")
        if path.exists() and path.read_bytes() == content:
            continue
        if check:
            print(f"{name} has drifted: run python tools/build_pages.py")
            status = 1
            continue
        write_atomically(path, content)
        print(f"wrote {name}")
    return status


def readme() -> str:
    """Return README.md with its table of op_types as the dataset is now."""
    head, _, rest = (ROOT / "README.md").read_text("utf-8").partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}{''.join(_op_types())}{END}{tail}"


def _op_types() -> Iterator[str]:
    found = discover_definitions(ROOT)
    table = table_of(ROOT, found, runs_in(ROOT))
    packages = op_packages()
    yield f"{len(found.files)} definitions of {len(packages)} op_types:\n\n"
    yield "| op_type | what it computes | definitions | agrees, live, with |\n"
    yield "|---|---|---|---|\n"
    for op_type, package in packages.items():
        count = sum(file.op_type == op_type for file in found.files)
        what = (inspect.getdoc(import_module(package)) or "").splitlines()[0]
        agreed = ", ".join(sorted(_agreed(table, op_type))) or "nothing yet"
        yield f"| {op_type} | {what} | {count} | {agreed} |\n"
    yield "\n"


def _agreed(table: Verification, op_type: str) -> set[str]:
    """Return the kernels that agreed with definitions of an op_type, and on which GPU."""
    found = set()
    for line in table.lines:
        live = is_ground_truth(line.source) and not line.source.startswith("recorded")
        if line.op_type == op_type and line.verdict == "PASSED" and live and line.run:
            gpu = table.runs[line.run - 1].machine.get("gpu", "CPU")
            provider = line.source.partition("/")[0]
            # of `NVIDIA H100 80GB HBM3` the name alone
            found.add(f"{provider} ({gpu.removeprefix('NVIDIA ').split()[0]})")
    return found


if __name__ == "__main__":
    sys.exit(main())
