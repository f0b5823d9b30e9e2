"""The points of the checklist, each with what answers it, and where that was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from generator.dataset.definition import LoadedDefinition
from generator.dataset.json_file import read_json_lines
from generator.dataset.libraries import libraries
from generator.dataset.paths import rendered_folder, rendered_test
from generator.dataset.workload_identity import workload_identity
from generator.ops.registry import op_packages
from generator.problems.messages import one_line, plural, quote, some
from generator.results.audits import ABSENT, KNOWN, STALE
from generator.results.kernel_evidence import compared_workloads
from generator.results.sources import is_recorded
from generator.review.answers import CLAIMED, NO, UNKNOWN, YES, PointFinding
from generator.review.change import Change
from generator.review.context import ReviewContext
from generator.review.runs_of_text import (
    BAD_VERDICTS,
    agreements,
    failures,
    lesser_agreements,
    runs_of,
    source_on_machine,
)
from generator.review.tag_evidence import tags_finding
from generator.review.workload_origin import RANDOM, origin_of
from generator.rules.basis import basis_of
from generator.rules.unproven import never, why_unproven

AT_WORKLOADS = "at-workloads"
"""The point that a run on a GPU answers only at the workloads that it compared."""


def _test(change: Change, new: LoadedDefinition, known: ReviewContext) -> PointFinding:
    path = rendered_test(new.op_type)
    shown = one_line(path)
    if path not in known.sides.head:
        # a dataset may have tests of its own in that folder, without their list of hashes
        if f"{rendered_folder(known.sides.base)}/SHA256SUMS" in known.sides.base:
            return PointFinding(NO, f"there is no {shown}: gen-tests --all")
        seen = "the dataset keeps no rendered tests; --output writes them"
        return PointFinding(YES, seen)
    if path in known.rendered:
        return PointFinding(YES, f"{shown}: this review renders the same bytes")
    if path in known.sides.changed:
        return PointFinding(NO, f"{shown} is not what this review renders")
    hashes = known.hashes_of(path)
    if hashes is None:
        return PointFinding(UNKNOWN, f"{shown} can't be read")
    if basis_of(new) in hashes and path in known.stale:
        seen = f"{shown} has an earlier description or tag: gen-tests --op-type"
        return PointFinding(NO, one_line(f"{seen} {new.op_type}"))
    if basis_of(new) in hashes:
        return PointFinding(YES, f"{shown} names the hash of this text")
    if not hashes:
        seen = f"{shown} is not a test that gen-tests rendered"
        # a dataset may have tests of its own there; this review rendered others
        return PointFinding(YES if path in known.sides.base else NO, seen)
    return PointFinding(
        NO, one_line(f"{shown} does not: gen-tests --op-type {new.op_type}")
    )


def _absent(known: ReviewContext, folder: str, path: str) -> PointFinding:
    where = "" if folder in known.folders_before else f"; the base has no {folder}/"
    return PointFinding(NO, f"there is no {one_line(path)}{where}")


def agreed_finding(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    """Answer whether a kernel on a GPU agreed with a text."""
    if new.name in known.unproven_allowed and _why_unproven(new, known):
        return PointFinding(YES, "nothing is compared, as --allow-unproven accepts")
    mine = list(runs_of(new, known.after))
    if bad := [words for about in mine for words in failures(*about)]:
        return PointFinding(NO, bad[0])
    passed = [(run, words) for run, entry in mine for words in agreements(run, entry)]
    if good := [words for run, words in passed if known.counts(run, new.name)]:
        return PointFinding(YES, "; ".join(good[:3]))
    if not change.computes and change.old is not None:
        before = list(runs_of(change.old, known.before))
        earlier = [words for about in before for words in agreements(*about)]
        if earlier and not any(failures(*about) for about in before):
            seen = f"of the text before, which computes the same: {earlier[0]}"
            return PointFinding(YES, seen)
    if passed:
        return PointFinding(UNKNOWN, f"{CLAIMED}{passed[0][1]}", needs_gpu=True)
    lesser = [words for about in mine for words in lesser_agreements(*about)]
    seen = "no run in verification/ compared this text with a kernel on a GPU"
    if lesser:
        seen += f"; there is {some(lesser, 2)}"
    return PointFinding(UNKNOWN, seen, True)


def _workloads(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    work = change.workloads
    if work is not None and any(most == 0 for _, most in work.ranges.values()):
        return PointFinding(NO, f"each is empty: {work.said_ranges}")
    if work is not None and work.head:
        seen = f"{plural(work.head, 'workload')}; {work.said_ranges}"
        return PointFinding(YES, seen.removesuffix("; ")[:300])
    if change.kind != "new" and (work is None or not work.base):
        return PointFinding(YES, "there are none, and were none before")
    return PointFinding(NO, "there are none")


def _captured(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    """Answer by what the files show; that a server ran, no file shows."""
    path = f"workloads/{new.op_type}/{new.name}.jsonl"
    if path not in known.sides.head or not known.sides.head[path].is_file:
        return PointFinding(NO, "there are none")
    kinds: Counter[str] = Counter()
    for _, line in read_json_lines(known.root, path).lines:
        workload = line.get("workload") if isinstance(line, dict) else None
        kinds[origin_of(workload if isinstance(workload, dict) else {})] += 1
    seen = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    if set(kinds) == {RANDOM}:
        return PointFinding(UNKNOWN, f"{seen}: no file shows that a server ran")
    return PointFinding(NO, seen or "there are none")


def _at_workloads(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    path = f"workloads/{new.op_type}/{new.name}.jsonl"
    if path not in known.sides.head or not known.sides.head[path].is_file:
        return PointFinding(NO, "there are no workloads")
    read = read_json_lines(known.root, path)
    asked = {one for _, line in read.lines if (one := _identity(line))}
    if not asked or len(asked) < read.count:
        return PointFinding(NO, "they can't all be told apart: see the problems")
    mine = [(run, known.counts(run, new.name)) for run in known.after]
    text = new.name, basis_of(new)
    done = asked & compared_workloads((run for run, counts in mine if counts), *text)
    claimed = asked & compared_workloads((run for run, _ in mine), *text)
    if done == asked:
        return PointFinding(
            YES, f"a kernel on a GPU agreed at {plural(len(asked), 'workload')}"
        )
    if claimed == asked:
        summary = f"agreed at {plural(len(asked), 'workload')}"
        return PointFinding(UNKNOWN, CLAIMED + summary, needs_gpu=True)
    share = f"{len(done)} of {plural(len(asked), 'workload')} on record"
    file = rendered_test(new.op_type, known.tests_folder)
    command = f"pytest {file} --definition {new.name} --device cuda"
    return PointFinding(
        UNKNOWN,
        one_line(f"{share}: {command} --workloads all --results results.jsonl", 300),
        needs_gpu=True,
    )


def _identity(line: object) -> str | None:
    workload = line.get("workload") if isinstance(line, dict) else None
    try:
        return workload_identity(workload) if isinstance(workload, dict) else None
    except KeyError:
        return None


def _blobs(change: Change, new: LoadedDefinition, known: ReviewContext) -> PointFinding:
    if (change.key, "pointers") in known.objections:
        return PointFinding(UNKNOWN, "they are Git LFS pointers here: git lfs pull")
    count = len(known.sides.files_of(change.key, "blobs"))
    return PointFinding(YES, plural(count, "file") if count else "none needed")


def _baseline(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    for path in known.sides.files_of(change.key, "solutions"):
        if path.startswith("solutions/baseline"):
            return PointFinding(YES, one_line(path))
    path = f"solutions/baseline/{new.op_type}/{new.name}/"
    return _absent(known, "solutions", path)


def _traces(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    paths = known.sides.files_of(change.key, "traces")
    if not paths:
        return _absent(known, "traces", f"traces/*/{new.op_type}/{new.name}.jsonl")
    statuses: Counter[str] = Counter()
    for path in paths:
        for _, line in read_json_lines(known.root, path).lines:
            evaluation = line.get("evaluation") if isinstance(line, dict) else None
            status = evaluation.get("status") if isinstance(evaluation, dict) else None
            statuses[str(status)] += 1
    counted = ", ".join(f"{n} {one_line(s, 40)}" for s, n in sorted(statuses.items()))
    answer = YES if set(statuses) == {"PASSED"} else NO
    return PointFinding(answer, f"{counted or 'no line'} (its author's)")


def _recording(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    path = f"blob/ground_truth/{new.op_type}/{new.name}.safetensors"
    shown = one_line(path)
    if path not in known.sides.head:
        return PointFinding(UNKNOWN, f"there is no {shown}")
    interface = {"op_type", "axes", "inputs", "outputs"}
    if any(d.part in interface for d in change.differences):
        return PointFinding(UNKNOWN, f"{shown} may be of the interface before")
    op_type, _, name = change.old_path[len("definitions/") : -len(".json")].partition(
        "/"
    )
    before = known.sides.base.get(f"blob/ground_truth/{op_type}/{name}.safetensors")
    if before != known.sides.head[path] and not known.trust_evidence:
        return PointFinding(UNKNOWN, f"{CLAIMED}{shown}", needs_gpu=True, is_claim=True)
    replays = [
        (verdict.verdict, source_on_machine(run, source))
        for run, entry in runs_of(new, known.after)
        if known.counts(run, new.name)
        for source, verdict in entry.sources.items()
        if is_recorded(source) and verdict.verdict in ("PASSED", *BAD_VERDICTS)
    ]
    if bad := [words for verdict, words in replays if verdict in BAD_VERDICTS]:
        return PointFinding(NO, f"its replay failed: {bad[0]}")
    if replays:
        return PointFinding(YES, f"{shown}; its replay passed: {replays[0][1]}")
    file = rendered_test(new.op_type, known.tests_folder)
    seen = f"{shown}; no replay is on record: pytest {file}"
    return PointFinding(
        UNKNOWN, f"{one_line(seen)} --definition {one_line(new.name, 100)}"
    )


def _audit(change: Change, new: LoadedDefinition, known: ReviewContext) -> PointFinding:
    if known.audits_after is None:
        return PointFinding(UNKNOWN, f"{ABSENT}: no audit is on record")
    audit = known.audits_after.get(new.name)
    if audit is None:
        return PointFinding(
            UNKNOWN, f"{ABSENT}: trace-dataset audit was never run on it"
        )
    if audit.sha256 != basis_of(new):
        seen = f"{STALE}: the audit of {audit.date} is of another text"
        return PointFinding(UNKNOWN, seen)
    seen = f"{KNOWN}: {audit.share} caught, {audit.date}"
    if audit.survived:
        survivors = plural(audit.survived, "survivor")
        seen += f"; {survivors}: {one_line(audit.named(3))}"
    before = (known.audits_before or {}).get(new.name)
    if before != audit and not known.trust_evidence:
        return PointFinding(UNKNOWN, f"{CLAIMED}{seen}")
    return PointFinding(UNKNOWN if audit.survived else YES, seen)


def _provenance(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    models = new.tag_values("model")
    # what was run of a text that computes the same counts as well
    old = change.old if not change.computes else None
    texts = [text for text in (old, new) if text is not None]
    runs = [r for t in texts for r, _ in runs_of(t, known.after) if r.is_on_gpu]
    facts = [f"model {', '.join(map(quote, models[:3]))}"] if models else []
    if runs:
        machine = runs[-1].machine
        names = [n for n in ("gpu", *libraries()) if n in machine]
        facts += [f"{name} {machine[name]}" for name in names]
    if change.workloads is not None:
        facts.append(plural(change.workloads.head, "workload"))
    needed = {"model": models, "GPU and versions": runs}
    missing = [what for what, is_there in needed.items() if not is_there]
    seen = one_line(", ".join(facts))
    if missing:
        seen = f"not said: {', '.join(missing)}" + (f"; {seen}" if seen else "")
    return PointFinding(UNKNOWN if missing else YES, seen)


def _proven(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    # to ask which interfaces an op serves takes its references
    has_agreed = (
        new.op_type in op_packages() and agreed_finding(change, new, known)[0] == YES
    )
    why = None if has_agreed else _why_unproven(new, known)
    if why is None:
        return PointFinding(YES, f"a kernel or an oracle is asked by {new.op_type}")
    if new.name in known.unproven_allowed:
        return PointFinding(
            YES, f"nothing is compared ({why}), as --allow-unproven accepts"
        )
    seen = f"nothing can be: {why} (--allow-unproven {one_line(new.name, 100)})"
    return PointFinding(UNKNOWN, one_line(seen))


def _why_unproven(new: LoadedDefinition, known: ReviewContext) -> str | None:
    def agreed(name: str, basis: str) -> bool:
        mine = runs_of(new, (run for run in known.after if known.counts(run, new.name)))
        return any(True for about in mine for _ in agreements(*about))

    # what nobody here knows is not approved for what its author says that he ran
    is_known = new.op_type in op_packages()
    return why_unproven(known.root, new, agreed if is_known else never)


POINTS: tuple[
    tuple[
        str, str, str, Callable[[Change, LoadedDefinition, ReviewContext], PointFinding]
    ],
    ...,
] = (
    ("proven", "something can be compared with it", "", _proven),
    ("tags", "honest tags", "tags", tags_finding),
    ("rendered-test", "reference test rendered from this text", "", _test),
    ("agreed", "agreed with a production kernel on a GPU", "", agreed_finding),
    ("workloads", "has workloads", "", _workloads),
    ("captured", "workloads captured from real inference", "workloads", _captured),
    (AT_WORKLOADS, "agreed at the sizes of its workloads", "", _at_workloads),
    ("blobs", "blobs of the workloads", "blobs", _blobs),
    ("baseline", "baseline solution", "solutions", _baseline),
    ("traces", "traces, all PASSED", "traces", _traces),
    ("recording", "recording of a kernel's outputs, replayed", "", _recording),
    ("audit", "planted defects are caught by the tests", "", _audit),
    (
        "provenance",
        "provenance: model, versions, GPU, number of workloads",
        "",
        _provenance,
    ),
)
"""The id of each point, its text, the subject of the Problems that answer it with no, and
what answers it where there are none."""
