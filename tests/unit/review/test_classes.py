"""The page says what each class of change gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.review.treatment import TREATMENTS

PAGE = Path(__file__).parents[3] / "docs/review.md"


@pytest.mark.parametrize("name", [treatment.name for treatment in TREATMENTS])
def test_the_table_names_each_class(name: str) -> None:
    lines = PAGE.read_text("utf-8").split("\n")
    first = lines.index("| class | judged by | verdict at best |")
    table = "\n".join(lines[first : lines.index("", first)])
    assert name in " ".join(row.split("|")[1] for row in table.split("\n"))
