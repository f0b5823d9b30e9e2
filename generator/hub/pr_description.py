"""Write the description of a pull request: bounded, with the dataset's text as text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from generator import __version__
from generator.dataset.changes import owner_of, sort_changes
from generator.dataset.libraries import libraries
from generator.hub.package import Delta, Package, is_same
from generator.hub.preconditions import OF_EVIDENCE, OF_TESTS, OWN, RENDERING
from generator.hub.remote import RemoteFile
from generator.problems import Severity
from generator.problems.messages import plural
from generator.rendering.render import environment
from generator.reports.markdown import LIMIT, folded, inert, rows_of, table_of
from generator.reports.report import Quoted, Row, Section, Status, Table
from generator.results.verification import VerificationLine
from generator.results.verification_report import LINES, line_row
from generator.review.change import Change, make_changes
from generator.review.checklist import ONE_DEFINITION, ChecklistAnswer, answer_all
from generator.review.context import ReviewContext
from generator.review.report import checklist
from generator.review.sources import BaseAndHead
from generator.review.tree import Tree, TreeEntry

_ONE_BY_ONE = 5
"""Definitions of which each has its own checklist; of more, points are counted."""

_VERSIONS = ("gpu", "sm", "driver", "torch", "cuda", *libraries(), "python")
_ROOM = LIMIT - 4_000
_SHORTEST_ROW = 40
_MORE = "`verification/` and the files have all"
# nothing of a dataset can say this: its text is escaped
_FILES, _COMPARED = "<!-- files -->", "<!-- compared -->"


def describe(
    package: Package,
    delta: Delta,
    remote: Mapping[str, RemoteFile],
    folders: Sequence[str],
) -> str:
    """Return the description; the same facts give the same text.

    `delta` is against the branch that it is to be merged into, `remote` are that
    branch's files and `folders` its folders at the top.
    """
    judged, mine = package.judged, set(package.bundle.keys)
    names = [file.name for file in package.bundle.files]
    is_short = len(names) <= _ONE_BY_ONE
    allowed: dict[str, list[str]] = {}
    for objection in package.allowed:
        allowed.setdefault(objection.rule, []).append(objection.message)
    lines = [x for x in judged.table.lines if (x.op_type, x.definition) in mine]
    lesser = [p.file for p in judged.problems if p.severity is not Severity.ERROR]
    changes, sides = _changes(package, delta, remote, folders)
    models = {m for c in changes if c.new for m in c.new.tag_values("model")}
    fresh = {(id(line.run), line.definition) for line in lines if not line.stale}
    counts = Counter(run for run, _ in fresh)
    audits = judged.audits
    # the push compared them with what it renders: where it had to object, none counts
    rendered = () if RENDERING in allowed else tuple(sides.head)
    known = ReviewContext(
        package.root,
        sides,
        judged.problems,
        (),
        judged.runs,
        True,
        rendered=rendered,
        audits_after=audits,
    )
    answers = [
        answer
        for answer in answer_all(changes, known)
        if answer.definition or answer.point == ONE_DEFINITION
    ]
    points: dict[str, list[ChecklistAnswer]] = {}
    for answer in answers:
        points.setdefault(answer.point, []).append(answer)
    chosen = _options("--op-type", sorted({op_type for op_type, _ in mine}))
    facts = {
        "plural": plural,
        "inert": inert,
        "version": __version__,
        "names": names,
        "delta": delta,
        "size": human(sum(file.size for file in delta.sent)),
        "models": sorted(models)[:20],
        "runs": [(run, n) for run in judged.table.runs if (n := counts[id(run)])],
        "versions": _VERSIONS,
        "notes": sum((owner_of(path) or ((), ""))[0] in mine for path in lesser),
        "is_valid": allowed.keys() <= set(OWN),
        "is_rendered": allowed.keys().isdisjoint(OF_TESTS),
        "is_proven": allowed.keys().isdisjoint(OF_EVIDENCE),
        "points": points,
        "checklist": table_of(checklist(answers)) if is_short else "",
        "allowed": allowed,
        "reasons": package.options.reasons,
        "chosen": _options("--definition-name", names) if is_short else chosen,
        "tests": " " + _options("--definition", names) if is_short else "",
        "marker": package.bundle.marker,
        "files": _FILES if delta.steps else "",
        "compared": _COMPARED,
    }
    text = environment().get_template("pull_request.md.jinja").render(facts)
    left = _ROOM - len(text)
    compared = _folded("Comparisons", *_comparisons(lines), left // 2)
    files = _folded("Files", *_files(delta), left - len(compared))
    return text.replace(_COMPARED, compared).replace(_FILES, files)


def human(size: int) -> str:
    """Return a number of bytes as a person reads it."""
    if size < 1024:
        return plural(size, "byte")
    if size < 1024**2:
        return f"{size / 1024:.1f} KiB"
    return f"{size / 1024**2:.1f} MiB"


def _options(option: str, values: Iterable[str]) -> str:
    return " ".join(f"{option} {shlex.quote(value)}" for value in values)


def _files(delta: Delta) -> tuple[Sequence[str], list[Row]]:
    rows = [
        Row((does, Quoted(file.path), human(file.size))) for does, file in delta.steps
    ]
    return ("", "file", "size"), rows


def _changes(
    package: Package,
    delta: Delta,
    remote: Mapping[str, RemoteFile],
    folders: Sequence[str],
) -> tuple[list[Change], BaseAndHead]:
    base: Tree = {f"{folder}/.": TreeEntry("100644", "") for folder in folders}
    head: Tree = {}
    for file in package.files:
        head[file.path] = TreeEntry("100644", file.sha256)
        there = remote.get(file.path)
        if there is not None:
            oid = file.sha256 if is_same(file, there) else there.sha256 or there.sha1
            base[file.path] = TreeEntry("100644", oid)
    changed = sort_changes(file.path for file in delta.sent).definitions
    mine = {key: changed.get(key, {}) for key in package.bundle.keys}
    sides, root = BaseAndHead(base, head), package.root
    # what the branch has is known by hash only: no folder has its text
    nowhere, known = root / ".no-such-folder", package.judged.definitions
    return make_changes(mine, sides, nowhere, root, known), sides


def _comparisons(lines: Sequence[VerificationLine]) -> tuple[Sequence[str], list[Row]]:
    rows = [
        Row((*map(Quoted, r.cells[:2]), *r.cells[2:6], Quoted(r.cells[6])), r.status)
        for r in map(line_row, lines)
    ]
    # a failure comes first: it must not be what is cut off
    rows.sort(key=lambda row: row.status is Status.PASSED)
    return LINES, rows


def _folded(title: str, columns: Sequence[str], rows: Sequence[Row], room: int) -> str:
    # a row is longer than this: what can't fit is counted, not written
    table = Table(rows[: max(1, room // _SHORTEST_ROW)], columns)
    section = Section(title, [table], is_open=False, count=len(rows))
    return folded(section, rows_of(section), room, _MORE).strip() if rows else ""
