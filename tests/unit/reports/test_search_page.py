"""The page with a search: every row is in it, and nothing quoted becomes markup."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from generator.reports.report import Conclusion, Report, Row, Section, Status, Table
from generator.reports.search_page import search_page

HOSTILE = "</script><img src=x onerror=alert(1)>"


def report(*sections: Section, title: str = "Title") -> Report:
    return Report(
        title=title,
        command="",
        conclusion=Conclusion(Status.PASSED, ""),
        payload={},
        sections=sections,
    )


def data(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def test_the_page_has_every_table_with_its_rows() -> None:
    first = Table([Row(("a", "1"), Status.PASSED)], ("name", "count"))
    second = Table([Row(("b",))], ("name",), title="more")
    page = search_page(report(Section("One", [first, second])), "one.md")
    assert data(page)["sections"] == [
        {"title": "One", "columns": ["name", "count"], "rows": [["a", "1"]]},
        {"title": "One more", "columns": ["name"], "rows": [["b"]]},
    ]
    assert '<a href="one.md">' in page


def test_what_a_dataset_says_is_no_markup() -> None:
    table = Table([Row((HOSTILE,))], ("name",))
    page = search_page(report(Section(HOSTILE, [table]), title=HOSTILE), "one.md")
    assert HOSTILE not in page
    assert page.count("</script>") == 2
    assert html.escape(HOSTILE) in page
    assert data(page)["sections"][0]["rows"] == [[HOSTILE]]
