"""What is read back of a rendered file: its definitions and their hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.rendering.read_back import rendered_definitions
from generator.rules.basis import basis_of_bytes

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("op_type", ["rmsnorm", "gqa_paged"])
def test_every_definition_of_an_op_type_has_the_hash_of_its_text(op_type: str) -> None:
    """However many definitions the file tests: gqa_paged has more than a hundred."""
    text = (ROOT / f"tests/references/test_{op_type}.py").read_text("utf-8")
    files = sorted((ROOT / "definitions" / op_type).glob("*.json"))
    assert rendered_definitions(text) == {
        path.stem: basis_of_bytes(path.read_bytes(), path.name) for path in files
    }


def test_a_class_without_a_hash_is_still_of_its_definition() -> None:
    """Files that an older version rendered have the hashes in their docstring."""
    assert rendered_definitions('class TestA:\n    name = "a"\n') == {"a": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class TestA(",
        "x = 1\0",
        "class Base:\n    sha256 = 'f'\n",
        "class TestA:\n    name = 1 + 1\n    sha256 = f('a')\n",
        '"""' + "f" * 64 + '  a\n"""\n',
        "(" * 10_000,
    ],
)
def test_other_texts_test_nothing(text: str) -> None:
    """Among them texts that are no Python, and a hash in a docstring."""
    assert rendered_definitions(text) == {}
