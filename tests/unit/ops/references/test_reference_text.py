"""How the text of a reference is read from its module."""

from __future__ import annotations

import ast

import pytest

from generator.ops import reference_text as module
from generator.ops.reference_text import reference_text
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
    text = reference_text("any", source(SOURCE))
    assert text == SOURCE[SOURCE.index("import torch") :]


def test_a_constant_is_replaced_where_it_stands(source):
    text = reference_text("any", source(SOURCE), EPS=1e-05)
    assert "EPS = 1e-05  # as published\nOTHER = 3\n" in text


def test_an_unknown_constant_is_an_error(source):
    with pytest.raises(ValueError, match="no top-level constant TOP_K"):
        reference_text("any", source(SOURCE), TOP_K=1)


def test_a_module_without_import_is_an_error(source):
    with pytest.raises(ValueError, match="begins with an import"):
        reference_text("any", source("def run():\n    return 1\n"))


def test_a_module_that_is_not_ascii_is_an_error(source):
    with pytest.raises(ValueError, match="keep the reference ASCII"):
        reference_text("any", source(SOURCE.replace("published", "publi\u00e9")))


@pytest.mark.parametrize("path", REFERENCES.values(), ids=lambda path: path.stem)
def test_references_import_only_torch_and_math(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.Import)]
    names = {alias.name for node in imports for alias in node.names}
    assert names <= {"torch", "math"}
    assert not any(isinstance(node, ast.ImportFrom) for node in nodes)
