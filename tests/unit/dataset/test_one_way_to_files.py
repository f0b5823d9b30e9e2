"""One module reads a dataset's files and one writes them: nobody else opens a path."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import generator

PACKAGE = Path(generator.__file__).parent
HANDLES = [
    "cli",
    "dataset",
    "dialects",
    "evaluation",
    "ground_truth",
    "hub",
    "models",
    "mutation",
    "parity",
    "rendering",
    "results",
    "review",
    "rules",
    "validation",
]
OURS = ("dataset/file_reading.py", "dataset/atomic_write.py", "dataset/lock.py")
METHODS = frozenset(
    [
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "mkdir",
        "makedirs",
        "unlink",
        "rename",
        "rmtree",
        "copyfile",
        "copy2",
        "copytree",
        "glob",
        "rglob",
        "iterdir",
        "scandir",
        "listdir",
        "symlink",
        "symlink_to",
        "touch",
        "truncate",
        "hardlink_to",
    ]
)
OF_OS = frozenset(["open", "replace", "remove", "walk", "link", "chmod"])
# what is opened elsewhere, and why that is no path of a dataset
SOFTWARE = "files of this software, or of an installed package"
TEMPORARY = "a temporary folder that this process made"
PROCESS = "/dev or /proc"
SANDBOX = "runs in the sandbox, where there is nothing of ours"
NAMED = "a path that the user typed"
GIT = "the checkout, compared with git's own objects; links are read as links"
ALLOWED = {
    "cli/comment.py": NAMED,
    "cli/output.py": PROCESS,
    "dataset/failure_file.py": NAMED,
    "dataset/model_figures.py": SOFTWARE,
    "dataset/plugins.py": SOFTWARE,
    "dataset/schema.py": SOFTWARE,
    "dialects/reference_text.py": SOFTWARE,
    "dialects/registered.py": SOFTWARE,
    "dialects/template_child.py": PROCESS,
    "evaluation/building.py": SANDBOX,
    "evaluation/certification/process.py": PROCESS,
    "evaluation/certification/result.py": NAMED,
    "evaluation/sanitizing/tool.py": TEMPORARY,
    "evaluation/checkers/command.py": TEMPORARY,
    "evaluation/clock/links.py": PROCESS,
    "evaluation/clock/nursery.py": PROCESS,
    "evaluation/confined.py": SOFTWARE,
    "evaluation/failures.py": NAMED,
    "evaluation/namespaces.py": SANDBOX,
    "evaluation/returned.py": PROCESS,
    "evaluation/sharing.py": TEMPORARY,
    "evaluation/timing.py": PROCESS,
    "evaluation/worker.py": SANDBOX,
    "ground_truth/recording.py": TEMPORARY,
    "ground_truth/recording_differences.py": NAMED,
    "hub/pull.py": "the root, which the user typed, and the folder of downloads, which "
    "is looked at first",
    "hub/push.py": "compared with the hash of what was read before",
    "hub/remote.py": "the folder of downloads, which `pull` looks at first",
    "hub/review_sources.py": TEMPORARY,
    "models/config.py": SOFTWARE,
    "parity/calls.py": TEMPORARY,
    "parity/model_factory.py": SOFTWARE,
    "rendering/standalone.py": SOFTWARE,
    "rendering/tolerance_table.py": SOFTWARE,
    "results/run_results.py": NAMED,
    "review/audit/subject.py": TEMPORARY,
    "review/canary.py": TEMPORARY,
    "review/crossed.py": TEMPORARY,
    "review/definition_diff.py": SOFTWARE,
    "review/execute.py": TEMPORARY,
    "review/failing.py": TEMPORARY,
    "review/git.py": GIT,
    "review/page.py": SOFTWARE,
    "review/rendered.py": TEMPORARY,
    "review/scratch.py": TEMPORARY,
    "review/sources.py": TEMPORARY,
    "review/tree.py": TEMPORARY,
    "rules/route_calls.py": SOFTWARE,
    "rules/routes.py": SOFTWARE,
    "rules/torch_names.py": SOFTWARE,
    "validation/execute/batch.py": SANDBOX,
    "validation/execute/run.py": TEMPORARY,
}
MOST = 120
"""Calls in these modules altogether: a new one there is looked at, and counted."""


def opened(source: str) -> Iterator[str]:
    """Yield the calls of a module that open, list, make or remove a path."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                yield f"{node.lineno}: open"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr=name)):
                if name in OF_OS | METHODS:
                    yield f"{node.lineno}: os.{name}"
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS:
                yield f"{node.lineno}: {name}"
            case ast.Call(func=ast.Attribute(value=value, attr="open")):
                # blobs, pages and sessions are opened too; they are no paths
                if isinstance(value, ast.Call | ast.BinOp):
                    yield f"{node.lineno}: open"
            case ast.ImportFrom(module="os" | "shutil" | "io", names=names):
                bad = {"open", *METHODS, *OF_OS} & {alias.name for alias in names}
                yield from (f"{node.lineno}: {name}" for name in bad)


@pytest.mark.parametrize(
    "source",
    [
        "open('x')",
        "Path('x').open()",
        "(root / path).open('rb')",
        "path.read_text()",
        "path.write_bytes(b'')",
        "path.parent.mkdir(parents=True)",
        "os.open('x', 0)",
        "os.replace('a', 'b')",
        "os.walk('x')",
        "shutil.copyfile('a', 'b')",
        "from os import open as o",
        "root.rglob('*.json')",
    ],
)
def test_what_opens_a_path_is_recognised(source: str) -> None:
    assert list(opened(source))


def test_no_other_module_opens_a_path_of_a_dataset() -> None:
    found, allowed = {}, {}
    for package in HANDLES:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            name = path.relative_to(PACKAGE).as_posix()
            if name not in OURS and (there := list(opened(path.read_text("utf-8")))):
                (allowed if name in ALLOWED else found)[name] = there
    assert found == {}, "use dataset.file_reading and dataset.atomic_write"
    assert sum(map(len, allowed.values())) <= MOST
