"""Files that a change removes, or replaces under their old name.

Files, and what is in them: workloads, entries of evidence, of the audit. A removed
definition stands for all that belongs to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.changes import UNRECORDED, owner_of
from generator.dataset.json_file import read_json, read_json_lines
from generator.dataset.paths import (
    AUDIT,
    NOT_OF_RUNS,
    VERIFICATION,
)
from generator.problems import Failure, Problem
from generator.problems.messages import one_line, plural, quote, some
from generator.results.audits import audits_in
from generator.results.evidence import Run, read_evidence, runs_in
from generator.review.change import Change
from generator.review.findings import (
    CLAIM,
    REMOVED,
    REWRITTEN,
    UNKNOWN_PATH,
    WEAKER,
)
from generator.review.sources import Sources
from generator.review.treatment import BLOBS, EVIDENCE, LICENCES, TRACES
from generator.rules.basis import basis_of, basis_of_bytes

_About = tuple[object, str, str, str]
"""A run, a definition's name, the hash of its text, a source or a test."""

_BAD = ("FAILED", "ERROR")
_MAX_BYTES = 16 * 1024 * 1024
# of the others each entry counts, in whichever file
_WHOLE = tuple(path for path in NOT_OF_RUNS if path != AUDIT)
_KINDS: Mapping[str, Collection[str]] = {
    "removal": (REMOVED.id, REWRITTEN.id),
    "weaker": (WEAKER.id,),
}


@dataclass
class AcceptedRemovals:
    """Changes that a person accepted, as `removal:PATH` or `weaker:PATH`.

    A PATH that ends in a slash is a folder. `unused` are those that met nothing.
    """

    asked: Sequence[str] = ()
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for one in self.asked:
            kind, _, path = one.partition(":")
            if kind not in _KINDS or not path:
                raise Failure(
                    f"--accept {quote(one, 100)}: write removal:PATH or weaker:PATH."
                )

    def takes(self, problem: Problem) -> bool:
        """Return whether a person accepted what a Problem says."""
        for one in self.asked:
            kind, _, path = one.partition(":")
            is_in = problem.file == path
            is_in |= path.endswith("/") and problem.file.startswith(path)
            if is_in and problem.rule in _KINDS[kind]:
                self._used.add(one)
                return True
        return False

    @property
    def unused(self) -> list[str]:
        """Return what was accepted and is not there to be accepted."""
        return [one for one in self.asked if one not in self._used]


def removals(sources: Sources, changes: Sequence[Change]) -> Iterator[Problem]:
    """Yield what is gone or replaced, one Problem a file."""
    yield from _files(sources, changes)
    yield from _values(sources, changes)
    for change in changes:
        work = change.workloads
        path = f"workloads/{change.key[0]}/{change.key[1]}.jsonl"
        if work is None or change.kind == "removed" or path not in sources.sides.head:
            continue
        if work.removed:
            message = f"Gone: {plural(work.removed, 'workload')} of {work.base}."
            yield REMOVED.problem(path, message)
        if work.changed:
            count = plural(work.changed, "workload")
            yield REWRITTEN.problem(path, f"Other under the same uuid: {count}.")
    if any(path.startswith(f"{VERIFICATION}/") for path in sources.sides.changed):
        standing = _Standing(sources, changes)
        yield from _evidence(sources, standing)
        yield from _foretold(sources)
        yield from _audits(sources, standing)
    for path in _WHOLE:
        if path in sources.sides.changed and path in sources.sides.head:
            yield CLAIM.problem(path, "It says other things than before.")
    if UNRECORDED in sources.sides.changed and UNRECORDED in sources.sides.head:
        yield from _unrecorded(sources)


def _moved(changes: Sequence[Change]) -> dict[Key, Key]:
    """Return the old key of each renamed definition → the new one."""
    moved: dict[Key, Key] = {}
    for change in changes:
        if change.kind == "renamed":
            _, op_type, file = change.old_path.split("/")
            moved[op_type, file.removesuffix(".json")] = change.key
    return moved


def _values(sources: Sources, changes: Sequence[Change]) -> Iterator[Problem]:
    """Yield files with other content under their names, and traces that are gone."""
    sides, moved = sources.sides, _moved(changes)
    for path, treatment in sides.treatments.items():
        if treatment is LICENCES and path in sides.base and path in sides.head:
            yield REWRITTEN.problem(path, "It says otherwise what others may do.")
        owner = owner_of(path)
        if owner is None or path not in sides.base:
            continue
        if treatment is BLOBS:
            now = _renamed(path, owner[0], moved.get(owner[0], owner[0]))
            if now in sides.head and sides.head[now].oid != sides.base[path].oid:
                yield REWRITTEN.problem(now, "Other values under the same name.")
        elif treatment is TRACES:
            now = _renamed(path, owner[0], moved.get(owner[0], owner[0]))
            old, new = _traces(sources.base, path), _traces(sources.head, now)
            if now in sides.head and (gone := sum(trace not in new for trace in old)):
                message = f"Gone: {plural(gone, 'trace')} of {len(old)}."
                yield REMOVED.problem(now, message)


