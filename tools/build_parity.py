"""Compare every family with transformers at every level, and write the table of it.

`python tools/build_parity.py` compares the families that have no figures in docs/parity.md,
and writes each one's row as soon as it is there: stopped, it goes on where it was.
`python tools/build_parity.py llama t5` compares these again.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from generator.dataset.paths import discover_definitions
from generator.parity.families import FAMILIES
from generator.parity.parity import ParityQuestion, compare
from generator.parity.process import DTYPES
from generator.parity.report import ComparedModel, failures
from generator.problems import Failure

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "parity.md"
FOLDER = Path(os.environ.get("GEN_TESTS_TRANSFORMERS", ROOT / ".transformers"))
LEVELS = ("stage", "layer", "forward", "decode", "train")
STEPS = 20
BEGIN = "<!-- families: written by tools/build_parity.py -->\n"
END = "<!-- end of families -->\n"
HEAD = (
    "family",
    "model that stands for it",
    "CPU",
    "stages with a definition",
    *(f"{level}, {dtype}" for level in LEVELS for dtype in DTYPES),
)


def main() -> None:
    """Write the rows of the families asked for, or of those without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--jobs", type=int, default=1, help="families at a time")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a family")
    asked = parser.parse_args()
    names = asked.families or [name for name in FAMILIES if name not in rows()]
    broken = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        coming = {pool.submit(row, name, asked.limit): name for name in names}
        for done in as_completed(coming):
            name = coming[done]
            try:
                cells, why = done.result()
            except Failure as failure:
                broken.append(f"{name}: {failure}")
            else:
                write({**rows(), name: cells})
                broken += why
            print(f"{name} is done", file=sys.stderr)
    print("\n".join(broken) or "all agree")
    sys.exit(bool(broken))


def rows() -> dict[str, list[str]]:
    """Return the families that have figures on the page: name → cells of its row."""
    table = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")
    ]
    return {
        cells[0].strip("`"): cells[1:]
        for cells in lines
        if len(cells) == len(HEAD) and cells[0].strip("`") in FAMILIES
    }


def write(of: Mapping[str, Sequence[str]]) -> None:
    """Write the table, a row for each family that has figures, and what they took."""
    cells = [HEAD, ["---", "---", *["---:"] * (len(HEAD) - 2)]]
    cells += [[f"`{name}`", *of[name]] for name in FAMILIES if name in of]
    table = "".join(f"| {' | '.join(row)} |\n" for row in cells)
    spent = sum(int(row[1].split()[0]) for row in of.values())
    head, rest = PAGE.read_text().split(BEGIN)
    left = ", ".join(f"`{name}`" for name in FAMILIES if name not in of)
    last = f"{len(of)} families in {spent} s of CPU"
    last += f"; without figures: {left}." if left else "."
    PAGE.write_text(f"{head}{BEGIN}{table}\n{last}\n{END}{rest.split(END)[1]}")


def row(name: str, limit: float) -> tuple[list[str], list[str]]:
    """Return a family's cells, and what broke a bound."""
    before = os.times()
    question = ParityQuestion(LEVELS, steps=STEPS)
    (one,) = compare(ROOT, discover_definitions(ROOT), [name], question, FOLDER, limit)
    after = os.times()
    spent = sum(after[:4]) - sum(before[:4])
    stages = one.found[DTYPES[0]]["stage"]
    have = {entry["stage"] for entry in stages if entry["definition"]}
    every = {entry["stage"] for entry in stages}
    cells = [
        one.model,
        f"{spent:.0f} s",
        f"{len(have)} of {len(every)}",
        *(_cell(level, one.found[d][level]) for level in LEVELS for d in DTYPES),
    ]
    return cells, list(_broken(name, one))


def _broken(name: str, one: ComparedModel) -> Iterator[str]:
    for dtype in DTYPES:
        for level in LEVELS:
            for why in failures(level, one.found[dtype][level]):
                yield f"{name}, {dtype}, {level}: {why}"


def _cell(level: str, values: Any) -> str:
    """Return the worst figure of a level: NMSE, or the ratio to transformers' own."""
    if level == "decode" and not values["pages"]:
        return "no cache"
    entries: Sequence[Mapping[str, Any]] = values
    if level in ("forward", "train"):
        entries = [values]
    elif level == "decode":
        entries = values["pages"]
    keys = ("gradient", "ratio", "nmse")
    figures = [next(of[key] for key in keys if key in of) for of in entries]
    text = f"{max(figures):.1e}" if max(figures) < 1e-3 else f"{max(figures):.2f}"
    return f"FAILED, {text}" if any(failures(level, values)) else text


if __name__ == "__main__":
    main()
