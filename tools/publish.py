"""Publish this repository's own dataset: check what it is made of, then push it.

python tools/publish.py --repo OWNER/NAME [--yes] [--allow RULE=REASON …]

Everything goes into one pull request; arguments go to `trace-dataset push`, which
makes a dry run unless --yes is given, and has a gate of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = (
    ("tools/build_definitions.py", "--check"),
    ("-m", "generator.cli.trace_dataset", "validate"),
    ("-m", "generator.cli.trace_dataset", "verify", "--check"),
)
PUSH = ("-m", "generator.cli.trace_dataset", "push", "--all", "--together")


def main(arguments: list[str]) -> int:
    """Check, then push; return the exit status of what stopped it."""
    for check in CHECKS:
        status = run(*check)
        if status:
            print(f"Nothing was pushed: {' '.join(check)} failed.", file=sys.stderr)
            return status
    return run(*PUSH, *arguments)


def run(*arguments: str) -> int:
    """Run Python in the checkout; return its exit status."""
    return subprocess.call([sys.executable, *arguments], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
