"""How the text of a reference is read from its module."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from generator.ops import reference_text as module
from generator.ops.reference_text import NoVariant, reference_text
from tests.builders import REFERENCES

SOURCE = '''"""What the module is for."""

import torch

EPS = 1e-06  # as published
OTHER = 3


def run(x: torch.Tensor) -> torch.Tensor:
    return x + EPS
'''


@pytest.fixture
def source(tmp_path, monkeypatch):
    def write(text: str) -> str:
        (tmp_path / "references").mkdir()
        (tmp_path / "references" / "made_up.py").write_text(text, encoding="utf-8")
        return "made_up"

    monkeypatch.setattr(module, "op_folder", lambda op_type: tmp_path)
    return write


def test_text_begins_at_the_first_import(source):
    text = str(reference_text("any", source(SOURCE)))
    assert text == SOURCE[SOURCE.index("import torch") :]


def test_a_constant_is_replaced_where_it_stands(source):
    text = str(reference_text("any", source(SOURCE), EPS=1e-05))
    assert "EPS = 1e-05  # as published\nOTHER = 3\n" in text


def test_an_unknown_constant_is_an_error(source):
    with pytest.raises(ValueError, match="no top-level constant TOP_K"):
        str(reference_text("any", source(SOURCE), TOP_K=1))


def test_a_module_without_import_is_an_error(source):
    with pytest.raises(ValueError, match="begins with an import"):
        str(reference_text("any", source("def run():\n    return 1\n")))


def test_a_module_that_is_not_ascii_is_an_error(source):
    with pytest.raises(ValueError, match="keep the reference ASCII"):
        str(reference_text("any", source(SOURCE.replace("published", "publi\u00e9"))))


@pytest.mark.parametrize("text", REFERENCES.values(), ids=list(REFERENCES))
def test_references_import_only_torch_and_math(text):
    nodes = list(ast.walk(ast.parse(text)))
    imports = [node for node in nodes if isinstance(node, ast.Import)]
    names = {alias.name for node in imports for alias in node.names}
    assert names <= {"torch", "math"}
    assert not any(isinstance(node, ast.ImportFrom) for node in nodes)


MARKED = """#% set variants = ["", "half", "half twice"] %#
import torch


def run(x):
#% if half %#
    x = x / 2
#% else %#
    x = x + 0
#% endif %#

#% if twice %#
    x = 2 * x
#% endif %#
    return x
"""


@pytest.fixture
def marked(tmp_path, monkeypatch):
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "made_up.py.jinja").write_text(MARKED, encoding="utf-8")
    monkeypatch.setattr(module, "op_folder", lambda op_type: tmp_path)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ((), ["x = x + 0", ""]),
        (("half",), ["x = x / 2", ""]),
        (("twice", "half"), ["x = x / 2", "", "x = 2 * x"]),
    ],
)
def test_words_choose_the_marked_lines(marked, words, lines):
    body = str(reference_text("any", "made_up", words)).splitlines()[4:-1]
    assert [line.strip() for line in body] == lines


@pytest.mark.parametrize("words", [("twice",), ("third",), ("half", "third")])
def test_words_that_no_text_is_written_for_are_refused(marked, words):
    with pytest.raises(
        NoVariant, match=f"lists no variant '{' '.join(sorted(words))}'"
    ):
        str(reference_text("any", "made_up", words))


def test_a_text_without_marks_has_no_variants(source):
    name = source(SOURCE)
    with pytest.raises(NoVariant, match=r"no made_up\.py\.jinja"):
        str(reference_text("any", name, ("half",)))


def test_all_variants_are_listed(marked):
    half, twice = ("half",), ("half", "twice")
    names = [("made_up", words) for words in ((), half, twice)]
    assert module.variants("any") == names


def test_every_marked_line_matters():
    texts = list(REFERENCES.values())
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("text", REFERENCES.values(), ids=list(REFERENCES))
def test_references_are_formatted(text):
    command = [sys.executable, "-m", "ruff", "format", "-"]
    formatted = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    )
    assert formatted.stdout == text
