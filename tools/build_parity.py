"""Compare every family with transformers at every level, and write the table of it.

`python tools/build_parity.py` takes some minutes; the table stands in docs/parity.md.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.paths import discover_definitions
from generator.parity.families import FAMILIES
from generator.parity.parity import ParityQuestion, compare
from generator.parity.report import failures

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "parity.md"
FOLDER = Path(os.environ.get("GEN_TESTS_TRANSFORMERS", ROOT / ".transformers"))
LEVELS = ("stage", "layer", "forward", "decode", "train")
DTYPES = ("float32", "bfloat16")
BEGIN = "<!-- families: written by tools/build_parity.py -->\n"
END = "<!-- end of families -->\n"


def main() -> None:
    """Write the table."""
    start = time.process_time(), os.times().children_user
    found = discover_definitions(ROOT)
    compared = compare(ROOT, found, list(FAMILIES), ParityQuestion(LEVELS), FOLDER)
    words = [f"{level}, {dtype}" for level in LEVELS for dtype in DTYPES]
    rows = [["family", "stages with a definition", *words]]
    rows += [["---", *["---:"] * (1 + len(words))]]
    broken = []
    for name, one in zip(FAMILIES, compared, strict=True):
        stages = one.found[DTYPES[0]]["stage"]
        have = {entry["stage"] for entry in stages if entry["definition"]}
        every = {entry["stage"] for entry in stages}
        cells = [
            _cell(level, one.found[dtype][level])
            for level in LEVELS
            for dtype in DTYPES
        ]
        rows.append([f"`{name}`", f"{len(have)} of {len(every)}", *cells])
        for dtype in DTYPES:
            for level in LEVELS:
                why = failures(level, one.found[dtype][level])
                broken += [f"{name}, {dtype}, {level}: {text}" for text in why]
    spent = os.times().children_user - start[1] + time.process_time() - start[0]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(
        f"{head}{BEGIN}{table}\n{len(FAMILIES)} families in {spent:.0f} s of CPU.\n"
        f"{END}{tail}"
    )
    print("\n".join(broken) or f"{len(FAMILIES)} families agree, {spent:.0f} s of CPU")
    sys.exit(bool(broken))


def _cell(level: str, values: Any) -> str:
    """Return the worst figure of a level: NMSE, or the ratio to transformers' own."""
    if level == "train":
        entries: Sequence[Mapping[str, Any]] = [values]
        figures = [values["gradient"]]
    else:
        if level == "decode":
            entries = values["pages"]
            if not entries:
                return "no cache"
        else:
            entries = [values] if level == "forward" else values
        figures = [entry.get("ratio", entry.get("nmse")) for entry in entries]
    text = f"{max(figures):.1e}" if max(figures) < 1e-3 else f"{max(figures):.2f}"
    return f"FAILED, {text}" if any(failures(level, values)) else text


if __name__ == "__main__":
    main()
