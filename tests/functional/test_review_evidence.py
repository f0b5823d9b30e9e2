"""What `trace-dataset review` makes of the evidence in verification/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.dataset.workload_identity import workload_identity
from generator.review.audit.subject import a_recording
from tests.functional.hostile import LINES, write
from tests.functional.reviewed import (
    REFERENCE,
    answers,
    axes,
    changed,
    commit,
    evidence,
    review,
    reviewed,
    run_of,
    write_runs,
)
from tests.functional.test_validate import DEFINITION, WORKLOAD

APPROVE, CHANGES, GPU = 0, 1, 3
ON_GPU = "agreed with a production kernel on a GPU"
CLAIM = "the change itself says so"
OTHERS = "evidence is what it was"


def test_what_only_the_change_says_is_not_evidence(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "(A @ B.T)*1"))
    evidence(root)
    found = reviewed(root, status=GPU)
    assert answers(found)[ON_GPU] == "unknown"
    assert "only the change itself says so" in str(found["checklist"])
    reviewed(root, "--trust-evidence", status=APPROVE)


def test_evidence_that_was_there_counts(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "(A @ B.T)*1"))
    evidence(root)
    commit(root)
    changed(
        root, reference=REFERENCE.replace("A @ B.T", "(A @ B.T)*1"), description="x"
    )
    found = reviewed(root, status=APPROVE)
    assert answers(found)[ON_GPU] == "yes"


def test_a_run_that_failed_speaks_against(root: Path) -> None:
    changed(root, description="x")
    evidence(root, verdict="FAILED")
    found = reviewed(root, "--trust-evidence", status=CHANGES)
    assert answers(found)[ON_GPU] == "no"


def test_evidence_alone_is_the_authors_word_too(root: Path) -> None:
    evidence(root)
    found = reviewed(root, status=GPU)
    assert answers(found)["evidence is what it was"] == "unknown"
    assert found["to_run"][0] == "gen-tests --definition-name gemm_n8_k4"
    assert found["to_run"][-1] == "trace-dataset record --definition-name gemm_n8_k4"
    reviewed(root, "--trust-evidence", status=APPROVE)


def test_evidence_on_many_definitions_takes_a_run_of_all(root: Path) -> None:
    names = [f"gemm_n{n}_k4" for n in range(20, 50)]
    for name in names:
        definition = {**DEFINITION, "name": name, "axes": axes(int(name[6:8]))}
        write(root, f"definitions/gemm/{name}.json", definition)
    commit(root)
    write_runs(root, "gpu", run_of(root, *names))
    found = reviewed(root, status=GPU)
    assert found["to_run"][0] == "gen-tests --all"


def test_runs_of_one_text_on_two_machines_are_both_known(root: Path) -> None:
    both = ["gemm_n8_k4", "gemm_n9_k4"]
    older = run_of(root, *both, source="flashinfer/fa3", flashinfer="0.6.17")
    write_runs(root, "gpu", older, run_of(root, *both))
    commit(root)
    changed(root, description="x")
    found = reviewed(root, status=APPROVE)
    assert OTHERS not in answers(found)
    assert found["to_run"] == []


def test_runs_of_one_day_and_machine_in_two_files_are_both_known(root: Path) -> None:
    write_runs(root, "a", run_of(root, "gemm_n8_k4"))
    write_runs(root, "b", run_of(root, "gemm_n9_k4"))
    commit(root)
    workload = {**WORKLOAD["workload"], "uuid": "two", "axes": {"M": 5}}
    more = {**WORKLOAD, "workload": workload}
    write(root, LINES, f"{json.dumps(WORKLOAD)}\n{json.dumps(more)}\n")
    found = reviewed(root, status=APPROVE)
    assert answers(found)[ON_GPU] == "yes"
    assert OTHERS not in answers(found)
    assert CLAIM not in review(root, "--format", "html").stdout
    write_runs(root, "c", run_of(root, "gemm_n8_k4", source="flashinfer/fa3"))
    assert CLAIM in review(root, "--format", "html").stdout


def test_evidence_that_moves_to_another_machine_is_other_evidence(root: Path) -> None:
    run = run_of(root, "gemm_n8_k4", "gemm_n9_k4")
    write_runs(root, "gpu", run_of(root, "gemm_n8_k4"), {**run, "machine": {}})
    commit(root)
    write_runs(root, "gpu", run)
    changed(root, description="x")
    found = reviewed(root, status=CHANGES)
    assert "'gemm_n9_k4'" in found["reasons"][0]
    assert answers(found)[OTHERS] == "unknown"
    assert "gemm_n9_k4" in found["to_run"][0]


RECORDING = "blob/ground_truth/gemm/gemm_n8_k4.safetensors"


def test_a_recording_that_is_damaged_is_refused_whoever_is_trusted(root: Path) -> None:
    evidence(root)
    commit(root)
    content = a_recording("of a run")
    for damaged in (content + b"\0", content[:-1], b"", b"x"):
        write(root, RECORDING, damaged)
        found = reviewed(root, "--trust-evidence", status=CHANGES)
        assert f"{RECORDING!r}: It is damaged: " in found["reasons"][0]
    write(root, RECORDING, content)
    reviewed(root, "--trust-evidence", status=APPROVE)


def test_a_recording_that_the_change_brings_is_to_be_seen(root: Path) -> None:
    evidence(root)
    commit(root)
    write(root, RECORDING, a_recording("of a run"))
    found = reviewed(root, status=GPU)
    assert answers(found)["recording of a kernel's outputs, replayed"] == "unknown"


AT_WORKLOADS = "agreed at the sizes of its workloads"


def _at_workloads(root: Path, *workloads: dict[str, Any]) -> None:
    run = run_of(root, "gemm_n8_k4")
    source = run["definitions"]["gemm_n8_k4"]["sources"]["flashinfer/fa2"]
    source["compared"] = {
        "small": ["a"],
        "workload": [workload_identity(workload) for workload in workloads],
    }
    write_runs(root, "gpu", run)


def test_evidence_counts_at_the_workloads_that_it_names(root: Path) -> None:
    write(root, "review.toml", "[points]\nrequired = ['at-workloads']\n")
    one: Any = WORKLOAD["workload"]
    _at_workloads(root, one)
    commit(root)
    changed(root, reference=DEFINITION["reference"] + "# x\n")
    _at_workloads(root, one)
    assert answers(reviewed(root, status=GPU))[AT_WORKLOADS] == "unknown"
    found = reviewed(root, "--trust-evidence", status=APPROVE)
    assert answers(found)[AT_WORKLOADS] == "yes"
    # another workload of the same uuid is none that was compared
    other = {**one, "axes": {"M": one["axes"]["M"] + 1}}
    write(root, LINES, json.dumps({**WORKLOAD, "workload": other}) + "\n")
    accepted = ("--trust-evidence", "--accept", f"removal:{LINES}")
    found = reviewed(root, *accepted, status=GPU)
    assert answers(found)[AT_WORKLOADS] == "unknown"
    assert "--workloads all" in found["to_run"][1]
    assert "0 of 1 workload on record" in str(found["checklist"])


def test_where_a_dataset_does_not_ask_workloads_in_evidence_are_told(
    root: Path,
) -> None:
    evidence(root)
    commit(root)
    changed(root, description="x")
    evidence(root)
    found = reviewed(root, "--trust-evidence", status=APPROVE)
    assert answers(found)[AT_WORKLOADS] == "unknown"
    assert "--workloads" not in " ".join(found["to_run"])
