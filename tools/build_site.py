"""Build the documentation site of docs/ into site/, with every broken link an error.

python tools/build_site.py [--output FOLDER]

Needs `pip install -e '.[docs]'`. mkdocs.yml names this module as a hook too: it adds the
reference, of what the commands print for --help and of the docstrings of the modules
that an op_type's author imports.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import click
from click.testing import CliRunner

from generator.cli.gen_tests import cli as gen_tests
from generator.cli.trace_dataset import cli as trace_dataset

# what an op_type of another distribution imports, and the values that reports are of
MODULES = (
    "kernel_judge.definition",
    "kernel_judge.inputs.seeded_inputs",
    "kernel_judge.comparison.tolerance",
    "kernel_judge.relation",
    "kernel_judge.comparison.compare",
    "generator.ops.spec",
    "generator.ops.family",
    "generator.ops.variation",
    "generator.ops.mutants",
    "generator.ops.reference_text",
    "generator.dataset.definition",
    "generator.problems",
    "generator.reports.report",
)
_MODULES_PAGE = """# Modules

What an op_type's module imports, then the values that commands print. Where a new op_type
goes: [architecture.md](../architecture.md#an-op_type).

"""


def main() -> int:
    """Build the site; the exit status says whether a link is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "site", metavar="FOLDER")
    options = parser.parse_args()
    if not find_spec("material") or not find_spec("mkdocstrings"):
        print("Error: the site's packages are missing: pip install -e '.[docs]'")
        return 2
    folder = str(options.output.resolve())
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder]
    # of what may become of mkdocs one day
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.call(command, cwd=ROOT, env=environment)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference: mkdocs calls it with what docs/ has."""
    from mkdocs.structure.files import File

    for name, text in (("commands", commands_page()), ("modules", modules_page())):
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page whose folded parts are read as Markdown: mkdocs calls it."""
    return re.sub(r"<details( open)?>", r'<details\1 markdown="1">', markdown)


def commands_page() -> str:
    """Return Markdown: what each command prints for --help."""
    lines = ["# Commands\n"]
    for name, usage in _helps():
        lines.append(f"\n## {name}\n\n```text\n{usage}```\n")
    return "".join(lines)


def modules_page() -> str:
    """Return Markdown: for each public module the mark that mkdocstrings fills."""
    return _MODULES_PAGE + "\n".join(f"::: {name}\n" for name in MODULES)


def _helps() -> Iterator[tuple[str, str]]:
    yield "gen-tests", _help(gen_tests, "gen-tests")
    yield "trace-dataset", _help(trace_dataset, "trace-dataset")
    for name, command in sorted(trace_dataset.commands.items()):
        if not command.hidden:
            full = f"trace-dataset {name}"
            yield full, _help(trace_dataset, "trace-dataset", name)


def _help(command: click.Command, program: str, *arguments: str) -> str:
    asked = [*arguments, "--help"]
    runner = CliRunner()
    return runner.invoke(command, asked, prog_name=program, terminal_width=78).output


if __name__ == "__main__":
    sys.exit(main())
