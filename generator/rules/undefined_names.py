"""Names that a reference reads and nothing binds: it would raise NameError."""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from generator.dataset.definition import Definition
from generator.dataset.python_source import Unparsable, all_nodes, compile_module
from generator.problems import Problem
from generator.problems.messages import did_you_mean, quote
from generator.problems.rule import error

REFERENCE_UNDEFINED_NAME = error("""reference-undefined-name: The reference reads a name
    that it neither defines nor imports.
    Fix: Define the helper in the reference, import the module, or correct the name.
    Finds: `_dequantize(x)` without its `def`""")

# what a module or a class body has without binding it
_GIVEN = frozenset(
    (
        *dir(builtins),
        *("__annotations__", "__builtins__", "__file__", "__module__", "__qualname__"),
    )
)
# what binds names, or asks whether they are bound, in ways that no reader can follow
_DYNAMIC = frozenset(("NameError", "exec", "globals", "locals", "setattr", "vars"))
_READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")


def check(definition: Definition) -> Iterator[Problem]:
    """Yield a Problem for each name that is never bound; none where it does not parse.

    The source is compiled, never executed.
    """
    try:
        bound, found = _names(definition.reference)
    except Unparsable:
        return
    for name, line in found.items():
        message = f"Nothing defines {quote(name)}.{did_you_mean(name, bound)}"
        yield REFERENCE_UNDEFINED_NAME.at(message, "reference", line=line)


def undefined_names(source: str) -> dict[str, int]:
    """Return the names that are read and never bound, with a line that reads each.

    Empty where names may be bound in a way that can't be read: `import *`, `exec`.
    Raises Unparsable.
    """
    return _names(source)[1]


# many definitions have the same reference
@lru_cache(maxsize=64)
def _names(source: str) -> tuple[set[str], dict[str, int]]:
    """Return the names that the module binds, and those that nothing binds.

    The compiler knows which names are global, and leaves out the annotations that are
    never evaluated.
    """
    tree, module = compile_module(source)
    nodes = all_nodes(tree)
    if any(_is_dynamic(node) for node in nodes):
        return set(), {}
    codes = [module]
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    bound = {name for how, name, _ in _accesses(module) if how == "STORE_NAME"}
    # to disassemble functions takes time: only where a name may be found
    read = {node.id for node in nodes if isinstance(node, ast.Name)} - bound - _GIVEN
    if read.isdisjoint(name for code in codes for name in code.co_names):
        return bound, {}
    accesses = [list(_accesses(code)) for code in codes]
    bound |= {n for of in accesses for how, n, _ in of if how == "STORE_GLOBAL"}
    found: dict[str, int] = {}
    for of in accesses:
        own = {name for how, name, _ in of if how == "STORE_NAME"}
        for how, name, line in of:
            if how in _READS and name in read - bound - own:
                found[name] = min(line, found.get(name, line))
    return bound, dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def _accesses(code: CodeType) -> Iterator[tuple[str, str, int]]:
    """Yield (instruction, name, line) of what a module, class or function does."""
    lines, line = dict(dis.findlinestarts(code)), code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = lines.get(instruction.offset) or line
        yield instruction.opname, instruction.argval, line


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.names[0].name == "*"
    return isinstance(node, ast.Name) and node.id in _DYNAMIC
