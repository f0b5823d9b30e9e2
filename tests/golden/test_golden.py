"""The rendered text of a small dataset, byte for byte: a change of it is seen."""

from __future__ import annotations

import ast
import difflib

from tests.golden.update import EXPECTED, render


def test_rendered_files_are_those_kept() -> None:
    rendered = render()
    kept = {path.name: path.read_bytes().decode() for path in EXPECTED.iterdir()}
    assert sorted(rendered) == sorted(kept), _how_to_update("other files")
    for name, text in rendered.items():
        difference = difflib.unified_diff(
            kept[name].splitlines(), text.splitlines(), "kept", "rendered", lineterm=""
        )
        assert text == kept[name], _how_to_update("\n".join(difference))


def _how_to_update(difference: str) -> str:
    return f"{difference}\n\nIf this is meant: python tests/golden/update.py"


def test_kept_files_cover_what_a_template_can_do() -> None:
    texts = {path.name: path.read_bytes().decode() for path in EXPECTED.iterdir()}
    for text in texts.values():
        ast.parse(text)
    assert set(texts) == {
        "conftest.py.txt",
        "test_gqa_paged.py.txt",
        "test_rmsnorm.py.txt",
        "test_scale.py.txt",
    }
    assert "load_reference([" in texts["test_scale.py.txt"]
    assert "unresolved = " in texts["test_scale.py.txt"]
    assert "def reference_rmsnorm():" in texts["test_rmsnorm.py.txt"]
    assert 'matches("flashinfer")' in texts["test_gqa_paged.py.txt"]
