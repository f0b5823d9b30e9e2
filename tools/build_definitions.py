"""Write definitions/, workloads/ and blob/workloads/ from the families.

The same bytes on every run and Python version; torch is not needed. The exit status
is 1 if a file lies there that no family makes (it is never deleted); with `--check`
nothing is written, and a missing or different file counts too. It is 2, and nothing is
written, if a family can't be built.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    # Python put this script's folder on the path, not the repository.
    sys.path.insert(0, str(ROOT))

from generator.ops.family import every_spec
from generator.ops.workloads.lines import spec_files
from generator.problems import Failure

FOLDERS = ("definitions", "workloads", "blob/workloads")


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT, metavar="DIR")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(argv)
    try:
        built = dict(dataset_files())
    except Failure as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if not options.check:
        for path, content in built.items():
            write(options.output / path, content)
    drift = find_drift(built, options.output)
    for message in drift:
        print(message, file=sys.stderr)
    print(f"{len(built)} files, {len(drift)} differences")
    return 1 if drift else 0


def dataset_files() -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of every file the families make."""
    for spec in every_spec():
        yield from spec_files(spec)


def find_drift(built: dict[str, bytes], root: Path) -> list[str]:
    """Return one message for each file that is not as the families make it."""
    messages = []
    for path, content in built.items():
        file = root / path
        if not file.is_file():
            messages.append(f"missing: {path}")
        elif file.read_bytes() != content:
            messages.append(f"differs: {path}")
    op_types = sorted({spec.op_type for spec in every_spec()})
    for folder in (root / top / op_type for top in FOLDERS for op_type in op_types):
        found = (p for p in folder.rglob("*") if p.is_file())
        paths = sorted(p.relative_to(root).as_posix() for p in found)
        messages += [f"not from a family: {p}" for p in paths if p not in built]
    return messages


def write(file: Path, content: bytes) -> None:
    """Write a file whole; one that already has this content is left alone."""
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.tmp")
    temporary.write_bytes(content)
    temporary.replace(file)


if __name__ == "__main__":
    raise SystemExit(main())
