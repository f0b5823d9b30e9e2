"""Every wrong solution is of one class, each class has several, and the page counts them."""

from __future__ import annotations

from collections import Counter

from tests.builders import ROOT
from tests.functional.catalogue import HACKS, KINDS, table


def test_every_hack_is_of_one_class() -> None:
    of_hacks = [kind for kind in KINDS if kind.tests == "test_evaluate_hacks.py"]
    names = Counter(name for kind in of_hacks for name in kind.members)
    assert names == Counter(hack.name for hack in HACKS)
    assert set(names.values()) == {1}


def test_every_class_has_at_least_three_members_and_a_test() -> None:
    for kind in KINDS:
        assert len(kind.members) >= 3, kind.name
        assert list((ROOT / "tests").rglob(kind.tests)), kind.tests


def test_every_hack_says_what_refuses_it() -> None:
    assert [hack.name for hack in HACKS if not hack.by or not hack.verdicts] == []


def test_the_page_has_the_counts() -> None:
    assert table() in (ROOT / "docs/evaluate.md").read_text(), f"\n{table()}"
