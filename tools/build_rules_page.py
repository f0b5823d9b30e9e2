"""Write docs/rules.md, the page of all rules, or check that it is up to date.

python tools/build_rules_page.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.files import write_atomically
from generator.rules.explain import PAGE, as_page


def main() -> int:
    """Write or check the page; the exit status says whether it had drifted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check: bool = parser.parse_args().check
    path, content = ROOT / PAGE, as_page().encode("utf-8")
    if path.exists() and path.read_bytes() == content:
        return 0
    if check:
        print(f"{PAGE} is not what the rules say: run python tools/build_rules_page.py")
        return 1
    write_atomically(path, content)
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
