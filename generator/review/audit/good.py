"""Good pull requests: whoever keeps a dataset must be able to merge these at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from generator.dataset.changes import UNRECORDED
from generator.dataset.paths import AUDIT
from generator.review.audit.bad_branches import evidence_first
from generator.review.audit.bad_claims import TRUSTED
from generator.review.audit.bad_definitions import renamed_with_all, unknown
from generator.review.audit.changes import (
    FIRST,
    LINES,
    RECORDING,
    add_third,
    agreed_at_workloads,
    asking_for,
    audits,
    describing,
    more,
    reference,
    render,
    runs,
    third_with_evidence,
    with_evidence_after,
    workloads,
)
from generator.review.audit.pull_request import (
    PullRequest,
    adding,
    editing,
    moving,
    removing,
    together,
)
from generator.review.audit.subject import (
    EVIDENCE,
    TESTS,
    AuditedDataset,
    Files,
    a_recording,
    audit,
    evidence,
)
from generator.review.review import ReviewRequest
from generator.review.settings import SETTINGS


def good() -> Iterator[PullRequest]:
    """Yield good pull requests."""
    yield from _of_definitions()
    yield from _of_workloads()
    yield from _of_evidence()
    yield from _accepted()
    pages = {
        "NOTICE": b"A note.",
        "CHANGELOG.md": "Grüße: \u26a0\ufe0f ein Würfel, \u03c7\u00b2".encode(),
        "docs/notes.md": b"A note.\r\n",
        "docs/images/x.png": b"\x89PNG\r\n\x1a\n...",
        "docs/images/x.jpg": b"\xff\xd8\xff...",
    }
    for path, content in pages.items():
        yield PullRequest(f"document: {path}", adding(path, content))
    page = "docs/notes.md"
    yield PullRequest("document: of 3 MiB", adding(page, "a page\n" * (3 << 17)))
    yield PullRequest(
        "document: what nobody saw is out of it",
        adding(page, "up down"),
        before=adding(page, "up \u202edown"),
    )
    yield PullRequest("document: gone", removing(page), before=adding(page, "a page"))
    yield PullRequest(
        "definition: what nobody saw is out of its description",
        together(editing(FIRST, describing("up down")), render),
        before=together(editing(FIRST, describing("up \u202edown")), render),
    )


def _of_definitions() -> Iterator[PullRequest]:
    described = editing(
        FIRST, lambda value: value.update(description="In other words.")
    )
    described_anew = together(described, render)
    yield PullRequest("definition: described anew", described_anew)
    yield PullRequest("definition: laid out anew", together(_laid_out, render))
    yield PullRequest(
        "definition: a comment in the reference",
        together(_commented, render),
    )
    for what, text in {
        "Greek": "\u03b1 \u00b7 x\u00b2",
        "Chinese": "\u77e9\u9635",
    }.items():
        yield PullRequest(
            f"definition: described in {what}",
            together(
                editing(FIRST, describing(text)),
                reference("import torch", f"# {text}\nimport torch"),
                render,
            ),
        )
    yield PullRequest(
        "definition: a number is spelled otherwise",
        together(reference("5e-1", "0.50"), render),
        before=with_evidence_after(reference("\n\n", "\n\nHALF = 5e-1\n\n")),
    )
    yield PullRequest(
        "definition: a docstring in the reference",
        together(reference("\n    ", '\n    """In float32."""\n    '), render),
    )
    yield PullRequest(
        "definition: described anew, and its branch has another one",
        described_anew,
        # its tests would be a file that both changed
        since=add_third,
    )
    yield PullRequest(
        "definition: described anew, and its branch has more evidence on another",
        described_anew,
        since=_more_on_the_second,
    )
    yield PullRequest(
        "definition: described anew, and its branch has that already",
        described_anew,
        since=described_anew,
    )
    yield PullRequest(
        "definition: a comment in the reference, its evidence made anew",
        with_evidence_after(_commented),
        asked=TRUSTED,
    )
    yield PullRequest(
        "definition: a workload more, described anew",
        together(described, render, workloads(more(1))),
    )
    yield PullRequest(
        "definition: new, its evidence was there first",
        together(add_third, render),
        before=evidence_first,
    )
    yield PullRequest(
        "definition: new, with everything, of an author who is trusted",
        third_with_evidence,
        asked=TRUSTED,
    )
    yield PullRequest(
        "definition: new, in a dataset that asks for everything",
        third_with_evidence,
        asked=TRUSTED,
        before=adding(
            SETTINGS, "[points]\nrequired = ['agreed', 'workloads', 'rendered-test']\n"
        ),
    )
    yield PullRequest(
        "definition: changed, with evidence of an author who is trusted",
        with_evidence_after(reference("return ", "return 1.0 * ")),
        asked=TRUSTED,
    )
    yield PullRequest(
        "definition: changed, in a dataset that asks for no kernel",
        together(reference("return ", "return 1.0 * "), render),
        before=adding(SETTINGS, "[points]\nadvice = ['agreed']\n"),
    )
    yield PullRequest(
        "definition: renamed with all it has",
        renamed_with_all,
        before=together(removing("{solution}"), removing("{traces}")),
    )
    yield PullRequest(
        "definition: mended",
        with_evidence_after(editing(FIRST, _without_x)),
        before=together(editing(FIRST, lambda value: value.update(x=1)), _evidence_now),
        asked=TRUSTED,
    )
    yield PullRequest(
        "definition: with which nothing can be compared, which is accepted",
        _unknown,
        asked=ReviewRequest(trust_evidence=True, unproven=("{3}",)),
    )


def _of_workloads() -> Iterator[PullRequest]:
    yield PullRequest("workloads: one more", workloads(more(1)))
    yield PullRequest(
        "workloads: one less, where a kernel agreed at each",
        workloads(lambda lines: lines[:-1]),
        asked=ReviewRequest(accepted=("removal:workloads/",)),
        before=together(asking_for("at-workloads"), agreed_at_workloads),
    )
    yield PullRequest("workloads: three more", workloads(more(3)))
    yield PullRequest(
        "workloads: in another order", workloads(lambda lines: lines[::-1])
    )
    yield PullRequest("workloads: laid out anew", workloads(lambda lines: None))


def _of_evidence() -> Iterator[PullRequest]:
    yield PullRequest(
        "evidence: of another GPU, trusted",
        _of_another_gpu,
        asked=TRUSTED,
    )
    yield PullRequest(
        "evidence: in a file of another name",
        moving(EVIDENCE, "verification/2026-01-01_gpu.json"),
    )
    yield PullRequest("evidence: laid out anew", editing(EVIDENCE, lambda value: None))
    yield PullRequest(
        "evidence: what is of another text is off the record",
        removing("verification/old.json"),
        before=_stale_evidence,
    )
    yield PullRequest(
        "evidence: a kernel more, trusted",
        runs(
            lambda entries, subject: entries[subject.first]["sources"].update(
                {"sglang": {"verdict": "PASSED", "cases": 5}}
            )
        ),
        asked=TRUSTED,
    )
    yield PullRequest(
        "audit: a survivor less, trusted",
        audits(lambda entries, subject: entries[subject.first].update(survivors=[])),
        asked=TRUSTED,
    )
    yield PullRequest("audit: laid out anew", editing(AUDIT, lambda value: None))
    yield PullRequest(
        "recording: of a definition that had none, trusted",
        together(
            adding(
                "blob/ground_truth/{op}/{2}.safetensors", a_recording("of the second")
            ),
            editing(UNRECORDED, lambda value: {}),
        ),
        asked=TRUSTED,
    )
    yield PullRequest(
        "traces: one more, trusted",
        _one_trace_more,
        asked=TRUSTED,
    )
    yield PullRequest(
        "tests: rendered where they were stale", render, before=_stale_tests
    )
    yield PullRequest(
        "tests: rendered where there were none", render, before=removing(f"{TESTS}/")
    )


def _one_trace_more(files: Files, subject: AuditedDataset) -> None:
    line = files[subject.traces]
    files[subject.traces] = line + line.replace(b"2026-01-01T", b"2026-01-02T")


def _accepted() -> Iterator[PullRequest]:
    def taking(*paths: str, trusted: bool = False) -> ReviewRequest:
        return ReviewRequest(trusted, tuple(f"removal:{path}" for path in paths))

    yield PullRequest(
        "accepted: a recording is gone", removing(RECORDING), asked=taking("blob/")
    )
    yield PullRequest(
        "accepted: a workload is gone",
        workloads(lambda lines: lines[:-1]),
        asked=taking("workloads/"),
        before=removing("{traces}"),
    )
    yield PullRequest(
        "accepted: a definition is gone with all it has",
        _without_first,
        asked=taking("definitions/"),
    )
    yield PullRequest(
        "accepted: an entry of the evidence is gone",
        runs(lambda entries, subject: entries.pop(subject.first)),
        asked=taking(EVIDENCE),
    )
    yield PullRequest(
        "accepted: another licence",
        adding("LICENSE", b"Another licence.\n"),
        asked=taking("LICENSE"),
    )
    yield PullRequest(
        "accepted: the audit is gone", removing(AUDIT), asked=taking(AUDIT)
    )


def _without_x(value: dict[str, Any]) -> None:
    del value["x"]


def _commented(files: Files, subject: AuditedDataset) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["reference"] = "# in float32\n" + value["reference"]

    editing(FIRST, edit)(files, subject)


def _laid_out(files: Files, subject: AuditedDataset) -> None:
    path = subject.definition(subject.first)
    files[path] = json.dumps(json.loads(files[path]), indent=8).encode()


def _more_on_the_second(files: Files, subject: AuditedDataset) -> None:
    path = "verification/2026-01-02_audit.json"
    files[path] = evidence(files, subject, subject.second)


def _evidence_now(files: Files, subject: AuditedDataset) -> None:
    files[EVIDENCE] = evidence(files, subject, subject.first, subject.second)


def _of_another_gpu(files: Files, subject: AuditedDataset) -> None:
    path = "verification/2026-01-02_audit.json"
    files[path] = evidence(files, subject, subject.first, subject.second, gpu="another")


def _stale_evidence(files: Files, subject: AuditedDataset) -> None:
    path = subject.definition(subject.first)
    value = json.loads(files[path])
    value["reference"] += "# of before\n"
    other = {**files, path: json.dumps(value).encode()}
    files["verification/old.json"] = evidence(other, subject, subject.first, gpu="old")


def _stale_tests(files: Files, subject: AuditedDataset) -> None:
    render(files, subject)
    path = subject.definition(subject.first)
    value = json.loads(files[path])
    value["reference"] += "# of now\n"
    files[path] = json.dumps(value).encode()
    files[EVIDENCE] = evidence(files, subject, subject.first, subject.second)
    files[AUDIT] = audit(files, subject, subject.first, subject.second)


def _unknown(files: Files, subject: AuditedDataset) -> None:
    unknown(files, subject)


def _without_first(files: Files, subject: AuditedDataset) -> None:
    together(
        removing(FIRST),
        removing(LINES),
        removing(RECORDING),
        removing("{solution}"),
        removing("{traces}"),
        render,
    )(files, subject)
