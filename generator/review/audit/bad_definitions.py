"""Bad pull requests that change what a definition computes, or what it is called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from generator.review.audit.bad_claims import TRUSTED
from generator.review.audit.changes import (
    FIRST,
    LINES,
    RECORDING,
    SECOND,
    add_third,
    reference,
    render,
    third_with_evidence,
    with_evidence_after,
    workloads,
)
from generator.review.audit.pull_request import (
    PullRequest,
    adding,
    editing,
    removing,
    replacing,
    together,
)
from generator.review.audit.subject import AuditedDataset, Files, evidence
from generator.review.findings import REMOVED, TWIN, UNRENDERED, WEAKER
from generator.review.review import NEW_ERROR
from generator.rules.basis import basis_of_bytes


def of_definitions() -> Iterator[PullRequest]:
    """Yield definitions that compute another thing, or are not shown to compute theirs."""
    wrong = reference("return ", "return 2 * ")
    yield PullRequest("definition: a wrong reference", wrong, "rendered-test")
    yield PullRequest(
        "definition: a wrong reference, rendered", together(wrong, render), "agreed"
    )
    yield PullRequest(
        "definition: a wrong reference, with evidence of its author",
        with_evidence_after(wrong),
        "agreed",
    )
    yield PullRequest(
        "definition: a wrong reference in the test alone",
        replacing("{test}", "return ", "return 2 * "),
        UNRENDERED.id,
    )
    yield PullRequest(
        "definition: a docstring that the reference reads",
        together(reference("first text", "another text"), render),
        "agreed",
        before=with_evidence_after(_reads_docstring),
    )
    yield PullRequest(
        "definition: a docstring that numpy.info reads",
        together(reference("first text", "another text"), render),
        "agreed",
        before=with_evidence_after(_shows_docstring),
    )
    yield PullRequest(
        "definition: a comment that reads backwards",
        together(reference("import torch", "# \u202e a\nimport torch"), render),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: a comment that says another coding",
        together(reference("", "# coding: utf-7\n"), render),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: an input is drawn from elsewhere",
        together(editing(FIRST, _drawn_from_elsewhere), render),
        WEAKER.id,
    )
    yield PullRequest(
        "definition: a line that the reference counts",
        together(reference("import torch", "# more\nimport torch"), render),
        "agreed",
        before=with_evidence_after(_counts_lines),
    )
    yield PullRequest(
        "definition: a constraint more",
        together(editing(FIRST, _constrained), render),
        "agreed",
    )
    yield PullRequest(
        "definition: a constraint twice",
        together(
            editing(
                FIRST, lambda value: value["constraints"].extend(value["constraints"])
            ),
            render,
        ),
        "agreed",
        before=with_evidence_after(editing(FIRST, _constrained)),
    )
    yield PullRequest(
        "definition: a constraint less, with evidence of its author",
        with_evidence_after(editing(FIRST, _unconstrained)),
        WEAKER.id,
        TRUSTED,
        before=with_evidence_after(editing(FIRST, _constrained)),
    )
    yield PullRequest(
        "definition: an input that may be left out, with evidence of its author",
        with_evidence_after(editing(FIRST, _optional)),
        WEAKER.id,
        TRUSTED,
    )
    yield PullRequest(
        "definition: its axes in another order",
        together(editing(FIRST, _axes_reversed), render),
        "agreed",
    )
    yield PullRequest(
        "definition: a description of 30,000 characters",
        editing(FIRST, lambda value: value.update(description="x" * 30_000)),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: a tag of 2,000 characters",
        editing(FIRST, lambda value: value.update(tags=["x" * 2_000])),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: an output of a coarser dtype",
        together(editing(FIRST, _coarser), render),
        WEAKER.id,
    )
    yield PullRequest(
        "definition: an input less is declared",
        editing(FIRST, _one_input_less),
        NEW_ERROR,
    )
    yield PullRequest("definition: no JSON", adding(FIRST, "{"), NEW_ERROR)
    yield PullRequest(
        "definition: an unknown field",
        editing(FIRST, lambda value: value.update(tolerance=1.0)),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: of 17 MiB",
        editing(FIRST, lambda value: value.update(description="x" * (17 << 20))),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: a key twice",
        replacing(FIRST, '"name":', '"name": "x", "name":'),
        NEW_ERROR,
    )
    yield PullRequest(
        "definition: two change places", together(_swapped, render), NEW_ERROR
    )
    yield PullRequest(
        "definition: renamed, its recording lost",
        together(_renamed, removing(RECORDING), render),
        REMOVED.id,
    )
    yield PullRequest(
        "definition: renamed, and of a coarser dtype",
        _renamed_and_coarser,
        REMOVED.id,
        TRUSTED,
    )
    yield PullRequest(
        "definition: a twin of another name, without evidence",
        together(_twin, render),
        "agreed",
    )
    yield PullRequest(
        "definition: the same one in capitals",
        lambda files, subject: files.update(
            {
                subject.definition(subject.first.upper()): files[
                    subject.definition(subject.first)
                ]
            }
        ),
        TWIN.id,
    )
    yield PullRequest(
        "definition: new, without a run", together(add_third, render), "agreed"
    )
    yield PullRequest(
        "definition: new, without a rendered test", add_third, "rendered-test"
    )
    yield PullRequest(
        "definition: described anew, and its test as it was",
        editing(FIRST, lambda value: value.update(description="Another.")),
        "rendered-test",
    )
    yield PullRequest(
        "definition: new, without workloads",
        together(add_third, removing("workloads/{op}/{3}.jsonl"), render),
        "workloads",
    )
    yield PullRequest(
        "definition: new, and each workload is empty",
        together(third_with_evidence, _emptied),
        "workloads",
        TRUSTED,
    )
    yield PullRequest(
        "definition: of an op_type that nobody knows, with a run",
        _unknown_op_type,
        "proven",
        TRUSTED,
    )
    yield PullRequest(
        "definition: tests for a definition that is gone",
        together(removing(SECOND), removing("workloads/{op}/{2}.jsonl")),
        REMOVED.id,
    )
    yield PullRequest(
        "workloads: of a definition that does not exist",
        adding("workloads/{op}/nothing.jsonl", b""),
        NEW_ERROR,
    )
    yield PullRequest(
        "workloads: an axis that the definition has not",
        workloads(lambda lines: lines[0]["workload"]["axes"].update(zzz=1)),
        NEW_ERROR,
    )
    yield PullRequest(
        "workloads: one uuid twice",
        workloads(lambda lines: [*lines, lines[0]]),
        NEW_ERROR,
    )
    yield PullRequest(
        "workloads: a blob outside of the dataset",
        workloads(_blob_outside),
        NEW_ERROR,
    )
    yield PullRequest(
        "workloads: emptied, and the definition described anew",
        together(
            adding(LINES, b""),
            editing(FIRST, lambda value: value.update(description="Another.")),
            render,
        ),
        REMOVED.id,
    )


def _reads_docstring(files: Files, subject: AuditedDataset) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["reference"] += (
            "\n\ndef scale():\n    '''first text'''\n    return 1.0\n\n\n"
            "SCALE = len(scale.__doc__) / 10\n"
        )

    editing(FIRST, edit)(files, subject)


def _shows_docstring(files: Files, subject: AuditedDataset) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["reference"] += (
            "\n\nimport numpy\n\nSEEN = []\n\n\nclass Page:\n"
            "    def write(self, text):\n        SEEN.append(text)\n\n\n"
            "def scale():\n    '''first text'''\n    return 1.0\n\n\n"
            "numpy.info(scale, output=Page())\n"
        )

    editing(FIRST, edit)(files, subject)


def _counts_lines(files: Files, subject: AuditedDataset) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["reference"] += "\n\nLINE = run.__code__.co_firstlineno\n"

    editing(FIRST, edit)(files, subject)


def _constrained(value: dict[str, Any]) -> None:
    axis = next(n for n, a in value["axes"].items() if a["type"] == "var")
    value["constraints"] = [*value.get("constraints", []), f"{axis} >= 1"]


def _unconstrained(value: dict[str, Any]) -> None:
    value["constraints"].pop()


def _optional(value: dict[str, Any]) -> None:
    next(iter(value["inputs"].values()))["optional"] = True


def _axes_reversed(value: dict[str, Any]) -> None:
    value["axes"] = dict(reversed(value["axes"].items()))


def _drawn_from_elsewhere(value: dict[str, Any]) -> None:
    next(iter(value["inputs"].values()))["domain"] = "unit"


def _coarser(value: dict[str, Any]) -> None:
    for output in value["outputs"].values():
        output["dtype"] = "float8_e4m3fn"


def _one_input_less(value: dict[str, Any]) -> None:
    value["inputs"].popitem()


def _swapped(files: Files, subject: AuditedDataset) -> None:
    one, other = subject.definition(subject.first), subject.definition(subject.second)
    files[one], files[other] = files[other], files[one]


def _renamed(files: Files, subject: AuditedDataset) -> None:
    renamed(files, subject)


def _renamed_and_coarser(files: Files, subject: AuditedDataset) -> None:
    name = renamed(files, subject)
    value = json.loads(files[subject.definition(name)])
    _coarser(value)
    files[subject.definition(name)] = json.dumps(value).encode()
    files[subject.recording(name)] = files.pop(subject.recording(subject.first))
    render(files, subject)


def renamed(files: Files, subject: AuditedDataset) -> str:
    """Move the first definition to another name, and what names it; return the name."""
    name = f"{subject.first}_again"
    value = json.loads(files.pop(subject.definition(subject.first)))
    files[subject.definition(name)] = json.dumps({**value, "name": name}).encode()
    lines = map(json.loads, files.pop(subject.workloads(subject.first)).splitlines())
    files[subject.workloads(name)] = "".join(
        json.dumps({**line, "definition": name}) + "\n" for line in lines
    ).encode()
    for path in [p for p in files if p.startswith(("solutions/", "traces/"))]:
        text = files.pop(path).decode().replace(subject.first, name)
        files[path.replace(subject.first, name)] = text.encode()
    return name


def renamed_with_all(files: Files, subject: AuditedDataset) -> None:
    """Move the first definition and its recording to another name, and render."""
    name = renamed(files, subject)
    files[subject.recording(name)] = files.pop(subject.recording(subject.first))
    render(files, subject)


def _twin(files: Files, subject: AuditedDataset) -> None:
    name = f"{subject.first}_again"
    value = json.loads(files[subject.definition(subject.first)])
    files[subject.definition(name)] = json.dumps({**value, "name": name}).encode()
    lines = map(json.loads, files[subject.workloads(subject.first)].splitlines())
    files[subject.workloads(name)] = "".join(
        json.dumps({**line, "definition": name}) + "\n" for line in lines
    ).encode()


def _unknown_op_type(files: Files, subject: AuditedDataset) -> None:
    unknown(files, subject)


def unknown(files: Files, subject: AuditedDataset) -> str:
    """Add the third definition as one of an op_type that nobody knows; return it."""
    value = json.loads(subject.third_files[subject.definition(subject.third)])
    value["op_type"] = "unheard_of"
    path = f"definitions/unheard_of/{subject.third}.json"
    files[path] = json.dumps(value).encode()
    lines = subject.third_files[subject.workloads(subject.third)]
    files[f"workloads/unheard_of/{subject.third}.jsonl"] = lines
    render(files, subject)

    text = json.loads(
        evidence({**files, **subject.third_files}, subject, subject.third)
    )
    entries = text["runs"][0]["definitions"][subject.third]
    entries["sha256"] = basis_of_bytes(files[path], path)
    files["verification/2026-01-02_audit.json"] = json.dumps(text).encode()
    return subject.third


def _emptied(files: Files, subject: AuditedDataset) -> None:
    path = subject.workloads(subject.third)
    line = json.loads(files[path].splitlines()[0])
    axes = line["workload"]["axes"]
    line["workload"]["axes"] = dict.fromkeys(axes, 0)
    files[path] = json.dumps(line).encode() + b"\n"


def _blob_outside(lines: list[dict[str, Any]]) -> None:
    inputs = lines[0]["workload"]["inputs"]
    name = next(iter(inputs))
    inputs[name] = {
        "type": "safetensors",
        "path": "../x.safetensors",
        "tensor_key": "x",
    }
