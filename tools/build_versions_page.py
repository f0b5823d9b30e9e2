"""Write docs/generated/flashinfer-versions.md: which answers moved between two versions.

python tools/build_versions_page.py BEFORE AFTER

The two are folders of recordings by `trace-dataset record`, made on the same kind of GPU
with two versions of FlashInfer. Of the first only the definitions of the second count.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.atomic_write import write_atomically
from generator.ground_truth.recording_differences import (
    compare,
    differences_report,
    read_side,
)
from generator.reports import printed

PAGE = "docs/generated/flashinfer-versions.md"


def main(arguments: list[str]) -> int:
    """Write the page of two folders of recordings; print what could not be compared."""
    before, after = map(read_side, arguments)
    both = {name: labels for name, labels in before.items() if name in after}
    found = compare(both, after)
    report = differences_report(found, is_page=True)
    write_atomically(ROOT / PAGE, "".join(printed(report, "markdown")).encode("utf-8"))
    for remark in found.remarks:
        print(remark)
    print(f"wrote {PAGE}: {report.conclude().summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
