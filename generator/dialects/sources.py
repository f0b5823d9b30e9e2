"""Read the sources that `trace-dataset import` takes, one dialect each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import walk_files
from generator.dataset.json_file import read_json
from generator.dataset.plugins import DIALECTS, plugin
from generator.dialects import flashinfer, flashinfer_bench, sol_execbench
from generator.dialects.imported import Import
from generator.execution.processes import run_python, safe_environment

_PACKAGE = Path(__file__).resolve().parents[2]
_CHILD_SECONDS = 900


class Unreadable(Exception):
    """Raised with one line where a source can't be read at all."""


def read_source(dialect: str, source: Path) -> Iterator[Import]:
    """Yield what each definition of a folder becomes; nothing of it is executed.

    Raises Unreadable where there is no such folder, or nothing of the dialect in it.
    """
    if not source.is_dir():
        if source.exists():
            raise Unreadable(f"{source} is a file: name the folder that it lies in.")
        raise Unreadable(f"There is no folder {source}.")
    readers: dict[str, Any] = {
        "flashinfer": _dumps,
        "sol-execbench": sol_execbench.read,
        "flashinfer-bench": flashinfer_bench.read,
    }
    if dialect not in readers:
        module = plugin(DIALECTS, dialect)
        readers[dialect] = getattr(module, "read", None)
        if not callable(readers[dialect]):
            raise Unreadable(f"{module.__name__} can't read: it has no read().")
    has_any = False
    for imported in readers[dialect](source):
        has_any = True
        yield imported
    if not has_any:
        raise Unreadable(f"There is nothing of the dialect {dialect} in '{source}'.")


def _dumps(source: Path) -> Iterator[Import]:
    for name in walk_files(source, "", ".json"):
        read = read_json(source, name)
        if not read.ok or read.problems:
            yield Import(name, reason=read.problems[0].message)
        else:
            yield flashinfer.convert({"template": name, "dump": read.value})


def installed(
    op_types: Sequence[str], axes: Mapping[str, int]
) -> tuple[str, list[dict[str, Any]]]:
    """Return the version of the installed FlashInfer and sketches of its templates.

    They are made by a process of its own, which imports FlashInfer. Raises Unreadable
    where that fails.
    """
    import importlib.metadata

    try:
        version = importlib.metadata.version("flashinfer-python")
    except importlib.metadata.PackageNotFoundError:
        raise Unreadable(
            "No FlashInfer is installed: pip install flashinfer-python."
        ) from None
    request = json.dumps({"op_types": list(op_types), "axes": dict(axes)})
    command = ["-m", "generator.dialects.template_child", request]
    environment = safe_environment(paths=[str(_PACKAGE)])
    try:
        done = run_python(command, environment=environment, timeout=_CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unreadable(
            f"FlashInfer {version} took more than {_CHILD_SECONDS} s."
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unreadable(f"FlashInfer {version} can't be imported: {last[:300]}")
    return version, [json.loads(line) for line in done.stdout.splitlines()]


def read_installed(
    op_types: Sequence[str], axes: Mapping[str, int]
) -> Iterator[Import]:
    """Yield what each template of the installed FlashInfer becomes."""
    version, sketches = installed(op_types, axes)
    if not sketches:
        asked = ", ".join(op_types)
        raise Unreadable(f"FlashInfer {version} has no template of {asked}.")
    for sketch in sketches:
        yield flashinfer.convert(sketch, version)
