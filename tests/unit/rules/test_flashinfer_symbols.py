"""`fi_api:` tags are looked up in FlashInfer's sources, which are never imported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from generator.rules.cross import has_symbol, installed_flashinfer

SOURCES = {
    "__init__.py": "from .norm import rmsnorm as rmsnorm\nfrom .rope import (\n    apply,\n)\n",
    "norm/__init__.py": "raise SystemExit('imported')\n\n\ndef rmsnorm(x):\n    pass\n",
    "rope.py": "try:\n    def apply(x):\n        pass\nexcept ImportError:\n    pass\n",
    "decode.py": (
        "class Wrapper:\n    def run(self):\n        pass\n\n\n"
        "class Child(Wrapper):\n    pass\n\n\nOld = Wrapper\n"
    ),
    "star.py": "from .decode import *\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of sources that look like FlashInfer's, on the path."""
    for name, text in SOURCES.items():
        file = tmp_path / "site/flashinfer" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    has_symbol.cache_clear()
    return tmp_path / "site/flashinfer"


@pytest.mark.parametrize(
    ("symbol", "there"),
    [
        ("flashinfer.rmsnorm", True),
        ("flashinfer.apply", True),
        ("flashinfer.norm", True),
        ("flashinfer.norm.rmsnorm", True),
        ("flashinfer.rope.apply", True),
        ("flashinfer.decode.Wrapper", True),
        ("flashinfer.decode.Wrapper.run", True),
        ("flashinfer.decode.Wrapper.plan", False),
        ("flashinfer.decode.Child.plan", True),
        ("flashinfer.decode.Old", True),
        ("flashinfer.star.Wrapper", True),
        ("flashinfer.norm.rmsnrom", False),
        ("flashinfer.gone.rmsnorm", False),
        ("flashinfer.norm.x", False),
    ],
)
def test_symbols_are_found_in_the_text(package: Path, symbol: str, there: bool) -> None:
    assert installed_flashinfer() == package
    assert has_symbol(package, symbol) is there
    assert "flashinfer" not in sys.modules


def test_a_wrong_symbol_is_a_problem(package: Path, dataset: Any) -> None:
    dataset.definition(
        tags=["fi_api:flashinfer.norm.rmsnorm", "fi_api:flashinfer.norm.rmsnrom"]
    )
    problem = dataset.only("tag-fi-api")
    assert problem.pointer == "/tags/1"
    assert "'flashinfer.norm.rmsnrom'" in problem.message


def test_without_flashinfer_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, dataset: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    dataset.definition(tags=["fi_api:flashinfer.norm.rmsnrom"])
    assert dataset.problems() == ()
