"""Read the source of a reference without importing it.

Where references of a stage differ in some lines they are one text,
`references/NAME.py.jinja`: Python with lines such as `#% if window %#`. Its first lines
list the variants that are written: the words that are set together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from generator.ops.registry import op_folder
from generator.problems import Failure

if TYPE_CHECKING:
    from jinja2 import Template


class NoVariant(ValueError):
    """Raised for words that no text of a reference is written for."""


class NoReference(Failure):
    """Raised with one line where an op_type's folder has no such text."""


@dataclass(frozen=True)
class ReferenceText:
    """The source of a reference: `str()` reads it, from its first import on.

    That raises NoReference where there is no such text, NoVariant for words that it lists
    no variant for, ValueError if a constant is missing or the source is not ASCII.
    """

    op_type: str
    name: str
    words: tuple[str, ...]
    constants: Mapping[str, float]

    def __str__(self) -> str:
        folder = op_folder(self.op_type) / "references"
        source = _source(folder, self.name, frozenset(self.words))
        if not source.isascii():
            raise ValueError(f"{self.name}: ast counts bytes; keep the reference ASCII")
        lines = with_constants(source, **self.constants).splitlines(keepends=True)
        return "".join(lines[_first_import(_parsed(source)) - 1 :])


def reference_text(
    op_type: str, name: str, words: Iterable[str] = (), /, **constants: float
) -> ReferenceText:
    """Return the source of a reference, which is not read before it is asked for.

    `words` are those of a variant that the text lists. Each keyword replaces the value of
    the top-level constant of that name.
    """
    return ReferenceText(op_type, name, tuple(words), constants)


def variants(op_type: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return name and words of every reference text of an op_type, sorted."""
    folder = op_folder(op_type) / "references"
    plain = [(path.stem, ()) for path in folder.glob("*.py")]
    marked = [
        (path.name.removesuffix(".py.jinja"), tuple(words.split()))
        for path in folder.glob("*.py.jinja")
        for words in _listed(path)
    ]
    return sorted([*plain, *marked])


# a family asks for one text for each of its definitions
@cache
def _source(folder: Path, name: str, words: frozenset[str]) -> str:
    marked = folder / f"{name}.py.jinja"
    if not marked.is_file():
        if words:
            raise NoVariant(f"{name} has no variants: there is no {marked.name}")
        try:
            return (folder / f"{name}.py").read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise NoReference(f"There is no reference {error.filename}.") from error
    if words not in map(frozenset, map(str.split, _listed(marked))):
        raise NoVariant(f"{marked.name} lists no variant {' '.join(sorted(words))!r}")
    return _template(marked).render(dict.fromkeys(words, True))


def _listed(path: Path) -> list[str]:
    """Return the variants that a marked text lists, each as its words."""
    listed: list[str] = _template(path).module.variants  # type: ignore[attr-defined]
    return listed


@cache
def _template(path: Path) -> Template:
    """Compile a marked text: a family asks for it once for each of its definitions."""
    # not before a text needs it: families are read by commands that render nothing
    from jinja2 import Environment

    environment = Environment(
        block_start_string="#%",
        block_end_string="%#",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the text is Python, not HTML
    )
    return environment.from_string(path.read_text(encoding="utf-8"))


def with_constants(source: str, **constants: float) -> str:
    """Return a source with other values of top-level constants.

    Raises ValueError if a constant is missing.
    """
    if not constants:
        return source
    tree = _parsed(source)
    lines = source.splitlines(keepends=True)
    for name, number in constants.items():
        value = _constant(tree, name)
        row = value.lineno - 1
        head, tail = lines[row][: value.col_offset], lines[row][value.end_col_offset :]
        lines[row] = f"{head}{number!r}{tail}"
    return "".join(lines)


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _first_import(tree: ast.Module) -> int:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return node.lineno
    raise ValueError("a reference begins with an import")


def _constant(tree: ast.Module, name: str) -> ast.Constant:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and [t.id for t in node.targets if isinstance(t, ast.Name)] == [name]
        ):
            return node.value
    raise ValueError(f"no top-level constant {name}")
