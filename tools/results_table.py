"""Print what a run of the reference tests compared, as a Markdown table.

pytest tests/references --junitxml results.xml
python tools/results_table.py results.xml
"""

from __future__ import annotations

import sys
from pathlib import Path

from generator.report import markdown_table, read_comparisons, summarise


def main(arguments: list[str]) -> int:
    """Print the table of one JUnit file; return 1 where a comparison failed, else 0."""
    if len(arguments) != 1:
        print("usage: python tools/results_table.py RESULTS.xml", file=sys.stderr)
        return 2
    try:
        rows = summarise(read_comparisons(Path(arguments[0])))
    except (OSError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(markdown_table(rows), end="")
    return int(any(row.verdict != "PASSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
