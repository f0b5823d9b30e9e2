"""The record of production kernels under conditions, and the page of it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import CONDITIONS_KEPT, discover_definitions
from generator.evaluation.certification.coverage import (
    HopperKernel,
    missing,
    of_hopper,
)
from generator.evaluation.certification.report import certificate
from generator.evaluation.certification.result import (
    Certified,
    current,
    kept,
    read_lines,
    record,
)
from generator.evaluation.certification.task import without_places
from generator.evaluation.conditions.condition import Condition
from generator.problems import Failure
from generator.reports import printed
from generator.rules.basis import basis_in
from tests.builders import ROOT, resized_json, write_dataset

GEMM = "gemm_n128_k128"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    value = resized_json("gemm_n4096_k4096", GEMM, N=128, K=128)
    return write_dataset(tmp_path / "dataset", (value,))


def certified(root: Path, **kernels: dict[str, Any]) -> Certified:
    (file,) = discover_definitions(root).files
    sha256 = basis_in(root, file.path)
    about = (file.name, file.op_type, file.path)
    return Certified(*about, kernels, "NVIDIA H100", sha256)


def verdicts(**named: str) -> dict[str, Any]:
    return {
        "conditions": {
            name: {"verdict": verdict, "reason": f"{name} | why", "details": {}}
            for name, verdict in named.items()
        },
        "versions": {"torch": "2.13"},
    }


def test_record_keeps_other_kernels_of_the_same_text(root, tmp_path):
    one = certified(root, pytorch=verdicts(graph="holds"))
    other = certified(root, sglang=verdicts(graph="broken"))
    lines = tmp_path / "results.jsonl"
    lines.write_text(f"{json.dumps(asdict(one))}\n{json.dumps(asdict(other))}\n")
    assert record(root, read_lines(lines)) == [GEMM, GEMM]
    (found,) = current(root)
    assert set(found.kernels) == {"pytorch", "sglang"}
    path = root / "definitions/gemm" / f"{GEMM}.json"
    value = json.loads(path.read_text())
    value["reference"] += "\n# changed\n"
    path.write_text(json.dumps(value))
    assert current(root) == []
    assert record(root, [one]) == [], "it is of another text"


def test_record_keeps_other_conditions_of_the_same_versions(root):
    record(root, [certified(root, pytorch=verdicts(graph="holds", batch="broken"))])
    record(root, [certified(root, pytorch=verdicts(memcheck="broken", batch="holds"))])
    (found,) = current(root)
    kept_now = found.kernels["pytorch"]["conditions"]
    assert {name: one["verdict"] for name, one in kept_now.items()} == {
        "graph": "holds",
        "batch": "holds",
        "memcheck": "broken",
    }
    newer = {**verdicts(memcheck="holds"), "versions": {"torch": "2.14"}}
    record(root, [certified(root, pytorch=newer)])
    assert set(current(root)[0].kernels["pytorch"]["conditions"]) == {"memcheck"}


def test_page_has_columns_of_tools_that_were_asked(root):
    found = certified(root, pytorch=verdicts(graph="holds", racecheck="broken"))
    page = "".join(printed(certificate([found], is_page=True), "markdown"))
    assert "| racecheck | 0 | 1 | 0 | 0 |" in page
    assert "memcheck" not in page


def test_page_counts_the_kernels_of_a_hopper_gpu(root):
    kernels = of_hopper(root)
    assert HopperKernel("gemm", "", "pytorch/cublas") in kernels
    assert all(names == {GEMM} for names in kernels.values())
    one = certified(root, **{"pytorch/cublas": verdicts(graph="holds")})
    absent = missing(kernels, [one])
    assert len(absent) == len(kernels) - 1
    page = "".join(
        printed(certificate([one], is_page=True, hopper=kernels), "markdown")
    )
    assert f"1 of {len(kernels)} kernels that one GPU of SM 90 can call" in page


def test_nothing_is_kept_of_what_was_not_asked(root):
    assert record(root, [replace(certified(root), error="timed out")]) == []
    assert record(root, [certified(root)]) == []
    skipped = certified(root, pytorch=verdicts(graph="skipped", batch="skipped"))
    assert record(root, [skipped]) == []
    both = certified(root, pytorch=verdicts(graph="skipped", batch="holds"))
    assert record(root, [both]) == [GEMM]


@pytest.mark.parametrize("text", ["", "[]", '{"definitions": {"a": 1}}', '{"a": {}}'])
def test_broken_record_is_one_line(root, text):
    path = root / CONDITIONS_KEPT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(Failure, match="is no record of conditions"):
        kept(root)


@pytest.mark.parametrize("text", ["x", '{"definition": 1}', "[1]", "\udcff"])
def test_broken_results_are_one_line(tmp_path, text):
    path = tmp_path / "results.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Failure, match="line 1 is no result of trace-dataset certify"):
        read_lines(path)


def test_page_has_a_summary_a_line_a_kernel_and_reasons(root):
    found = certified(
        root,
        pytorch=verdicts(graph="holds", batch="broken"),
        sglang=verdicts(graph="unsupported", batch="broken"),
    )
    page = "".join(printed(certificate([found], is_page=True), "markdown"))
    assert "| graph | 1 | 0 | 1 | 0 |" in page
    assert "| batch | 0 | 2 | 0 | 0 |" in page
    assert unescape(page).count(GEMM) == 2
    assert "graph | why" in unescape(page)


def test_a_reason_names_no_folder_of_a_machine() -> None:
    raised = (
        "at /x/lib/site-packages/torch/cuda/__init__.py and /x/y/sglang/jit/a.cuh:3"
    )
    shown = without_places(Condition("unsupported", raised)).reason
    assert shown == "at torch/cuda/__init__.py and sglang/jit/a.cuh:3"
    on_record = (ROOT / CONDITIONS_KEPT).read_text("utf-8")
    assert not re.search(r"(?<![\w.])/(tmp|opt|root|home|usr|work)/", on_record)
