"""docs/architecture.md names what is there, and all of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.builders import ROOT

TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
NAMED = set(re.findall(r"`([\w./]+)`", TEXT))
FILE = re.compile(r"(\w+/)+\w+\.(py|json|md)")
# folder of a table's row → where its paths begin
ROOTS = (ROOT, ROOT / "generator", ROOT / "kernel_judge")


def modules(folder: Path) -> list[str]:
    """Return the names of a package's modules and packages, `__init__` aside."""
    places = [
        p for p in folder.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    ]
    return sorted({p.stem for p in places} - {"__init__", "__main__"})


@pytest.mark.parametrize("path", sorted(filter(FILE.fullmatch, NAMED)))
def test_a_file_that_is_named_is_there(path: str) -> None:
    assert any((root / path).exists() for root in ROOTS)


@pytest.mark.parametrize("name", modules(ROOT / "generator"))
def test_a_package_is_named(name: str) -> None:
    assert name in NAMED


@pytest.mark.parametrize("name", modules(ROOT / "kernel_judge"))
def test_a_module_of_the_judge_is_named(name: str) -> None:
    assert name in NAMED or f"{name}/" in NAMED


def test_files_that_several_op_types_have_are_named() -> None:
    folders = (ROOT / "generator/ops/op_types").iterdir()
    names = Counter(p.name for folder in folders for p in folder.glob("*.*"))
    assert {name for name, count in names.items() if count > 1} - NAMED == set()


def test_the_library_that_judges_stays_small() -> None:
    """What the generator alone asks for belongs to the generator."""
    files = (ROOT / "kernel_judge").rglob("*.py")
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 5_000
