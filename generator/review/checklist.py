"""Answer the checklist of a dataset pull request, each point with where it was seen."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from generator.dataset.artifacts import Key
from generator.dataset.blobs import (
    WORKLOAD_BLOB_LFS,
    WORKLOAD_BLOB_MISSING,
    WORKLOAD_PATH,
)
from generator.dataset.changes import owner_of
from generator.dataset.definition import Definition
from generator.dataset.file_reading import read_text_file
from generator.dataset.json_file import read_json_lines
from generator.problems import Problem, Severity
from generator.problems.messages import one_line, plural, quote, some
from generator.rendering.read_back import rendered_definitions
from generator.results.audits import ABSENT, KNOWN, STALE, Audited
from generator.results.evidence import DefinitionEvidence, Run
from generator.results.sources import is_ground_truth
from generator.review.change import Change
from generator.review.sources import Sides
from generator.rules.catalogue import group_of

YES, NO, UNKNOWN = "yes", "no", "unknown"
ONE_DEFINITION = "one definition per pull request"
_MAX_TEST_BYTES = 16 << 20
_CLAIMED = "only the change itself says so: "
_BAD = ("FAILED", "ERROR")
_OF_BLOBS = {
    WORKLOAD_BLOB_MISSING.id: "blobs",
    WORKLOAD_PATH.id: "blobs",
    WORKLOAD_BLOB_LFS.id: "pointers",
}


@dataclass(frozen=True)
class ReviewContext:
    """Hold what the points are answered from.

    `root` is head's folder, `problems` are new ones; `before` and `after` are the runs
    that base and head have in verification/, the audits what they have in audit.json.
    """

    root: Path
    sides: Sides
    problems: Sequence[Problem]
    before: Sequence[Run]
    after: Sequence[Run]
    trust_evidence: bool = False
    audits_before: Mapping[str, Audited] | None = None
    audits_after: Mapping[str, Audited] | None = None

    def counts(self, run: Run, name: str) -> bool:
        """Return whether what a run says of a definition is not the author's word alone.

        That is: base has it, too. Several runs may be about one text, and several of one
        day and machine: the same is said where the day, the machine and the whole entry
        are the same.
        """
        entry = run.definitions.get(name)
        return self.trust_evidence or any(
            old.date == run.date
            and old.machine == run.machine
            and old.definitions.get(name) == entry
            for old in self.before
        )

    @cached_property
    def folders_before(self) -> frozenset[str]:
        """Return all folders of base."""
        return frozenset(
            path[: slash.start()]
            for path in self.sides.base
            for slash in re.finditer("/", path)
        )

    @cached_property
    def objections(self) -> Mapping[tuple[Key, str], Sequence[Problem]]:
        """Return the new Problems of definitions by subject; notes are left out."""
        found = defaultdict(list)
        for problem in self.problems:
            owner = owner_of(problem.file)
            if owner is not None and problem.severity is not Severity.NOTE:
                for subject in _subjects(problem):
                    found[owner[0], subject].append(problem)
        return found


def _subjects(problem: Problem) -> set[str]:
    """Return what a Problem is about, by its rule."""
    group = group_of(problem.rule)
    if problem.rule.startswith("blob-"):
        return {"blobs"}
    if group in ("tags", "constants"):
        return {"tags" if problem.severity is Severity.ERROR else "lesser tags"}
    return {group, _OF_BLOBS.get(problem.rule, group)}


class Finding(NamedTuple):
    """An answer, where it was seen, and whether an unknown one takes a GPU to tell."""

    answer: str
    seen: str
    needs_gpu: bool = False


@dataclass(frozen=True)
class Answer:
    """Hold one point of the checklist and what was found.

    `definition` is empty for a point about the whole change; `others` are definitions
    that the change does not change and that such a point is about.
    """

    definition: str
    point: str
    answer: str
    seen: str
    needs_gpu: bool = False
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        whom = f"{quote(self.definition)}: " if self.definition else ""
        answer = "not shown" if self.answer == UNKNOWN else self.answer
        return f"{whom}{self.point}: {answer} ({self.seen})"


def answer_all(changes: Sequence[Change], known: ReviewContext) -> Iterator[Answer]:
    """Yield the answers on the change as a whole, then on each definition."""
    yield Answer("", ONE_DEFINITION, *_one_definition(changes))
    yield from _brought(changes, known)
    for change in changes:
        if change.kind == "removed":
            continue
        if change.new is None:
            seen = f"{one_line(change.path)}: see the problems"
            yield Answer(change.name, "the definition can be read", NO, seen)
            continue
        for point, subject, find in _POINTS:
            bad = known.objections.get((change.key, subject))
            found = Finding(NO, _shown(bad)) if bad else find(change, change.new, known)
            yield Answer(change.name, point, *found)


def _one_definition(changes: Sequence[Change]) -> Finding:
    new = [c for c in changes if c.kind in ("new", "changed", "renamed")]
    names = some([quote(c.name) for c in new], 5)
    added = sum(c.kind == "new" for c in new)
    seen = f"{plural(len(new), 'definition')}: {names}" if new else "none"
    return Finding(YES if len(new) <= 1 else UNKNOWN if added < 2 else NO, seen)


def _brought(changes: Sequence[Change], known: ReviewContext) -> Iterator[Answer]:
    """Yield what the change says of definitions that it does not change."""
    mine = {c.new.name for c in changes if c.new is not None}
    untold = replace(known, trust_evidence=False)
    brought = {
        name
        for run in known.after
        for name in run.definitions
        if name not in mine and not untold.counts(run, name)
    }
    if brought:
        others = tuple(sorted(brought))
        first = ", ".join(quote(name) for name in others[:5])
        seen = f"verification/ is new or other on {len(others)}: {first}"
        doubted = not known.trust_evidence
        point = "evidence on other definitions is what it was"
        yield Answer("", point, UNKNOWN if doubted else YES, seen, doubted, others)


def _tags(change: Change, new: Definition, known: ReviewContext) -> Finding:
    lesser = known.objections.get((change.key, "lesser tags"))
    if lesser:
        return Finding(UNKNOWN, _shown(lesser))
    if not new.tag_values("model"):
        return Finding(UNKNOWN, "no model: tag names where it is from")
    tags = plural(len(new.tags), "tag")
    return Finding(YES, f"{tags}, and no rule on tags or constants objects")


def _test(change: Change, new: Definition, known: ReviewContext) -> Finding:
    path = f"tests/references/test_{new.op_type}.py"
    shown = one_line(path)
    if path not in known.sides.head:
        return _absent(known, "tests/references", path)
    content = read_text_file(known.root / path, path, _MAX_TEST_BYTES)
    if isinstance(content, Problem):
        return Finding(UNKNOWN, f"{shown} can't be read")
    hashes = rendered_definitions(content.decode("utf-8", "replace"))
    if hashes.get(new.name) == new.sha256:
        return Finding(YES, f"{shown} names its SHA-256")
    if not hashes:
        return Finding(UNKNOWN, f"{shown} is not a test that gen-tests rendered")
    return Finding(NO, one_line(f"{shown} does not: gen-tests --op-type {new.op_type}"))


def _absent(known: ReviewContext, folder: str, path: str) -> Finding:
    if folder not in known.folders_before:
        return Finding(UNKNOWN, f"none; the dataset had no {folder} before either")
    return Finding(NO, f"there is no {one_line(path)}")


def _green(change: Change, new: Definition, known: ReviewContext) -> Finding:
    mine = list(_about(new, known.after))
    if bad := [said for about in mine for said in _failed(*about)]:
        return Finding(NO, bad[0])
    passed = [(run, said) for run, entry in mine for said in _passed(run, entry)]
    if good := [said for run, said in passed if known.counts(run, new.name)]:
        return Finding(YES, "; ".join(good[:3]))
    if not change.computes and change.old is not None:
        before = list(_about(change.old, known.before))
        kept = [said for about in before for said in _passed(*about)]
        if kept and not any(_failed(*about) for about in before):
            seen = f"of the text before, which computes the same: {kept[0]}"
            return Finding(YES, seen)
    if passed:
        return Finding(UNKNOWN, f"{_CLAIMED}{passed[0][1]}", needs_gpu=True)
    return Finding(UNKNOWN, "no run in verification/ is about this text", True)


def _about(
    definition: Definition, runs: Iterable[Run]
) -> Iterator[tuple[Run, DefinitionEvidence]]:
    for run in runs:
        entry = run.definitions.get(definition.name)
        if entry is not None and entry.sha256 == definition.sha256:
            yield run, entry


def _failed(run: Run, entry: DefinitionEvidence) -> list[str]:
    bad = [source for source, v in entry.sources.items() if v.verdict in _BAD]
    return [_said(run, what) for what in (*bad, *entry.failed)]


def _passed(run: Run, entry: DefinitionEvidence) -> Iterator[str]:
    for source, verdict in entry.sources.items():
        is_good = run.is_on_gpu and verdict.verdict == "PASSED" and verdict.cases
        if is_ground_truth(source) and is_good:
            yield f"{_said(run, source)} passed, {plural(verdict.cases, 'case')}"


def _said(run: Run, source: str) -> str:
    gpu = run.machine.get("gpu") or run.machine.get("device") or "unknown machine"
    return one_line(f"{source} on {gpu}, {run.date}")


def _workloads(change: Change, new: Definition, known: ReviewContext) -> Finding:
    work = change.workloads
    if work is not None and work.head:
        seen = f"{plural(work.head, 'workload')}, without signs of being made up; "
        return Finding(YES, f"{seen}{work.said_ranges}"[:300])
    if change.kind != "new" and (work is None or not work.base):
        return Finding(UNKNOWN, "there are none, and were none before")
    return Finding(NO, "there are none")


def _blobs(change: Change, new: Definition, known: ReviewContext) -> Finding:
    if (change.key, "pointers") in known.objections:
        return Finding(UNKNOWN, "they are Git LFS pointers here: git lfs pull")
    count = len(known.sides.files_of(change.key, "blobs"))
    return Finding(YES, plural(count, "file") if count else "none needed")


def _baseline(change: Change, new: Definition, known: ReviewContext) -> Finding:
    for path in known.sides.files_of(change.key, "solutions"):
        if path.startswith("solutions/baseline"):
            return Finding(YES, one_line(path))
    path = f"solutions/baseline/{new.op_type}/{new.name}/"
    return _absent(known, "solutions", path)


def _traces(change: Change, new: Definition, known: ReviewContext) -> Finding:
    found = known.sides.files_of(change.key, "traces")
    if not found:
        return _absent(known, "traces", f"traces/*/{new.op_type}/{new.name}.jsonl")
    statuses: Counter[str] = Counter()
    for path in found:
        for _, line in read_json_lines(known.root, path).lines:
            evaluation = line.get("evaluation") if isinstance(line, dict) else None
            said = evaluation.get("status") if isinstance(evaluation, dict) else None
            statuses[str(said)] += 1
    counted = ", ".join(f"{n} {one_line(s, 40)}" for s, n in sorted(statuses.items()))
    answer = YES if set(statuses) == {"PASSED"} else NO
    return Finding(answer, f"{counted or 'no line'} (its author's)")


def _recording(change: Change, new: Definition, known: ReviewContext) -> Finding:
    path = f"blob/ground_truth/{new.op_type}/{new.name}.safetensors"
    shown = one_line(path)
    if path not in known.sides.head:
        return Finding(UNKNOWN, f"there is no {shown}")
    interface = {"op_type", "axes", "inputs", "outputs"}
    if any(d.part in interface for d in change.differences):
        return Finding(UNKNOWN, f"{shown} may be of the interface before")
    if path in known.sides.changed and not known.trust_evidence:
        return Finding(UNKNOWN, f"{_CLAIMED}{shown}", needs_gpu=True)
    return Finding(YES, shown)


def _audit(change: Change, new: Definition, known: ReviewContext) -> Finding:
    if known.audits_after is None:
        return Finding(UNKNOWN, f"{ABSENT}: no audit is on record")
    found = known.audits_after.get(new.name)
    if found is None:
        return Finding(UNKNOWN, f"{ABSENT}: trace-dataset audit was never run on it")
    if found.sha256 != new.sha256:
        seen = f"{STALE}: the audit of {found.date} is of another text"
        return Finding(UNKNOWN, seen)
    seen = f"{KNOWN}: {found.share} caught, {found.date}"
    if found.survived:
        survivors = plural(found.survived, "survivor")
        seen += f"; {survivors}: {one_line(found.named(3))}"
    before = (known.audits_before or {}).get(new.name)
    if before != found and not known.trust_evidence:
        return Finding(UNKNOWN, f"{_CLAIMED}{seen}")
    return Finding(UNKNOWN if found.survived else YES, seen)


def _provenance(change: Change, new: Definition, known: ReviewContext) -> Finding:
    models = new.tag_values("model")
    # what was run of a text that computes the same counts as well
    old = change.old if not change.computes else None
    texts = [text for text in (old, new) if text is not None]
    runs = [r for t in texts for r, _ in _about(t, known.after) if r.is_on_gpu]
    facts = [f"model {', '.join(map(quote, models[:3]))}"] if models else []
    if runs:
        machine = runs[-1].machine
        names = [n for n in ("gpu", "flashinfer", "sglang") if n in machine]
        facts += [f"{name} {machine[name]}" for name in names]
    if change.workloads is not None:
        facts.append(plural(change.workloads.head, "workload"))
    needed = {"model": models, "GPU and versions": runs}
    missing = [what for what, found in needed.items() if not found]
    seen = one_line(", ".join(facts))
    if missing:
        seen = f"not said: {', '.join(missing)}" + (f"; {seen}" if seen else "")
    return Finding(UNKNOWN if missing else YES, seen)


_POINTS: tuple[
    tuple[str, str, Callable[[Change, Definition, ReviewContext], Finding]], ...
] = (
    ("honest tags", "tags", _tags),
    ("reference test rendered from this text", "", _test),
    ("agreed with a production kernel on a GPU", "", _green),
    ("workloads captured from real inference", "workloads", _workloads),
    ("blobs of the workloads", "blobs", _blobs),
    ("baseline solution", "solutions", _baseline),
    ("traces, all PASSED", "traces", _traces),
    ("recording of a kernel's outputs", "", _recording),
    ("planted defects are caught by the tests", "", _audit),
    ("provenance: model, versions, GPU, number of workloads", "", _provenance),
)
"""Each point, the subject of the Problems that answer it with no, and what answers it
where there are none."""


def _shown(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    first = problems[0]
    return f"{first.rule}: {one_line(first.file)}: {first.message}{more}"
