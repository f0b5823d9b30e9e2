"""Build the documentation site of docs/ into site/, with every broken link an error.

python tools/build_site.py [--output FOLDER]

Needs `pip install -e '.[docs]'`. mkdocs.yml names this module as a hook too: it adds the
reference, of what the commands print for --help and of the docstrings of the modules
that an op_type's author imports.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import click

from generator.cli.gen_tests import cli as gen_tests
from generator.cli.trace_dataset import cli as trace_dataset
from tools.build_diagrams import drawn

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


def on_config(config: Any) -> Any:
    """Put the commands' pages into the menu, below their list: mkdocs calls it."""
    for section in config.nav:
        for title, pages in section.items():
            if title == "Reference":
                names = [{name: path} for name, path in command_paths().items()]
                section[title] = [
                    {"Commands": ["reference/commands.md", *names]}
                    if page == {"Commands": "reference/commands.md"}
                    else page
                    for page in pages
                ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference: mkdocs calls it with what docs/ has."""
    from mkdocs.structure.files import File

    pages = {"reference/modules.md": modules_page(), **commands_pages()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with its diagrams, and with Markdown in its folded parts."""
    folded = re.sub(r"<details( open)?>", r'<details\1 markdown="1">', markdown)
    return drawn(folded)


def command_paths() -> dict[str, str]:
    """Return command → the path of its page."""
    return {name: f"reference/{name.replace(' ', '-')}.md" for name in _commands()}


def commands_pages() -> dict[str, str]:
    """Return path → Markdown: a page of each command's --help, and a list of them."""
    paths = command_paths()
    rows = ["# Commands\n", "| command | what it does |", "|---|---|"]
    pages = {}
    for name, command in _commands().items():
        pages[paths[name]] = _help_page(name, command)
        summary = (command.help or "").partition("\n\n")[0]
        page = Path(paths[name]).name
        rows.append(f"| [{name}]({page}) | {' '.join(summary.split())} |")
    return {"reference/commands.md": "\n".join([*rows, ""]), **pages}


def _help_page(name: str, command: click.Command) -> str:
    """Return what a command prints for --help, as lines that a narrow screen can wrap."""
    context = click.Context(command, info_name=name)
    usage = context.get_usage().removeprefix("Usage: ")
    lines = [f"# {name}\n", f"```text\n{' '.join(usage.split())}\n```\n"]
    lines += [
        f"{text}\n" for text in inspect.cleandoc(command.help or "").split("\n\n")
    ]
    records = (
        option.get_help_record(context) for option in command.get_params(context)
    )
    lines += [f"- `{names}`: {text}" for names, text in filter(None, records)]
    if isinstance(command, click.Group):
        lines.append("Its commands are [listed](commands.md).")
    return "\n".join([*lines, ""])


def modules_page() -> str:
    """Return Markdown: for each public module the mark that mkdocstrings fills."""
    return _MODULES_PAGE + "\n".join(f"::: {name}\n" for name in MODULES)


def _commands() -> dict[str, click.Command]:
    """Return name → command, but for those that are hidden."""
    shown = {f"trace-dataset {n}": c for n, c in sorted(trace_dataset.commands.items())}
    both = {"gen-tests": gen_tests, "trace-dataset": trace_dataset, **shown}
    return {name: command for name, command in both.items() if not command.hidden}


if __name__ == "__main__":
    sys.exit(main())
