"""The files of this software that a dataset's repository may hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import generator
from generator import PACKAGES
from generator.reports.templates import templates
from generator.review.treatment import holds_software
from generator.review.tree import Tree

TOPS = (*(f"{package}/" for package in PACKAGES), "templates/")
_OF_AN_OP = re.compile(r"generator/ops/op_types/(\w+)/", re.ASCII)


def software_of(tree: Tree) -> Tree:
    """Return the files of the software that a tree holds; most datasets hold none."""
    if not holds_software(tree):
        return {}
    return {p: e for p, e in tree.items() if p.startswith(TOPS) and e.is_file}


def running(path: str) -> Path:
    """Return the file of the software that runs which has a path of the repository."""
    top, _, below = path.partition("/")
    if top == "templates":
        return templates() / below
    return Path(generator.__file__).parents[1] / top / below


def op_types_of(paths: Iterable[str]) -> Collection[str] | None:
    """Return the op_types that files of the software are about; None for all."""
    matches = [_OF_AN_OP.match(path) for path in paths]
    return None if None in matches else {match[1] for match in matches if match}
