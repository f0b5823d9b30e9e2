"""Render small datasets and run pytest on them in a process of its own."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.rules.load import load_definitions
from tests.builders import write_dataset
from tests.forking import PYTEST, run_module

# standalone tests must run where no generator is installed
NO_GENERATOR = "import sys\nsys.modules['generator'] = None\n"
# SGLang would compare on the CPU too: what a run shows must not depend on it
NO_SGLANG = "import sys\nsys.modules['sglang'] = None\n"


def render(
    root: Path, definitions: Sequence[Mapping[str, Any]], *, standalone: bool = True
) -> Path:
    """Write a dataset below `root`, render its tests, and return their folder.

    Runs of standalone tests can't import the generator.
    """
    dataset = write_dataset(root / "dataset", definitions)
    loaded = load_definitions(dataset)
    assert len(loaded.definitions) == len(definitions), list(map(str, loaded.problems))
    output = root / "rendered"
    options = RenderOptions(standalone=standalone)
    generate(dataset, loaded, output, options, everything=True)
    absent = NO_GENERATOR + NO_SGLANG if standalone else NO_SGLANG
    (root / "absent.py").write_text(absent)
    return output


@dataclass(frozen=True)
class Outcome:
    """Hold one test as JUnit has it; `detail` is the skip's reason or the failure."""

    test_class: str
    function: str
    case: str
    status: str
    detail: str
    comparisons: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Run:
    """Hold what one run of pytest printed and reported."""

    status: int
    stdout: str
    stderr: str
    outcomes: tuple[Outcome, ...]

    def functions(self, test_class: str, status: str) -> set[str]:
        """Return the test functions of a class of which some test has a status."""
        of_class = [o for o in self.outcomes if o.test_class == test_class]
        assert of_class, f"no {test_class} in:\n{self.stdout}\n{self.stderr}"
        return {o.function for o in of_class if o.status == status}


def run_pytest(
    folder: Path,
    *arguments: str,
    file: str | None = None,
    imports: Sequence[str] = PYTEST,
) -> Run:
    """Run pytest on a rendered folder, or a file of it by `python file`.

    `imports` are there already.
    """
    junit = folder.parent / "junit.xml"
    junit.unlink(missing_ok=True)
    environment = {
        # the plugin that makes packages absent is found here, and nothing else
        "PYTHONPATH": str(folder.parent),
        # tensors this small gain nothing from threads, and two processes share the cores
        "OMP_NUM_THREADS": "1",
    }
    module, *given = ("pytest", folder) if file is None else (str(folder / file),)
    options = ["-p", "absent", "-p", "no:cacheprovider", f"--junit-xml={junit}"]
    done = run_module(
        *(module, *given, *options, *arguments),
        imports=imports,
        cwd=folder.parent,
        env=environment,
        timeout=300,
    )
    outcomes = tuple(_outcomes(junit)) if junit.exists() else ()
    return Run(done.returncode, done.stdout, done.stderr, outcomes)


def _outcomes(junit: Path) -> list[Outcome]:
    found = []
    for case in ET.parse(junit).getroot().iter("testcase"):
        function, _, rest = (case.get("name") or "").partition("[")
        status, detail = "passed", ""
        for tag in ("failure", "error", "skipped"):
            element = case.find(tag)
            if element is not None:
                status = {"failure": "failed", "error": "error"}.get(tag, tag)
                detail = f"{element.get('message')}\n{element.text}"
        records = tuple(
            json.loads(item.get("value") or "")
            for item in case.iter("property")
            if item.get("name") == "comparison"
        )
        test_class = (case.get("classname") or "").rpartition(".")[2]
        found.append(
            Outcome(test_class, function, rest.rstrip("]"), status, detail, records)
        )
    return found


def table_of(run: Run) -> dict[tuple[str, str], list[str]]:
    """Return the words behind each row of the table at the end, by op_type and source."""
    rows: dict[tuple[str, str], list[str]] = {}
    _, _, table = run.stdout.partition("what was compared")
    op_type = ""
    for line in table.splitlines()[1:]:
        if " definitions were compared" in line:
            return rows
        if not line.startswith(" "):
            op_type = line
            continue
        # a name may have single spaces
        source, _, rest = line.strip().partition("  ")
        rows[op_type, source] = rest.split()
    raise AssertionError(f"no table in:\n{run.stdout}\n{run.stderr}")


def by_status(run: Run) -> dict[str, list[Outcome]]:
    """Return a run's tests by their status."""
    grouped: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run.outcomes:
        grouped[outcome.status].append(outcome)
    return grouped
