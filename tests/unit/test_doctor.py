"""The doctor's findings, on machines that are made up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from click.testing import CliRunner

from generator.cli.trace_dataset import cli
from generator.doctor import State, can_test, diagnose, served
from generator.ground_truth.machine import Machine
from generator.ops import OPS

COMPLETE = {
    "pytest": "9.2.0",
    "numpy": "2.4.6",
    "safetensors": "0.8.0",
    "torch": "2.13.0",
    "huggingface_hub": "2.4.0",
    "flashinfer-python": "0.6.18.post1",
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


def states(machine: Machine) -> dict[str, State]:
    return {check.name: check.state for check in diagnose(machine)}


def test_a_complete_machine_is_fine() -> None:
    checks = diagnose(Imagined(90, COMPLETE))
    assert {check.state for check in checks} == {State.FINE}
    assert can_test(checks)
    assert all(check.advice == "" for check in checks)


def test_a_laptop_lacks_a_device_and_can_test_all_the_same() -> None:
    checks = diagnose(Imagined(None, COMPLETE))
    absent = {check.name for check in checks if check.state is State.ABSENT}
    ground_truths = {f"ground truth: {p}" for p in ("flashinfer", "pytorch")}
    assert absent == {"cuda"} | ground_truths
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
    assert (found.state, found.detail, found.advice) == (State.FINE, detail, "")


def test_sglang_that_fails_to_import_is_broken() -> None:
    reason = "import failed: ModuleNotFoundError: No module named 'msgspec'"
    checks = diagnose(Imagined(None, COMPLETE, {"sglang": reason}))
    (found,) = [check for check in checks if check.name == "ground truth: sglang"]
    assert (found.state, found.detail) == (State.BROKEN, reason)
    assert found.advice == "pip install 'gen-tests[sglang]'"


def test_the_device_is_described() -> None:
    machine = Imagined(
        90, COMPLETE, device="NVIDIA H200", memory=141 << 30, cuda="13.0"
    )
    (cuda,) = [check for check in diagnose(machine) if check.name == "cuda"]
    assert cuda.detail == "NVIDIA H200, SM90, 141.0 GiB, driver for CUDA 13.0"


def test_each_op_type_has_its_provider_or_the_reasons() -> None:
    rows = {row.op_type: row for row in served(Imagined(90, COMPLETE))}
    assert list(rows) == list(OPS)
    assert rows["rmsnorm"].summary == "flashinfer 0.6.18.post1"
    assert rows["gemm"].provider == "pytorch"
    laptop = Imagined(None, COMPLETE, absent=("zmq",))
    rows = {row.op_type: row for row in served(laptop)}
    assert rows["rmsnorm"].summary == "sglang 0.5.23 (light installation)"
    assert rows["rmsnorm"].reasons["flashinfer"] == "needs CUDA, no CUDA device here"
    assert rows["gemm"].provider == ""
    assert rows["gemm"].summary.startswith("flashinfer: has no float16 GEMM; sglang: ")


@pytest.mark.parametrize("needed", ["pytest", "numpy", "torch"])
def test_without_a_needed_package_nothing_can_be_tested(needed: str) -> None:
    left = {name: v for name, v in COMPLETE.items() if name != needed}
    checks = diagnose(Imagined(90, left))
    assert not can_test(checks)
    (missing,) = [check for check in checks if check.name == needed]
    assert missing.state is State.ABSENT
    assert missing.advice.startswith("pip install 'gen-tests[")


def test_a_package_that_fails_to_import_is_broken() -> None:
    reason = "import failed: OSError: libcudart.so.13: cannot open"
    found = states(Imagined(90, COMPLETE, {"torch": reason, "flashinfer": reason}))
    assert found["torch"] is State.BROKEN
    assert found["ground truth: flashinfer"] is State.BROKEN
    assert found["ground truth: sglang"] is State.FINE


@pytest.mark.parametrize(
    ("failures", "status"), [({}, 0), ({"torch": "import failed: OSError: x"}, 1)]
)
def test_the_command_s_exit_status_says_whether_tests_can_run(
    monkeypatch: pytest.MonkeyPatch, failures: dict[str, str], status: int
) -> None:
    machine = Imagined(None, COMPLETE, failures)
    monkeypatch.setattr("generator.ground_truth.machine.this_machine", lambda: machine)
    done = CliRunner().invoke(cli, ["doctor"], standalone_mode=False)
    assert done.return_value == status
    assert "cuda: no CUDA device\n" in done.output
    as_json = CliRunner().invoke(cli, ["doctor", "--json"], standalone_mode=False)
    assert "\ngemm" in done.output
    found = json.loads(as_json.output)
    assert [row["op_type"] for row in found["op_types"]] == list(OPS)
    checks = found["checks"]
    (torch,) = [check for check in checks if check["name"] == "torch"]
    assert torch["state"] == ("broken" if failures else "fine")
