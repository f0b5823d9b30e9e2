"""Names and docstrings of the packages: words that say nothing become fewer, never more.

A limit is the number that is left. Lower it with every one that you rename; a name that is
over it gets the field's word instead: `cases`, `spec`, `request`, `reply`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.builders import ROOT

# participles for nouns: how many functions, parameters and variables have the name
NAMES = {
    "found": 5,
    "made": 15,
    "given": 6,
    "told": 0,
    "said": 6,
    "kept": 24,
    "own": 9,
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in ("generator", "kernel_judge"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "references" not in path.parts:
                name = path.relative_to(ROOT).as_posix()
                yield name, ast.parse(path.read_text("utf-8"))


TREES = dict(modules())


def defined(tree: ast.Module) -> set[str]:
    """Return the names that a module's code gives, each once a module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
    return found


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield node, ast.get_docstring(node) or ""


@pytest.mark.parametrize("word", NAMES)
def test_a_word_that_names_nothing_is_the_name_in_no_more_modules(word: str) -> None:
    places = [name for name, tree in TREES.items() if word in defined(tree)]
    assert len(places) <= NAMES[word], places


VERBS = (
    "Add|Answer|Ask|Be|Bound|Build|Call|Check|Choose|Collect|Compare|Compute|Convert|"
    "Declare|Describe|Draw|Evaluate|Find|Fork|Give|Have|Hold|Holds|Judge|Keep|Know|Let|"
    "Look|Make|Map|Measure|Name|Open|Plan|Put|Read|Record|Refuse|Remember|Render|Replace|"
    "Report|Return|Run|Say|Send|Show|Stand|Stop|Take|Tell|Test|Time|Turn|Walk|Watch|Write"
)
QUESTIONS = "What|How|Which|Who|Why|Where"


def test_a_class_s_docstring_says_what_the_value_is() -> None:
    for name, tree in TREES.items():
        for node, text in docstrings(tree):
            if isinstance(node, ast.ClassDef):
                where = (name, node.name, text)
                assert not re.match(rf"({VERBS}|{QUESTIONS})\b", text), where


def test_no_docstring_begins_with_a_question() -> None:
    for name, tree in TREES.items():
        for _, text in docstrings(tree):
            assert not re.match(rf"({QUESTIONS})\b", text), (name, text)


def test_no_class_has_the_name_of_another_module_s() -> None:
    """Private classes too: a reader looks one up by its name."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1}