def _traces(root: Path, path: str) -> list[object]:
    """Return the lines of a file of traces, without the name that a definition has."""
    lines = (value for _, value in read_json_lines(root, path).lines)
    return [
        {**line, "definition": ""} if isinstance(line, dict) else line for line in lines
    ]


def _files(sources: Sources, changes: Sequence[Change]) -> Iterator[Problem]:
    sides, moved = sources.sides, _moved(changes)
    gone = {change.key for change in changes if change.kind == "removed"}
    for change in changes:
        # what computes another thing is no other name of what is gone
        if change.kind == "renamed" and change.computes:
            yield REMOVED.problem(change.old_path, "The definition is gone.")
    new = {(sides.head[p].oid, owner_of(p)) for p in sides.changed if p in sides.head}
    for path, treatment in sides.treatments.items():
        if path in sides.head or not treatment.is_kept:
            continue
        owner = owner_of(path)
        if owner is not None and (owner[0] in moved or owner[0] in gone):
            key, kind = owner
            if kind == "definition":
                if key in gone:
                    yield REMOVED.problem(path, "The definition is gone.")
                continue
            if key in gone:
                continue
            # a recording keeps its content, a workload file says its new name
            other = (moved[key], kind)
            is_there = kind == "workloads" and bool(sides.files_of(moved[key], kind))
            is_there |= _renamed(path, key, moved[key]) in sides.head
            if is_there or (sides.base[path].oid, other) in new:
                continue
        if path.startswith(f"{VERIFICATION}/") and path not in _WHOLE:
            continue
        name = treatment.name.removesuffix("s")
        yield REMOVED.problem(path, f"The file is gone ({name}).")


def _renamed(path: str, old: Key, new: Key) -> str:
    """Return where a file lies that moved with its definition."""
    return path.replace("/".join(old), "/".join(new))


def _entries(runs: Sequence[Run]) -> Mapping[_About, Sequence[str]]:
    """Return by what entries of evidence are about → their verdicts.

    Several may be about the same, in one file or in two.
    """
    texts: dict[_About, list[str]] = defaultdict(list)
    for run in runs:
        for name, entry in run.definitions.items():
            about = (run.key, name, entry.sha256)
            for source, verdict in entry.sources.items():
                key: _About = (*about, source)
                texts[key].append(verdict.verdict)
            for test in entry.failed:
                key = (*about, f"test {test}")
                texts[key].append("FAILED")
    return texts


def _failures(verdicts: Sequence[str]) -> int:
    return sum(verdict in _BAD for verdict in verdicts)


