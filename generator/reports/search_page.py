"""A report's tables as one HTML page with a search, which needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.reports.report import Report
from generator.reports.templates import html_environment


def search_page(report: Report, summary: str) -> str:
    """Return the page of a report; `summary` is the name of the page beside it."""
    data = {"sections": [*_sections(report)]}
    template = html_environment().get_template("tables.html.jinja")
    return template.render(title=report.title, summary=summary, data=data)


def _sections(report: Report) -> Iterator[dict[str, Any]]:
    """Yield title, columns and rows of each table; a title for the first of a section."""
    for section in (*report.sections, *report.details):
        for table in section.tables:
            yield {
                "title": " ".join(filter(None, (section.title, table.title))),
                "columns": [*table.columns],
                "rows": [[*row.cells] for row in table.rows],
            }
