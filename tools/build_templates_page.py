"""Write docs/generated/flashinfer-templates.md from an import and a run of its tests.

python tools/build_templates_page.py IMPORT.json [JUNIT.xml ...]

IMPORT.json is what `trace-dataset import --dialect flashinfer --from-installed --json`
printed, the JUnit files are of the tests that `gen-tests` rendered from it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.atomic_write import write_atomically
from generator.rendering.names import class_names

PAGE = "docs/generated/flashinfer-templates.md"
_TESTS = ("contract", "output_shape", "output_dtype", "determinism")


def main(arguments: list[str]) -> int:
    """Write the page; the first argument is the import, the others are runs."""
    imports = json.loads(Path(arguments[0]).read_text("utf-8"))["imports"]
    runs = outcomes(Path(path) for path in arguments[1:])
    text = "".join(page(imports, runs))
    write_atomically(ROOT / PAGE, text.encode("utf-8"))
    print(f"wrote {PAGE}")
    return 0


def outcomes(paths: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Return test class → test → passed, failed or skipped with the reason."""
    found: dict[str, dict[str, str]] = {}
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            name = case.get("classname", "").rpartition(".")[2]
            test = case.get("name", "").partition("[")[0].removeprefix("test_")
            found.setdefault(name, {})[test] = _outcome(case)
    return found


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        element = case.find(kind)
        if element is not None:
            reason = " ".join((element.get("message") or "").split())[:120]
            return f"{'skipped' if kind == 'skipped' else 'failed'}: {reason}"
    return "passed"


def page(
    imports: list[Mapping[str, Any]], runs: Mapping[str, Mapping[str, str]]
) -> Iterable[str]:
    """Yield the page: counts, then a row a template."""
    rows = []
    counts: Counter[str] = Counter()
    for found in imports:
        name = found["definition"]
        if name is None:
            counts["refused"] += 1
            counts["without a reference"] += found["reason"] == "it has no reference"
            rows.append((found["source"], "refused", "", found["reason"]))
            continue
        counts["imported"] += 1
        (class_name,) = class_names([name])
        tests = runs.get(class_name, {})
        bad = [
            f"{t}: {tests[t]}" for t in _TESTS if tests.get(t) not in ("passed", None)
        ]
        missing = [t for t in _TESTS if t not in tests]
        live = tests.get("matches_flashinfer", "not run")
        if bad:
            verdict = bad[0]
        elif missing:
            verdict = "not run"
            counts["not run"] += 1
        else:
            verdict = "contract, shape, dtype and determinism pass"
            counts["passing on a CPU"] += 1
        changes = len(found["changes"])
        imported = f"{found['op_type']}/{name}, {changes} changes"
        rows.append((found["source"], imported, live, verdict))
    yield "# FlashInfer's templates as definitions\n\n"
    yield (
        f"Of FlashInfer {version('flashinfer-python')}, by "
        "`trace-dataset import --dialect flashinfer --from-installed`; this page is "
        "written by `tools/build_templates_page.py`.\n\n"
    )
    yield f"{len(rows)} templates: {counts['imported']} imported, {counts['refused']} "
    yield f"refused, {counts['without a reference']} of these for want of a reference. "
    yield f"{counts['passing on a CPU']} pass on a CPU, {counts['not run']} were not "
    yield "run there to the end.\n\n"
    yield "| template | imported | compared with FlashInfer | verdict |\n|---|---|---|---|\n"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