class _Standing:
    """Results that belong to the definitions as they are.

    A result on the text before is one, where the text now computes the same: it is what
    the change itself is approved for. `now` maps a name and a text of the base to those
    of the head.
    """

    def __init__(self, sources: Sources, changes: Sequence[Change]) -> None:
        self._sources = sources
        self.now = {
            (c.old.name, basis_of(c.old)): (c.new.name, basis_of(c.new))
            for c in changes
            if c.old is not None and c.new is not None and not c.computes
        }

    def of(self, about: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those of names and texts that are as they are."""
        texts = _texts(self._sources, {name for name, _ in about})
        return {one for one in about if one[1] in texts or one in self.now}


def _evidence(sources: Sources, standing: _Standing) -> Iterator[Problem]:
    """Yield entries on the definitions as they are that are gone, and failures."""
    old, new = _entries(runs_in(sources.base)), _entries(runs_in(sources.head))
    anew = {(about[1:3], about[3]) for about in new}
    lost = [
        about
        for about in old
        if about not in new
        # the same source was asked of the text as it is now
        and (standing.now.get((about[1], about[2])), about[3]) not in anew
    ]
    mended = [a for a in old if a in new and _failures(new[a]) < _failures(old[a])]
    if not lost and not mended:
        return
    as_they_are = standing.of({about[1:3] for about in (*lost, *mended)})
    lost = [about for about in lost if about[1:3] in as_they_are]
    mended = [about for about in mended if about[1:3] in as_they_are]
    for rule, entries, what in (
        (REMOVED, lost, "gone, on the text as it is"),
        (REWRITTEN, mended, "failed, of which the same run says otherwise now"),
    ):
        if entries:
            names = [quote(n) for n in dict.fromkeys(e[1] for e in entries)]
            count = plural(len(entries), "result")
            message = f"{count} {what}, of {some(names, 5)}."
            yield rule.problem(_evidence_file(sources, entries[0]), message)


def _foretold(sources: Sources) -> Iterator[Problem]:
    """Yield new evidence on texts that the dataset does not have, and what is none.

    Once it is there, a later change that brings such a text would find it proven.
    """
    known = [
        (run.key, name, entry)
        for run in runs_in(sources.base)
        for name, entry in run.definitions.items()
    ]
    changed = (p for p in sorted(sources.sides.changed) if p in sources.sides.head)
    for path in changed:
        is_other = path in NOT_OF_RUNS
        if sources.sides.treatments[path] is not EVIDENCE or path == UNRECORDED:
            continue
        try:
            runs = [] if is_other else read_evidence(sources.head, path)
            is_read = path != AUDIT or audits_in(sources.head) is not None
        except Failure:
            is_read, runs = False, []
        if not is_read:
            yield UNKNOWN_PATH.problem(path, "It is no evidence that can be read.")
        entries = [(run.key, *item) for run in runs for item in run.definitions.items()]
        other = [entry for entry in entries if entry not in known]
        texts = _texts(sources, {name for _, name, _ in other})
        if any(not run.definitions for run in runs):
            yield CLAIM.problem(
                path, "It has a run on a machine, and of no definition."
            )
        names = [quote(name) for _, name, of in other if of.sha256 not in texts]
        if names:
            shown = some(list(dict.fromkeys(names)), 5)
            message = f"It has results on a text of {shown} that the dataset has not."
            yield CLAIM.problem(path, message)


def _evidence_file(sources: Sources, about: _About) -> str:
    """Return the changed file of evidence whose base had an entry."""
    changed = [
        path
        for path in sorted(sources.sides.changed)
        if path.startswith(f"{VERIFICATION}/") and path in sources.sides.base
    ]
    for path in changed:
        try:
            if about in _entries(read_evidence(sources.base, path)):
                return path
        except Failure:
            continue
    return changed[0] if changed else f"{VERIFICATION}/"


def _texts(sources: Sources, names: Collection[str]) -> set[str]:
    """Return the hashes of what runs of the head's definitions depend on, of some names."""
    texts = set()
    for path in sources.sides.head:
        owner = owner_of(path)
        if owner is not None and owner[1] == "definition" and owner[0][1] in names:
            data = sources.read(path, _MAX_BYTES)
            if data is not None:
                texts.add(basis_of_bytes(data, path))
    return texts


def _audits(sources: Sources, standing: _Standing) -> Iterator[Problem]:
    """Yield what the audit no longer says, or says anew, of definitions as they are."""
    if AUDIT not in sources.sides.changed:
        return
    old, new = audits_in(sources.base) or {}, audits_in(sources.head) or {}
    gone = [(name, entry.sha256) for name, entry in old.items() if name not in new]
    # a definition of another name has another entry
    gone = [one for one in gone if standing.now.get(one, one)[0] not in new]
    other = [name for name, entry in new.items() if old.get(name) != entry]
    if lost := standing.of(gone):
        shown = some([quote(name) for name, _ in sorted(lost)], 5)
        yield REMOVED.problem(AUDIT, f"The audit of {shown} is gone.")
    if other:
        shown = some([quote(name) for name in other], 5)
        first = one_line(other[0], 100)
        message = f"The audit of {shown} is new or other."
        fix = f"Run trace-dataset audit --definition-name {first}, or --trust-evidence."
        yield CLAIM.problem(AUDIT, message, fix=fix)


def _unrecorded(sources: Sources) -> Iterator[Problem]:
    """Yield definitions that the change newly calls impossible to record.

    One that it no longer calls so has a recording, or is gone.
    """
    old, new = (_reasons(root) for root in (sources.base, sources.head))
    if new is None:
        message = "It does not say of definitions, in a line each, why not."
        yield UNKNOWN_PATH.problem(UNRECORDED, message)
    old, new = old or {}, new or {}
    there = {
        owner[0][1]: owner[0] for owner in map(owner_of, sources.sides.head) if owner
    }
    lost = [
        name
        for name in old
        if name in there
        and name not in new
        and not sources.sides.files_of(there[name], "recording")
    ]
    if lost:
        shown = some([quote(str(name)) for name in lost], 5)
        message = f"It no longer says why {shown} has no recording, and none is there."
        yield REMOVED.problem(UNRECORDED, message)
    other = [name for name in new if old.get(name) != new[name]]
    if other:
        shown = some([quote(str(name)) for name in other], 5)
        message = f"It says that {shown} can't be recorded, which no command checks."
        yield CLAIM.problem(UNRECORDED, message)


def _reasons(root: Path) -> dict[str, str] | None:
    """Return why definitions have no recording, by name; None where that can't be read."""
    read = read_json(root, UNRECORDED)
    if isinstance(read, Problem) or read.problems or not isinstance(read.value, dict):
        return None
    is_read = all(isinstance(reason, str) for reason in read.value.values())
    return read.value if is_read else None
