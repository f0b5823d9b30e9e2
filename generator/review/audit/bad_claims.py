"""Bad pull requests that claim what is not so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from generator.dataset.changes import UNRECORDED
from generator.dataset.paths import (
    AUDIT,
    CHECKERS_KEPT,
    CONDITIONS_KEPT,
    LIMITS_KEPT,
    WAIVERS,
)
from generator.review.audit.changes import (
    FIRST,
    RECORDING,
    add_third,
    agreed_at_workloads,
    asking_for,
    audits,
    more,
    render,
    runs,
    third_with_evidence,
    workloads,
)
from generator.review.audit.pull_request import (
    Change,
    PullRequest,
    adding,
    editing,
    removing,
    replacing,
    together,
)
from generator.review.audit.subject import (
    EVIDENCE,
    AuditedDataset,
    Files,
    a_recording,
    evidence,
)
from generator.review.findings import CLAIM, DAMAGED, REMOVED, UNKNOWN_PATH
from generator.review.points import AT_WORKLOADS
from generator.review.review import NOT_RUN, ReviewRequest

_NEXT_DAY = "verification/2026-01-02_audit.json"
_NOTHING_SURVIVED = {
    "counts": {"caught": 41, "equivalent": 2, "survived": 0, "timed out": 0},
    "survivors": [],
}


commented = editing(
    FIRST, lambda value: value.update(reference=f"{value['reference']}# anew\n")
)
described = editing(FIRST, lambda value: value.update(description="In other words."))
TRUSTED = ReviewRequest(trust_evidence=True)


def of_claims() -> Iterator[PullRequest]:
    """Yield evidence, audits, recordings, solutions and traces that nobody has seen."""
    yield PullRequest(
        "claim: agreed at all workloads, of which one is new",
        workloads(more(1)),
        AT_WORKLOADS,
        before=together(asking_for("at-workloads"), agreed_at_workloads),
    )
    yield PullRequest(
        "claim: evidence on a text that a later change may bring",
        together(runs(_foretold), described, render),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: evidence on a definition that a later change may bring",
        runs(lambda entries, subject: entries.update(x={**entries[subject.first]})),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: evidence on the new text of a definition that is commented anew",
        together(commented, render, _of_the_new_text),
        "agreed",
    )
    yield PullRequest(
        "claim: an audit of a text that a later change may bring",
        audits(
            lambda entries, subject: entries[subject.first].update(sha256="ab" * 32)
        ),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: an audit of a definition that a later change may bring",
        audits(lambda entries, subject: entries.update(x={**entries[subject.first]})),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: a file among the evidence that is none",
        adding("verification/notes.json", "{}"),
        UNKNOWN_PATH.id,
    )
    yield PullRequest(
        "claim: a survivor is off the audit",
        audits(lambda entries, subject: entries[subject.first].update(survivors=[])),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: an audit of more defects",
        audits(
            lambda entries, subject: entries[subject.first]["counts"].update(caught=400)
        ),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: nothing survived",
        audits(
            lambda entries, subject: entries[subject.first].update(_NOTHING_SURVIVED)
        ),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: a definition can't be recorded",
        editing(UNRECORDED, lambda value: value.update({"x": "No GPU has it."})),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: another reason why one can't be recorded",
        replacing(UNRECORDED, "No GPU has it.", "Not needed."),
        CLAIM.id,
    )
    for what, text in {
        "a list": "[1]",
        "no JSON": "#!/bin/sh",
        "numbers": '{"x": 1}',
    }.items():
        yield PullRequest(
            f"claim: reasons why none is recorded that are {what}",
            adding(UNRECORDED, text),
            UNKNOWN_PATH.id,
            before=removing(UNRECORDED),
        )
    for tag in (
        "status:verified",
        "fi_api:flashinfer.norm.layernorm",
        "model:nobody-knows-it",
        "model:qwen2\u200b",
        "tp:4096",
        "<b>",
    ):
        yield PullRequest(f"claim: the tag {tag!a}", _tagged(tag), "tags")
    yield PullRequest(
        "claim: the tag that says unverified is gone",
        editing(FIRST, lambda value: value["tags"].remove("status:unverified")),
        "tags",
        before=_tagged("status:unverified"),
    )
    yield PullRequest(
        "claim: the tag of a function of the right name in a module that is not there",
        editing(FIRST, _with_a_function_of_its_name),
        "tags",
    )
    yield PullRequest(
        "claim: a kernel of a provider that nobody knows",
        together(add_third, render, _sources_of("mine/fast")),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a PyTorch layer of SGLang, no kernel",
        together(add_third, render, _sources_of("sglang/native")),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a kernel that compared fewer cases than none",
        together(add_third, render, _sources_of("flashinfer", cases=-1)),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a run on no day",
        replacing(EVIDENCE, "2026-01-01", "yesterday"),
        UNKNOWN_PATH.id,
        TRUSTED,
    )
    yield PullRequest(
        "claim: what other checkers let pass",
        adding(CHECKERS_KEPT, '{"format": 1, "definitions": {}, "x": 1}'),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: what may be slower",
        adding(WAIVERS, '{"format": 1, "waivers": []}'),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: what conditions kernels hold under",
        adding(CONDITIONS_KEPT, '{"format": 1, "definitions": {}}'),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: which defects of limits are caught",
        lambda files, subject: files.update({LIMITS_KEPT: files[AUDIT]}),
        CLAIM.id,
    )
    yield PullRequest(
        "claim: a run on a GPU, of no definition",
        lambda files, subject: files.update({_NEXT_DAY: evidence(files, subject)}),
        CLAIM.id,
    )
    for what, edit in {
        "a file of evidence": editing(EVIDENCE, _noted),
        "a run": editing(EVIDENCE, lambda value: _noted(value["runs"][0])),
        "a result": runs(lambda entries, subject: _noted(entries[subject.first])),
        "a source": runs(
            lambda entries, subject: _noted(
                entries[subject.first]["sources"]["flashinfer"]
            )
        ),
        "the audit": editing(AUDIT, _noted),
        "an audit": audits(lambda entries, subject: _noted(entries[subject.first])),
    }.items():
        yield PullRequest(
            f"claim: a note in {what}, which no reader reads", edit, UNKNOWN_PATH.id
        )
    for name, change in {
        "smaller errors": runs(_smaller_errors),
        "more cases": runs(
            lambda entries, subject: entries[subject.first]["sources"][
                "flashinfer"
            ].update(cases=99)
        ),
        "another GPU": replacing(EVIDENCE, "a GPU", "another GPU"),
        "another day": replacing(EVIDENCE, "2026-01-01", "2026-01-09"),
        "of a kernel that was never run": runs(
            lambda entries, subject: entries[subject.first]["sources"].update(
                {"sglang": {"verdict": "PASSED", "cases": 9}}
            )
        ),
    }.items():
        point = REMOVED.id if "another" in name else "agreed"
        yield PullRequest(f"claim: evidence of {name}", change, point)
    yield PullRequest(
        "claim: the first's evidence under the third's name",
        together(add_third, render, _copied_evidence),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a run on the CPU that calls itself one of a kernel",
        together(add_third, render, _evidence_of(device="cpu")),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: the oracle alone",
        together(add_third, render, _sources_of("oracle")),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a replay of a recording, no kernel",
        together(add_third, render, _sources_of("recorded:flashinfer")),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a kernel that compared no case",
        together(add_third, render, _sources_of("flashinfer", cases=0)),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: a comparison that failed",
        together(add_third, render, _sources_of("flashinfer", verdict="FAILED")),
        "agreed",
        TRUSTED,
    )
    yield PullRequest(
        "claim: everything of a new definition, by its author",
        third_with_evidence,
        "agreed",
    )
    other = a_recording("of another run")
    yield PullRequest("claim: a recording", adding(RECORDING, other), "recording")
    yield PullRequest(
        "claim: a recording of which a byte is another, of an author who is trusted",
        adding(RECORDING, other[:-1] + b" "),
        DAMAGED.id,
        TRUSTED,
    )
    yield PullRequest(
        "claim: a recording that is a text", adding(RECORDING, b"x"), DAMAGED.id
    )
    yield PullRequest(
        "claim: a recording of another definition",
        adding("blob/ground_truth/{op}/{2}.safetensors", b"a recording"),
        "recording",
    )
    yield PullRequest(
        "claim: a solution that nobody ran",
        editing("{solution}", lambda value: value["sources"][0].update(content="x")),
        NOT_RUN,
    )
    yield PullRequest(
        "claim: a trace twice as fast",
        replacing("{traces}", '"latency_ms": 1', '"latency_ms": 0.5'),
        NOT_RUN,
    )


def _noted(value: dict[str, Any]) -> None:
    value["note"] = "All of it agreed on every GPU."


def _tagged(tag: str) -> Change:
    return editing(FIRST, lambda value: value["tags"].append(tag))


def _with_a_function_of_its_name(value: dict[str, Any]) -> None:
    name = value["name"].rpartition("_")[0]
    value["tags"].append(f"fi_api:flashinfer.no.such.{name}")


def _foretold(entries: dict[str, Any], subject: AuditedDataset) -> None:
    entries[subject.first] = {**entries[subject.first], "sha256": "ab" * 32}


def _of_the_new_text(files: Files, subject: AuditedDataset) -> None:
    path = _NEXT_DAY
    files[path] = evidence(files, subject, subject.first)


def _smaller_errors(entries: dict[str, Any], subject: AuditedDataset) -> None:
    for source in entries[subject.first]["sources"].values():
        source["nmse"] = 0.0


def _copied_evidence(files: Files, subject: AuditedDataset) -> None:
    value = json.loads(evidence(files, subject, subject.first))
    entries = value["runs"][0]["definitions"]
    value["runs"][0]["definitions"] = {subject.third: entries[subject.first]}
    files[_NEXT_DAY] = json.dumps(value).encode()


def _evidence_of(**machine: str) -> Change:
    def change(files: Files, subject: AuditedDataset) -> None:
        path = _NEXT_DAY
        files[path] = evidence(files, subject, subject.third, **machine)

    return change


def _sources_of(source: str, *, verdict: str = "PASSED", cases: int = 5) -> Change:
    def change(files: Files, subject: AuditedDataset) -> None:
        value = json.loads(evidence(files, subject, subject.third))
        entries = value["runs"][0]["definitions"][subject.third]
        entries["sources"] = {source: {"verdict": verdict, "cases": cases}}
        files[_NEXT_DAY] = json.dumps(value).encode()

    return change
