"""The page of limits: what was audited, what survived, what is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.dataset.paths import LIMITS_KEPT
from generator.results import limits_page
from generator.results.audits import Audited, as_text
from generator.rules.basis import basis_of
from tests.builders import loaded

NAME = "argmax_rows_v128256"
COUNTS = {"caught": 6, "equivalent": 0, "survived": 1, "timed out": 0}


def page_with(
    audit: Audited | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Return the page's lines of a dataset that has one definition."""
    known = loaded(NAME)
    read = type("Read", (), {"definitions": [known]})
    monkeypatch.setattr(limits_page, "load_definitions", lambda root: read)
    if audit is not None:
        path = tmp_path / LIMITS_KEPT
        path.parent.mkdir()
        path.write_text(as_text({NAME: audit}))
    return limits_page.limits_page(tmp_path).splitlines()


def test_an_audit_of_the_text_counts_and_its_survivors_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survivors = ({"name": "right for the first 8", "before": "", "after": ""},)
    audit = Audited(basis_of(loaded(NAME)), COUNTS, survivors, date="2026-11-26")
    page = page_with(audit, tmp_path, monkeypatch)
    assert "| argmax | 1 | 1 | 1 | 1 | 7 | 6 | 0 | 1 |" in page
    assert f"| argmax | {NAME} | right for the first 8 |" in page
    assert any(line.startswith("| argmax | batch_size ") for line in page)


def test_an_audit_of_another_text_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = Audited("0" * 64, {**COUNTS, "survived": 0}, date="2026-11-26")
    page = page_with(audit, tmp_path, monkeypatch)
    assert "| argmax | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert page == page_with(None, tmp_path, monkeypatch)


def test_what_needs_more_memory_than_a_machine_has_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_page, "_FEW_GIB", 0)
    page = page_with(None, tmp_path, monkeypatch)
    assert any(line.startswith("| argmax | past-limits | 1 |") for line in page)
