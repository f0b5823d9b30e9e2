"""The result of a command, as one value that every printer takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from generator.problems import Problem, Rule


class Status(str, Enum):
    """The outcome of a report or of one row; open is neither passed nor failed."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"


class Quoted(str):
    """Text of a dataset: Markdown shows it as code, where no link or name is live."""


class Code(str):
    """A name of our own, such as a rule's: Markdown shows it as code as well."""


@dataclass(frozen=True)
class Row:
    """The cells of a row; a row with a status is a test case of JUnit.

    `why` is what a log says of it in place of the cells.
    """

    cells: Sequence[str]
    status: Status | None = None
    why: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns; without columns each is a line, with colons inside.

    The columns of `words` are aligned to the left, the others to the right; the first
    `keys` columns name a row, and the cells of `marked` say its status. `totals` is the
    last row on a terminal.
    """

    rows: Sequence[Row]
    columns: Sequence[str] = ()
    words: Sequence[str] = ()
    keys: int = 1
    title: str = ""
    marked: str = ""
    totals: Sequence[str] = ()


@dataclass(frozen=True)
class Section:
    """Tables under a title.

    `preface` is Markdown for readers of a document. A section that is not open is
    folded where the format can do that. `count` is what a folded section counts, if
    not its rows.
    """

    title: str
    tables: Sequence[Table]
    preface: str = ""
    is_open: bool = True
    count: int | None = None


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a report.

    `verdict` are words for the status of a review, and `reasons` lead to it.
    """

    status: Status
    summary: str
    verdict: str = ""
    reasons: Sequence[str] = ()


@dataclass(frozen=True)
class Report:
    """The findings of a command, for any printer.

    `problems` may be an iterator, which a printer consumes once; a `conclusion` that
    counts them is a function, called after that. `sections` are more important than the
    problems, `details` less.

    `rules` maps groups to the rules that problems may break. `payload` is the JSON
    value: of its items an iterator is written as an array, item by item, and a function
    is called when everything before it was written. `prefix` leads from the
    repository's root to the dataset's, for readers who show files; it is empty or ends
    in a slash. `notes` asks for notes where they are left out, `strict` says that
    warnings fail. `kind` is put before the word problems, and `command` prints what a
    bounded format left out. `is_page` asks for a document, with `preface` under its
    title, where Markdown is bounded otherwise. `is_said` says that the summary goes to
    stderr: neither the text nor a page has it. `line_in` knows on which line of its file a
    problem's pointer stands, for readers who show files.
    """

    title: str
    command: str
    conclusion: Conclusion | Callable[[], Conclusion]
    payload: Mapping[str, Any]
    sections: Sequence[Section] = ()
    problems: Iterable[Problem] = ()
    details: Sequence[Section] = ()
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    about: str = ""
    preface: str = ""
    kind: str = ""
    prefix: str = ""
    notes: bool = False
    strict: bool = False
    is_page: bool = False
    is_said: bool = False
    line_in: Callable[[Problem], int | None] = lambda problem: None

    def conclude(self) -> Conclusion:
        """Return what the report comes to: right once its problems were consumed."""
        return self.conclusion() if callable(self.conclusion) else self.conclusion


def cases(report: Report) -> Iterator[tuple[str, str, str, Status]]:
    """Yield group, name, text and status of each row that has a status."""
    for section in (*report.sections, *report.details):
        for table in section.tables:
            for row in table.rows:
                if row.status is not None:
                    name = " ".join(filter(None, row.cells[: table.keys]))
                    text = row.why or _said(table, row)
                    yield section.title or report.title, name, text, row.status


def against(report: Report, conclusion: Conclusion) -> Iterator[str]:
    """Yield in a line each why a report did not pass: reasons, or rows that failed."""
    if conclusion.verdict:
        yield from conclusion.reasons
        return
    for _, name, text, status in cases(report):
        if status is Status.FAILED:
            yield f"{name}: {text}"


def _said(table: Table, row: Row) -> str:
    cells = row.cells[table.keys :]
    if not table.columns:
        return ": ".join(cells)
    named = zip(table.columns[table.keys :], cells, strict=True)
    return ", ".join(f"{column} {cell}" for column, cell in named if cell)


def place(problem: Problem) -> str:
    """Return where a problem is, in words for a person."""
    where = f"{problem.file}#{problem.pointer}" if problem.pointer else problem.file
    return where if problem.line is None else f"{where} line {problem.line}"


def lines_of(problem: Problem) -> tuple[int | None, str]:
    """Return the line of the file, and in words that of a reference inside of it."""
    if not problem.pointer or problem.file.endswith(".jsonl"):
        return problem.line, ""
    is_inner = problem.line is not None
    return None, f"Line {problem.line} of the reference: " if is_inner else ""
