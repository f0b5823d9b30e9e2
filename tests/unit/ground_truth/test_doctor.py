"""The doctor's findings, on machines that are made up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.cli.trace_dataset import cli
from generator.execution import sandbox
from generator.ground_truth.doctor import (
    OpTypeProviders,
    ToolState,
    can_test,
    diagnose,
    served,
    table_lines,
)
from generator.ground_truth.machine import Machine
from generator.ops.registry import op_specs
from kernel_judge.obstacle import Kind
from tests.builders import ROOT

COMPLETE = {
    "pytest": "9.2.0",
    "numpy": "2.4.6",
    "safetensors": "0.8.0",
    "torch": "2.13.0",
    "huggingface_hub": "2.4.0",
    "pygit2": "1.21.0",
    "flashinfer-python": "0.6.18.post1",
    "flashinfer-jit-cache": "0.6.18.post1+cu130",
    "sglang": "0.5.23",
}


@dataclass(frozen=True)
class Imagined(Machine):
    """A machine with these versions, on which these modules fail to import."""

    versions: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    def version(self, distribution: str) -> str | None:
        return self.versions.get(distribution)

    def missing(self, modules: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.absent)

    def import_failure(self, module: str) -> str:
        return self.failures.get(module, "")


@pytest.fixture(autouse=True)
def _can_confine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "refusal", lambda: None)
    monkeypatch.setattr(sandbox, "warnings", lambda: ())


def states(machine: Machine) -> dict[str, ToolState]:
    return {check.name: check.state for check in diagnose(machine)}


def test_a_complete_machine_is_fine() -> None:
    checks = diagnose(Imagined(90, COMPLETE))
    assert {check.state for check in checks} == {ToolState.FINE}
    assert can_test(checks)
    assert all(check.advice == "" for check in checks)


def test_what_keeps_references_from_being_executed_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "warnings", lambda: ("no filter",))
    (check,) = (c for c in diagnose(Imagined(90, COMPLETE)) if "sandbox" in c.name)
    assert (check.state, check.detail) == (ToolState.FINE, "usable; no filter")
    monkeypatch.setattr(sandbox, "refusal", lambda: "no bwrap here")
    checks = diagnose(Imagined(90, COMPLETE))
    (check,) = (c for c in checks if "sandbox" in c.name)
    assert (check.state, check.detail) == (ToolState.ABSENT, "no bwrap here")
    assert can_test(checks)


def test_a_laptop_lacks_a_device_and_can_test_all_the_same() -> None:
    checks = diagnose(Imagined(None, COMPLETE))
    absent = {check.name for check in checks if check.state is ToolState.ABSENT}
    ground_truths = {f"ground truth: {p}" for p in ("flashinfer", "pytorch")}
    assert absent == {"cuda"} | ground_truths
    assert can_test(checks)


def test_a_machine_whose_device_nobody_can_ask_for_says_how_to_know_more() -> None:
    checks = diagnose(Imagined(None, COMPLETE, is_known=False))
    (cuda,) = (check for check in checks if check.name == "cuda")
    assert cuda.detail == "no CUDA device known without nvidia-ml-py"
    assert cuda.advice.startswith("pip install 'gen-tests[gpu]'")
    assert can_test(checks)


@pytest.mark.parametrize(
    ("absent", "detail"),
    [((), "0.5.23, usable"), (("zmq",), "0.5.23, usable (light installation)")],
)
def test_sglang_is_usable_without_a_device(
    absent: tuple[str, ...], detail: str
) -> None:
    checks = diagnose(Imagined(None, COMPLETE, absent=absent))
    (found,) = [check for check in checks if check.name == "ground truth: sglang"]
    assert (found.state, found.detail, found.advice) == (ToolState.FINE, detail, "")


def test_sglang_that_fails_to_import_is_broken() -> None:
    reason = "import failed: ModuleNotFoundError: No module named 'msgspec'"
    checks = diagnose(Imagined(None, COMPLETE, {"sglang": reason}))
    (found,) = [check for check in checks if check.name == "ground truth: sglang"]
    assert (found.state, found.detail) == (ToolState.BROKEN, reason)
    assert found.advice == "pip install 'gen-tests[sglang]'"


def test_the_device_is_described() -> None:
    machine = Imagined(
        90, COMPLETE, device="NVIDIA H200", memory=141 << 30, cuda="13.0"
    )
    (cuda,) = [check for check in diagnose(machine) if check.name == "cuda"]
    assert cuda.detail == "NVIDIA H200, SM90, 141.0 GiB, driver for CUDA 13.0"


def kinds(row: OpTypeProviders) -> dict[str, Kind | None]:
    """Return provider → what stands in its way."""
    return {p.provider: p.obstacle and p.obstacle.kind for p in row.providers}


def test_each_op_type_has_its_providers(tmp_path: Path) -> None:
    rows = {row.op_type: row for row in served(Imagined(90, COMPLETE), tmp_path)}
    assert list(rows) == list(op_specs())
    assert kinds(rows["rmsnorm"]) == {
        "flashinfer": None,
        "sglang": None,
        "pytorch": Kind.NO_ADAPTER,
        "oracle": None,
    }
    assert kinds(rows["gemm"])["flashinfer"] is None
    laptop = Imagined(None, COMPLETE, absent=("zmq",))
    rows = {row.op_type: row for row in served(laptop, tmp_path)}
    assert kinds(rows["rmsnorm"])["flashinfer"] is Kind.NEEDS_CUDA
    assert kinds(rows["gemm"])["pytorch"] is Kind.NEEDS_CUDA
    without = Imagined(90, {"sglang": "0.5.1"}, {"flashinfer": "import failed"})
    (row, *_) = served(without, tmp_path)
    assert kinds(row)["sglang"] is Kind.TOO_OLD
    assert kinds(row)["oracle"] is Kind.NOT_INSTALLED


def test_the_table_has_short_cells_and_each_reason_once(tmp_path: Path) -> None:
    laptop = Imagined(None, COMPLETE, absent=("zmq",))
    lines = list(table_lines(served(laptop, tmp_path)))
    assert lines[0].split() == [
        "op_type",
        *("flashinfer", "sglang", "pytorch", "recorded", "oracle"),
    ]
    cells = {line.split("  ")[0]: line for line in lines[1 : 1 + len(op_specs())]}
    assert re.split(r" {2,}", cells["rmsnorm"]) == [
        "rmsnorm",
        *("no CUDA", "light", "no adapter", "-", "usable"),
    ]
    assert re.split(r" {2,}", cells["gemm"])[1:4] == [
        "no CUDA",
        "no adapter",
        "no CUDA",
    ]
    reasons = lines[1 + len(op_specs()) :]
    assert len(reasons) == len(set(reasons))
    assert "flashinfer: needs CUDA, no CUDA device here" in reasons
    assert "sglang 0.5.23: light installation" in reasons
    assert all(len(line) <= 100 for line in lines)


def test_recordings_of_this_dataset_are_counted() -> None:
    reasons = json.loads((ROOT / "blob/ground_truth/unrecorded.json").read_text())
    rows = served(Imagined(None, {}), ROOT)
    assert sum(row.definitions - row.recorded for row in rows) == len(reasons)
    files = (ROOT / "blob/ground_truth").glob("*/*.safetensors")
    assert sum(row.recorded for row in rows) == len(list(files))


@pytest.mark.parametrize("needed", ["pytest", "numpy", "torch"])
def test_without_a_needed_package_nothing_can_be_tested(needed: str) -> None:
    left = {name: v for name, v in COMPLETE.items() if name != needed}
    checks = diagnose(Imagined(90, left))
    assert not can_test(checks)
    (missing,) = [check for check in checks if check.name == needed]
    assert missing.state is ToolState.ABSENT
    assert missing.advice.startswith("pip install 'gen-tests[")


def test_a_package_that_fails_to_import_is_broken() -> None:
    reason = "import failed: OSError: libcudart.so.13: cannot open"
    found = states(Imagined(90, COMPLETE, {"torch": reason, "flashinfer": reason}))
    assert found["torch"] is ToolState.BROKEN
    assert found["ground truth: flashinfer"] is ToolState.BROKEN
    assert found["ground truth: sglang"] is ToolState.FINE


@pytest.mark.parametrize(
    ("failures", "status"), [({}, 0), ({"torch": "import failed: OSError: x"}, 1)]
)
def test_the_command_s_exit_status_says_whether_tests_can_run(
    monkeypatch: pytest.MonkeyPatch, failures: dict[str, str], status: int
) -> None:
    machine = Imagined(None, COMPLETE, failures)
    monkeypatch.setattr("generator.ground_truth.machine.this_machine", lambda: machine)
    done = CliRunner().invoke(
        cli, ["doctor", "--dataset", str(ROOT)], standalone_mode=False
    )
    assert done.return_value == status
    assert "cuda: no CUDA device here\n" in done.output
    as_json = CliRunner().invoke(
        cli, ["doctor", "--json", "--dataset", str(ROOT)], standalone_mode=False
    )
    assert re.search(r"^gemm .* \d+/\d+ ", done.output, re.MULTILINE)
    found = json.loads(as_json.output)
    assert [row["op_type"] for row in found["op_types"]] == list(op_specs())
    (gemm,) = (row for row in found["op_types"] if row["op_type"] == "gemm")
    (gqa,) = (row for row in found["op_types"] if row["op_type"] == "gqa_ragged")
    assert gqa["definitions"] > gqa["recorded"] > 0
    (moe,) = (row for row in found["op_types"] if row["op_type"] == "moe")
    assert moe["definitions"] >= moe["recorded"] > 0
    assert gemm["providers"]["pytorch"]["kind"] == "needs-cuda"
    assert gemm["providers"]["flashinfer"]["kind"] == "needs-cuda"
    checks = found["checks"]
    (torch,) = [check for check in checks if check["name"] == "torch"]
    assert torch["state"] == ("broken" if failures else "fine")


def test_flashinfers_compiled_modules_are_looked_for_where_they_would_be_used() -> None:
    name, wheel = "compiled kernels", "flashinfer-jit-cache"
    lacking = {key: version for key, version in COMPLETE.items() if key != wheel}
    (without,) = (c for c in diagnose(Imagined(90, lacking)) if c.name == name)
    assert (without.state, without.needed) == (ToolState.ABSENT, False)
    assert without.advice == "flashinfer install-jit-cache-wheel"
    (there,) = (c for c in diagnose(Imagined(90, COMPLETE)) if c.name == name)
    assert COMPLETE[wheel] in there.detail
    for machine in (Imagined(None, lacking), Imagined(90, {"torch": "2.13.0"})):
        assert name not in {check.name for check in diagnose(machine)}
