"""Answer the checklist of a dataset pull request, each point with where it was seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from generator.dataset.blobs import (
    WORKLOAD_BLOB_LFS,
    WORKLOAD_BLOB_MISSING,
    WORKLOAD_PATH,
)
from generator.dataset.json_file import read_json_lines
from generator.problems import Problem, Severity
from generator.problems.messages import one_line, plural, quote
from generator.results.evidence import DefinitionEvidence, Run
from generator.results.sources import ORACLE, is_ground_truth
from generator.review.audit_point import audit_of
from generator.review.change import Change
from generator.review.known import ReviewContext
from generator.rules.catalogue import group_of

YES, NO, UNKNOWN = "yes", "no", "unknown"
ONE_DEFINITION = "one definition per pull request"
_BAD = ("FAILED", "ERROR")
_HEADER_ROWS = 400
_HASHED = re.compile(r"[0-9a-f]{64}  \S+$")


@dataclass(frozen=True)
class Answer:
    """Hold one point of the checklist: the answer, and where it was seen.

    `definition` is empty for a point about the whole change. `needs_gpu` says that an
    unknown answer takes a GPU to become another; `others` are definitions that the
    change does not change and that a point about the whole change is about.
    """

    definition: str
    point: str
    answer: str
    seen: str
    needs_gpu: bool = False
    others: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {
            "definition": self.definition,
            "point": self.point,
            "answer": self.answer,
            "seen": self.seen,
            "needs_gpu": self.needs_gpu,
        }


def answer_all(changes: Sequence[Change], known: ReviewContext) -> Iterator[Answer]:
    """Yield the answers on the change as a whole, then on each definition."""
    yield _one_definition(changes)
    yield from _brought(changes, known)
    for change in changes:
        if change.kind == "removed" or change.new is None:
            if change.kind != "removed":
                yield Answer(
                    change.name,
                    "the definition can be read",
                    NO,
                    f"{one_line(change.path)}: see the problems",
                )
            continue
        for point in _POINTS:
            yield point(change, known)


def _one_definition(changes: Sequence[Change]) -> Answer:
    new = [c for c in changes if c.kind in ("new", "changed", "renamed")]
    names = ", ".join(quote(c.name) for c in new[:5])
    more = f" and {len(new) - 5} more" if len(new) > 5 else ""
    added = sum(c.kind == "new" for c in new)
    seen = f"{plural(len(new), 'definition')}: {names}{more}" if new else "none"
    answer = YES if len(new) <= 1 else UNKNOWN if added < 2 else NO
    return Answer("", ONE_DEFINITION, answer, seen)


def _brought(changes: Sequence[Change], known: ReviewContext) -> Iterator[Answer]:
    """Yield what the change says of definitions that it does not change."""
    mine = {c.new.name for c in changes if c.new is not None}
    brought = {
        name
        for run in known.after
        for name in run.definitions
        if name not in mine and not known.had(run, name)
    }
    point = "evidence on other definitions is what it was"
    if brought:
        others = tuple(sorted(brought))
        first = ", ".join(quote(name) for name in others[:5])
        seen = f"verification/ is new or other on {len(others)}: {first}"
        doubted = not known.trust_evidence
        answer = UNKNOWN if doubted else YES
        yield Answer("", point, answer, seen, needs_gpu=doubted, others=others)


def _tags(change: Change, known: ReviewContext) -> Answer:
    point = "honest tags"
    found = _of(known, change, lambda p: group_of(p.rule) in ("tags", "constants"))
    if found:
        wrong = [p for p in found if p.severity is Severity.ERROR]
        answer = NO if wrong else UNKNOWN
        return Answer(change.name, point, answer, _shown(wrong or found))
    assert change.new is not None
    tags = change.new.tags
    if not any(tag.startswith("model:") for tag in tags):
        return Answer(
            change.name, point, UNKNOWN, "no model: tag names where it is from"
        )
    seen = f"{plural(len(tags), 'tag')}, and no rule on tags or constants objects"
    return Answer(change.name, point, YES, seen)


def _test(change: Change, known: ReviewContext) -> Answer:
    point = "reference test rendered from this text"
    assert change.new is not None
    path = f"tests/references/test_{change.new.op_type}.py"
    if path not in known.sides.head:
        if "tests/references" not in known.folders_before:
            seen = "none; the dataset had no tests/references before either"
            return Answer(change.name, point, UNKNOWN, seen)
        return Answer(change.name, point, NO, f"there is no {one_line(path)}")
    try:
        with open(known.root / path, encoding="utf-8") as stream:
            lines = [line for _, line in zip(range(_HEADER_ROWS), stream, strict=False)]
    except (OSError, UnicodeDecodeError):
        return Answer(change.name, point, UNKNOWN, f"{one_line(path)} can't be read")
    if f"{change.new.sha256}  {change.new.name}\n" in lines:
        return Answer(change.name, point, YES, f"{one_line(path)} names its SHA-256")
    if not any(_HASHED.match(line) for line in lines):
        seen = f"{one_line(path)} is not a test that gen-tests rendered"
        return Answer(change.name, point, UNKNOWN, seen)
    seen = f"{one_line(path)} does not: gen-tests --op-type {change.new.op_type}"
    return Answer(change.name, point, NO, one_line(seen))


def _green(change: Change, known: ReviewContext) -> Answer:
    point = "agreed with a production kernel on a GPU"
    bad, good, claimed = _evidence(change, known)
    if bad:
        return Answer(change.name, point, NO, bad[0])
    if good:
        return Answer(change.name, point, YES, "; ".join(good[:3]))
    if not change.computes and change.old is not None:
        kept = _evidence_of_base(change, known)
        if kept:
            seen = f"of the text before, which computes the same: {kept[0]}"
            return Answer(change.name, point, YES, seen)
    if claimed:
        seen = f"only the change itself says so: {claimed[0]}"
        return Answer(change.name, point, UNKNOWN, seen, needs_gpu=True)
    seen = "no run in verification/ is about this text"
    return Answer(change.name, point, UNKNOWN, seen, needs_gpu=True)


def _evidence(
    change: Change, known: ReviewContext
) -> tuple[list[str], list[str], list[str]]:
    """Return the failures, the agreements, and what only the change itself claims."""
    assert change.new is not None
    name, sha256 = change.new.name, change.new.sha256
    bad: list[str] = []
    good: list[str] = []
    claimed: list[str] = []
    for run in known.after:
        entry = run.definitions.get(name)
        if entry is None or entry.sha256 != sha256:
            continue
        bad += [_said(run, s) for s, v in entry.sources.items() if v.verdict in _BAD]
        bad += [_said(run, test) for test in entry.failed]
        counts = known.trust_evidence or known.had(run, name)
        (good if counts else claimed).extend(_passed(run, entry))
    return bad, good, claimed


def _evidence_of_base(change: Change, known: ReviewContext) -> list[str]:
    assert change.old is not None
    found: list[str] = []
    for run in known.before:
        entry = run.definitions.get(change.old.name)
        if entry is None or entry.sha256 != change.old.sha256:
            continue
        if entry.failed or any(v.verdict in _BAD for v in entry.sources.values()):
            return []
        found += _passed(run, entry)
    return found


def _passed(run: Run, entry: DefinitionEvidence) -> Iterator[str]:
    for source, verdict in entry.sources.items():
        kernel = is_ground_truth(source) and source != ORACLE
        if kernel and run.is_on_gpu and verdict.verdict == "PASSED" and verdict.cases:
            yield f"{_said(run, source)} passed, {plural(verdict.cases, 'case')}"


def _said(run: Run, source: str) -> str:
    gpu = run.machine.get("gpu") or run.machine.get("device") or "unknown machine"
    return one_line(f"{source} on {gpu}, {run.date}")


def _workloads(change: Change, known: ReviewContext) -> Answer:
    point = "workloads captured from real inference"
    bad = _of(known, change, lambda p: group_of(p.rule) == "workloads")
    bad = [p for p in bad if not p.rule.startswith("blob-")]
    if bad:
        return Answer(change.name, point, NO, _shown(bad))
    count = change.workloads.head if change.workloads is not None else 0
    if not count:
        had_none = change.workloads is None or not change.workloads.base
        if change.kind != "new" and had_none:
            seen = "there are none, and were none before"
            return Answer(change.name, point, UNKNOWN, seen)
        return Answer(change.name, point, NO, "there are none")
    seen = f"{plural(count, 'workload')}, without signs of being made up; "
    return Answer(change.name, point, YES, f"{seen}{change.workloads_ranges()}"[:300])


def _blobs(change: Change, known: ReviewContext) -> Answer:
    point = "blobs of the workloads"
    rules = (WORKLOAD_BLOB_MISSING.id, WORKLOAD_PATH.id)

    def is_blob(problem: Problem) -> bool:
        return problem.rule.startswith("blob-") or problem.rule in rules

    bad = _of(known, change, is_blob)
    if bad:
        return Answer(change.name, point, NO, _shown(bad))
    pointers = _of(known, change, lambda p: p.rule == WORKLOAD_BLOB_LFS.id)
    if pointers:
        seen = "they are Git LFS pointers here: git lfs pull"
        return Answer(change.name, point, UNKNOWN, seen)
    assert change.new is not None
    count = len(known.owned(change.key, "blobs"))
    seen = plural(count, "file") if count else "none needed"
    return Answer(change.name, point, YES, seen)


def _baseline(change: Change, known: ReviewContext) -> Answer:
    point = "baseline solution"
    assert change.new is not None
    key = f"/{change.new.op_type}/{change.new.name}/"
    solutions = known.owned(change.key, "solutions")
    found = [path for path in solutions if path.startswith("solutions/baseline")]
    bad = _of(known, change, lambda p: group_of(p.rule) == "solutions")
    if bad:
        return Answer(change.name, point, NO, _shown(bad))
    if found:
        return Answer(change.name, point, YES, one_line(found[0]))
    if "solutions" not in known.folders_before:
        seen = "none; the dataset had no solutions before either"
        return Answer(change.name, point, UNKNOWN, seen)
    return Answer(
        change.name, point, NO, f"there is no solutions/baseline{one_line(key)}"
    )


def _traces(change: Change, known: ReviewContext) -> Answer:
    point = "traces, all PASSED"
    assert change.new is not None
    end = f"/{change.new.op_type}/{change.new.name}.jsonl"
    found = known.owned(change.key, "traces")
    bad = _of(known, change, lambda p: group_of(p.rule) == "traces")
    if bad:
        return Answer(change.name, point, NO, _shown(bad))
    if not found:
        if "traces" not in known.folders_before:
            seen = "none; the dataset had no traces before either"
            return Answer(change.name, point, UNKNOWN, seen)
        return Answer(change.name, point, NO, f"there is no traces/*{one_line(end)}")
    statuses: dict[str, int] = {}
    for path in found:
        for _, line in read_json_lines(known.root, path).lines:
            evaluation = line.get("evaluation") if isinstance(line, dict) else None
            said = evaluation.get("status") if isinstance(evaluation, dict) else None
            statuses[str(said)] = statuses.get(str(said), 0) + 1
    counted = ", ".join(f"{n} {one_line(s, 40)}" for s, n in sorted(statuses.items()))
    answer = YES if set(statuses) == {"PASSED"} else NO
    return Answer(change.name, point, answer, f"{counted or 'no line'} (its author's)")


def _recording(change: Change, known: ReviewContext) -> Answer:
    point = "recording of a kernel's outputs"
    assert change.new is not None
    path = f"blob/ground_truth/{change.new.op_type}/{change.new.name}.safetensors"
    if path not in known.sides.head:
        seen = f"there is no {one_line(path)}"
        return Answer(change.name, point, UNKNOWN, seen)
    interface = {"op_type", "axes", "inputs", "outputs"}
    if any(d.part in interface for d in change.differences):
        seen = f"{one_line(path)} may be of the interface before"
        return Answer(change.name, point, UNKNOWN, seen)
    if path in known.sides.changed and not known.trust_evidence:
        seen = f"only the change itself says so: {one_line(path)}"
        return Answer(change.name, point, UNKNOWN, seen, needs_gpu=True)
    return Answer(change.name, point, YES, one_line(path))


def _audit(change: Change, known: ReviewContext) -> Answer:
    point = "planted defects are caught by the tests"
    good, seen = audit_of(change, known)
    return Answer(change.name, point, YES if good else UNKNOWN, seen)


def _provenance(change: Change, known: ReviewContext) -> Answer:
    point = "provenance: model, versions, GPU, number of workloads"
    assert change.new is not None
    models = change.new.tag_values("model")
    runs = [r for r in known.after if r.is_on_gpu and _is_about(r, change)]
    facts = []
    if models:
        facts.append(f"model {', '.join(quote(m) for m in models[:3])}")
    if runs:
        machine = runs[-1].machine
        facts += [
            f"{n} {machine[n]}" for n in ("gpu", "flashinfer", "sglang") if n in machine
        ]
    if change.workloads is not None:
        facts.append(plural(change.workloads.head, "workload"))
    missing = [
        w for w, has in (("model", models), ("GPU and versions", runs)) if not has
    ]
    seen = one_line(", ".join(facts))
    if missing:
        seen = f"not said: {', '.join(missing)}" + (f"; {seen}" if seen else "")
    return Answer(change.name, point, UNKNOWN if missing else YES, seen)


def _is_about(run: Run, change: Change) -> bool:
    """Return whether a run is about this text, or one that computes the same."""
    texts = {d.sha256 for d in (change.new, change.old) if d is not None}
    if change.computes and change.new is not None:
        texts = {change.new.sha256}
    names = {d.name for d in (change.new, change.old) if d is not None}
    entries = (run.definitions.get(name) for name in names)
    return any(entry is not None and entry.sha256 in texts for entry in entries)


_POINTS: tuple[Callable[[Change, ReviewContext], Answer], ...] = (
    _tags,
    _test,
    _green,
    _workloads,
    _blobs,
    _baseline,
    _traces,
    _recording,
    _audit,
    _provenance,
)


def _of(
    known: ReviewContext,
    change: Change,
    wanted: Callable[[Problem], bool],
) -> list[Problem]:
    """Return the new Problems of a definition's files that are more than notes."""
    return [
        p
        for p in known.problems
        if change.owns(p.file) and p.severity is not Severity.NOTE and wanted(p)
    ]


def _shown(problems: Iterable[Problem]) -> str:
    listed = list(problems)
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    first = listed[0]
    return f"{first.rule}: {one_line(first.file)}: {first.message}{more}"
