"""Changes that several pull requests of the audit make."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from generator.dataset.paths import AUDIT
from generator.dataset.workload_identity import workload_identity
from generator.rendering.files import format_sums
from generator.review.audit.pull_request import (
    Change,
    NotApplicable,
    adding,
    editing,
)
from generator.review.audit.subject import (
    EVIDENCE,
    TESTS,
    AuditedDataset,
    Files,
    audit,
    evidence,
    rendered,
)
from generator.review.settings import SETTINGS

UUID = "00000000-0000-4000-8000-00000000000{}"
FIRST, SECOND = "definitions/{op}/{1}.json", "definitions/{op}/{2}.json"
LINES = "workloads/{op}/{1}.jsonl"
RECORDING = "blob/ground_truth/{op}/{1}.safetensors"
SUMS = f"{TESTS}/SHA256SUMS"


def render(files: Files, subject: AuditedDataset) -> None:
    """Render the tests of all definitions anew, as an honest author does."""
    new = rendered(files)
    for path in [p for p in files if p.startswith(f"{TESTS}/") and p not in new]:
        del files[path]
    files |= new


def sums(files: Files, subject: AuditedDataset) -> None:
    """Make SHA256SUMS fit whatever lies there, as a careful forger does."""
    from hashlib import sha256

    names = [p for p in files if p.startswith(f"{TESTS}/") and p != SUMS]
    listed = {p.removeprefix(f"{TESTS}/"): sha256(files[p]).hexdigest() for p in names}
    files[SUMS] = format_sums(listed)


def add_third(files: Files, subject: AuditedDataset) -> None:
    """Add the third definition and its workloads."""
    files |= subject.third_files


def third_with_evidence(files: Files, subject: AuditedDataset) -> None:
    """Add the third definition with everything that a complete one has."""
    add_third(files, subject)
    render(files, subject)
    files["verification/2026-01-02_audit.json"] = evidence(
        files, subject, subject.third
    )
    files[AUDIT] = audit(files, subject, subject.first, subject.second, subject.third)


def reference(old: str, new: str) -> Change:
    """Return a change of the first definition's reference."""

    def edit(value: Any) -> None:
        if old not in value["reference"]:
            raise NotApplicable(f"the reference has no {old!r}")
        value["reference"] = value["reference"].replace(old, new, 1)

    return editing(FIRST, edit)


def describing(text: str) -> Callable[[dict[str, Any]], None]:
    """Return an edit of a definition that describes it in other words."""

    def edit(value: dict[str, Any]) -> None:
        value["description"] = text

    return edit


def with_evidence_after(*changes: Change) -> Change:
    """Return changes, and evidence and audit on what the definitions are then."""

    def change(files: Files, subject: AuditedDataset) -> None:
        for one in changes:
            one(files, subject)
        render(files, subject)
        files[EVIDENCE] = evidence(files, subject, subject.first, subject.second)
        files[AUDIT] = audit(files, subject, subject.first, subject.second)

    return change


def workloads(edit: Any) -> Change:
    """Return a change of the first definition's list of workload lines."""

    def change(files: Files, subject: AuditedDataset) -> None:
        path = subject.workloads(subject.first)
        lines = [json.loads(line) for line in files[path].splitlines()]
        edited = edit(lines)
        lines = lines if edited is None else edited
        files[path] = "".join(json.dumps(line) + "\n" for line in lines).encode()

    return change


def more(count: int) -> Any:
    """Return an edit that adds workloads to a list of lines."""

    def edit(lines: list[dict[str, Any]]) -> None:
        for n in range(count):
            more = json.loads(json.dumps(lines[0]))
            more["workload"]["uuid"] = UUID.format(n)
            axes = more["workload"]["axes"]
            name = next(iter(axes))
            axes[name] += 1001 + 17 * n * n
            lines.append(more)

    return edit


def asking_for(*points: str) -> Change:
    """Return a change of review.toml, which requires points."""
    names = ", ".join(f"'{point}'" for point in points)
    return adding(SETTINGS, f"[points]\nrequired = [{names}]\n")


def agreed_at_workloads(files: Files, subject: AuditedDataset) -> None:
    """Let a kernel on record agree at each workload of the first definition."""
    lines = map(json.loads, files[subject.workloads(subject.first)].splitlines())
    names = [workload_identity(line["workload"]) for line in lines]

    def edit(entries: dict[str, Any], subject: AuditedDataset) -> None:
        entries[subject.first]["sources"]["flashinfer"]["compared"] = {
            "workload": names
        }

    runs(edit)(files, subject)


def runs(edit: Any) -> Change:
    """Return a change of the definitions that the first run of evidence has."""

    def change(files: Files, subject: AuditedDataset) -> None:
        value = json.loads(files[EVIDENCE])
        edit(value["runs"][0]["definitions"], subject)
        files[EVIDENCE] = json.dumps(value).encode()

    return change


def audits(edit: Any) -> Change:
    """Return a change of the entries of audit.json."""

    def change(files: Files, subject: AuditedDataset) -> None:
        value = json.loads(files[AUDIT])
        edit(value["definitions"], subject)
        files[AUDIT] = json.dumps(value).encode()

    return change
