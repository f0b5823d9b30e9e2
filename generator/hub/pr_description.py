"""Write the description of a pull request: bounded, with the dataset's text as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator import __version__
from generator.dataset.changes import Files, owner_of, sort_changes
from generator.hub.bundle import Bundle
from generator.hub.client import RemoteFile
from generator.hub.delta import Delta, is_same
from generator.hub.local import LocalFile
from generator.hub.preconditions import OF_EVIDENCE, OF_TESTS, OWN, Judged, Objection
from generator.problems import Severity
from generator.problems.messages import plural
from generator.reports.markdown import LIMIT, folded, inert, rows_of, table_of
from generator.reports.report import Code, Quoted, Row, Section, Status, Table
from generator.results.verification import VerificationLine
from generator.results.verification_report import line_table
from generator.review.change import Change, make_changes
from generator.review.checklist import (
    NO,
    ONE_DEFINITION,
    UNKNOWN,
    YES,
    Answer,
    ReviewContext,
    answer_all,
)
from generator.review.report import checklist
from generator.review.snapshots import Sides, Tree, TreeEntry

_ONE_BY_ONE = 5
"""Definitions of which each has its own checklist; of more, points are counted."""

_VERSIONS = ("gpu", "sm", "driver", "torch", "cuda", "flashinfer", "sglang", "python")
_ROOM = LIMIT - 4_000
_MORE = "`verification/` and the files have all"


@dataclass(frozen=True)
class Facts:
    """Hold what the description of a pull request shows.

    `delta` is against the branch that it is to be merged into, `remote` are that
    branch's files and `folders` its folders at the top.
    """

    root: Path
    bundle: Bundle
    files: Sequence[LocalFile]
    delta: Delta
    remote: Mapping[str, RemoteFile]
    folders: Sequence[str]
    judged: Judged
    allowed: Sequence[Objection]
    reasons: Mapping[str, str]


def describe(facts: Facts) -> str:
    """Return the description; the same facts give the same text."""
    changes, sides = _changes(facts)
    parts = [
        _what(facts),
        _provenance(facts, changes),
        _checks(facts, _answers(facts, changes, sides)),
        _allowed(facts),
        _reproduce(facts),
    ]
    left = _ROOM - sum(map(len, parts))
    compared = _compared(facts, left // 2)
    listed = _listed(facts, left - len(compared))
    order = [parts[0], listed, parts[1], parts[2], compared, parts[3], parts[4]]
    text = "\n\n".join(part for part in order if part)
    return f"{text}\n\n{facts.bundle.marker}\n"


def human(size: int) -> str:
    """Return a number of bytes as a person reads it."""
    if size < 1024:
        return plural(size, "byte")
    if size < 1024**2:
        return f"{size / 1024:.1f} KiB"
    return f"{size / 1024**2:.1f} MiB"


def _what(facts: Facts) -> str:
    delta, names = facts.delta, [file.name for file in facts.bundle.files]
    shown = ", ".join(inert(name) for name in names[:_ONE_BY_ONE])
    more = f" and {len(names) - _ONE_BY_ONE} more" if len(names) > _ONE_BY_ONE else ""
    size = sum(file.size for file in delta.sent)
    return (
        f"### What\n\n{plural(len(names), 'definition')}: {shown}{more}. "
        f"{plural(len(delta.added), 'file')} added, {len(delta.changed)} changed, "
        f"{len(delta.deleted)} deleted, {human(size)}; {delta.same} are there already.\n\n"
        f"Written by `trace-dataset push` {__version__}, which lets pass only what is "
        "listed under the checklist, for the bytes that are pushed."
    )


def _listed(facts: Facts, room: int) -> str:
    delta = facts.delta
    rows = [
        *(("add", f.path, f.size) for f in delta.added),
        *(("change", f.path, f.size) for f in delta.changed),
        *(("delete", f.path, f.size) for f in delta.deleted),
    ]
    listed = [Row((does, Quoted(path), human(size))) for does, path, size in rows]
    return _folded("Files", ("", "file", "size"), listed, room)


def _provenance(facts: Facts, changes: Sequence[Change]) -> str:
    models = sorted(
        {
            tag.removeprefix("model:")
            for change in changes
            if change.new is not None
            for tag in change.new.tags
            if tag.startswith("model:")
        }
    )
    texts = {line.definition for line in facts.judged.table.lines}
    mine = {file.name for file in facts.bundle.files} & texts
    rows = []
    used = {x.run for x in _lines(facts) if x.run and not x.stale}
    for number in sorted(used):
        run = facts.judged.table.runs[number - 1]
        cells = [run.date, *(run.machine.get(name, "") for name in _VERSIONS)]
        count = len({x.definition for x in _lines(facts) if x.run == number} & mine)
        rows.append(Row((*map(Quoted, cells), str(count))))
    shown = ", ".join(inert(name) for name in models[:20]) or "not said"
    runs = table_of(Table(rows, ("date", *_VERSIONS, "definitions")))
    said = runs if rows else "No run is on record."
    return f"### Provenance\n\nModels: {shown}\n\n{said}"


def _lines(facts: Facts) -> list[VerificationLine]:
    keys = set(facts.bundle.keys)
    return [x for x in facts.judged.table.lines if (x.op_type, x.definition) in keys]


def _checks(facts: Facts, answers: Sequence[Answer]) -> str:
    judged, allowed = facts.judged, {o.rule for o in facts.allowed}
    errors = [o for o in facts.allowed if o.rule not in OWN]
    keys = set(facts.bundle.keys)
    lesser = [p for p in judged.problems if p.severity is not Severity.ERROR]
    owners = [owner_of(p.file) for p in lesser]
    notes = sum(owner is not None and owner[0] in keys for owner in owners)
    passed = [
        (
            not errors,
            f"`trace-dataset validate` finds no error ({notes} lesser remarks)",
        ),
        (
            allowed.isdisjoint(OF_TESTS),
            "the tests are what `gen-tests` renders",
        ),
        (
            allowed.isdisjoint(OF_EVIDENCE),
            (
                "every definition's reference tests agreed with a production kernel, "
                "live or recorded, for these bytes, and none disagreed"
            ),
        ),
    ]
    lines = [f"- [{'x' if good else ' '}] {text}" for good, text in passed]
    is_short = len(facts.bundle.files) <= _ONE_BY_ONE
    body = table_of(checklist(answers) if is_short else _counts(answers))
    return "\n".join(["### Checklist", "", *lines, "", body])


def _answers(facts: Facts, changes: Sequence[Change], sides: Sides) -> list[Answer]:
    known = ReviewContext(
        facts.root,
        sides,
        facts.judged.problems,
        (),
        facts.judged.runs,
        trust_evidence=True,
        audits_after=facts.judged.audits,
    )
    points = answer_all(changes, known)
    return [a for a in points if a.definition or a.point == ONE_DEFINITION]


def _changes(facts: Facts) -> tuple[list[Change], Sides]:
    base: Tree = {f"{folder}/.": TreeEntry("100644", "", 0) for folder in facts.folders}
    head: Tree = {}
    for file in facts.files:
        head[file.path] = TreeEntry("100644", file.sha256, file.size)
        there = facts.remote.get(file.path)
        if there is not None:
            oid = file.sha256 if is_same(file, there) else there.sha256 or there.sha1
            base[file.path] = TreeEntry("100644", oid, there.size)
    changed = sort_changes(file.path for file in facts.delta.sent).definitions
    mine = {key: changed.get(key, Files()) for key in facts.bundle.keys}
    sides = Sides(base, head)
    # what the branch has is known by hash only: no folder has its text
    return make_changes(mine, sides, facts.root / ".no-such-folder", facts.root), sides


def _counts(answers: Iterable[Answer]) -> Table:
    by_point: dict[str, list[Answer]] = {}
    for answer in answers:
        by_point.setdefault(answer.point, []).append(answer)
    rows = []
    for point, given in by_point.items():
        counts = [sum(a.answer == kind for a in given) for kind in (YES, NO, UNKNOWN)]
        odd = [a for a in given if a.answer != YES and a.definition]
        first = f"{odd[0].definition}: {odd[0].seen}" if odd else ""
        rows.append(Row((point, *map(str, counts), Quoted(first))))
    return Table(rows, ("point", "yes", "no", "unknown", "the first that is not yes"))


def _compared(facts: Facts, room: int) -> str:
    made = line_table(_lines(facts))
    # the last two columns say which run, by numbers that nothing here explains
    rows = [
        Row((*map(Quoted, r.cells[:2]), *r.cells[2:6], Quoted(r.cells[6])), r.status)
        for r in made.rows
    ]
    # a failure comes first: it must not be what is cut off
    rows.sort(key=lambda row: row.status is Status.PASSED)
    return "### Comparisons\n\n" + _folded("Comparisons", made.columns[:7], rows, room)


def _allowed(facts: Facts) -> str:
    if not facts.allowed:
        return ""
    rows = []
    for rule in dict.fromkeys(o.rule for o in facts.allowed):
        found = [o for o in facts.allowed if o.rule == rule]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        message = Quoted(f"{found[0].message}{more}")
        rows.append(Row((Code(rule), Quoted(facts.reasons[rule]), message)))
    made = Table(rows, ("rule", "reason given", "what it objects to"))
    return f"### Let pass all the same\n\n{table_of(made)}"


def _reproduce(facts: Facts) -> str:
    names = [file.name for file in facts.bundle.files]
    if len(names) <= _ONE_BY_ONE:
        chosen = " ".join(f"--definition-name {shlex.quote(n)}" for n in names)
        tests = "".join(f" --definition {shlex.quote(n)}" for n in names)
    else:
        op_types = sorted({file.op_type for file in facts.bundle.files})
        chosen = " ".join(f"--op-type {shlex.quote(name)}" for name in op_types)
        tests = ""
    commands = [
        f"trace-dataset validate {chosen}",
        f"gen-tests {chosen} --check",
        f"pytest tests/references{tests} --strict",
        f"pytest tests/references{tests} --device cuda --results results.jsonl",
        "trace-dataset verify --results results.jsonl",
    ]
    shown = "\n".join(f"{n}. {inert(c, 2000)}" for n, c in enumerate(commands, 1))
    return (
        "### How to reproduce\n\nIn a clone of this pull request, with `pip install "
        f"gen-tests`; the fourth command needs a GPU.\n\n{shown}"
    )


def _folded(title: str, columns: Sequence[str], rows: Sequence[Row], room: int) -> str:
    section = Section(title, [Table(rows, columns)], is_open=False)
    return folded(section, rows_of(section), room, _MORE).strip() if rows else ""
