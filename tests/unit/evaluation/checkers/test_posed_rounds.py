"""Defects of a small norm, posed to checkers by name and to a command."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.checkers import command, drawing
from generator.evaluation.checkers.checker import CHECKERS
from generator.evaluation.checkers.names import NAMES
from generator.evaluation.checkers.posed_rounds import Planted, PosedRounds, judged
from generator.evaluation.checkers.report import checkers_report, family
from generator.evaluation.checkers.result import CheckedDefects, kept, known, record
from generator.execution.outcome import CannotRun
from generator.problems import Failure
from generator.rules.load import load_file
from tests.builders import resized_json, write_dataset

NORM = "rmsnorm_h128"
OPEN = {"type": "random"}
WORKLOAD = {
    "uuid": "1",
    "axes": {"batch_size": 16},
    "inputs": {"hidden_states": OPEN, "weight": OPEN},
}


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    root = write_dataset(tmp_path_factory.mktemp("d"), [resized_json(NORM, NORM)])
    definition, _ = load_file(root, file_of())
    assert definition is not None
    return Planted.of(definition, [WORKLOAD], root)


def file_of() -> DatasetFile:
    return DatasetFile("rmsnorm", NORM, f"definitions/rmsnorm/{NORM}.json")


@pytest.mark.parametrize("name", NAMES)
def test_no_checker_passes_zeros_of_a_norm(name: str, subject: Planted) -> None:
    found = judged(subject, CHECKERS[name])
    assert not found.why
    assert found.rounds == CHECKERS[name].rounds
    assert "output zero" not in found.passes


def test_what_passes_depends_on_inputs_and_rule(subject: Planted) -> None:
    bench = judged(subject, CHECKERS["flashinfer-bench"]).passes
    sol = judged(subject, CHECKERS["sol-execbench"]).passes
    # 1 % too large is within atol + rtol * abs(y), not within either alone
    assert "output 1 % too large" in sol
    assert "output 1 % too large" not in bench
    # it draws weights of norms as 1
    assert "weight missing" in sol
    assert "weight missing" not in bench
    # values near 1 have no mean square near eps
    assert "eps missing" in {*sol} & {*bench}


def test_checker_without_inputs_is_not_asked(subject: Planted) -> None:
    none = Planted(**{**vars(subject), "workloads": []})
    assert judged(none, CHECKERS["gpu-mode"]) == PosedRounds(
        why="no workload of up to 64 MiB"
    )


# without torch, whose import takes seconds: bfloat16 is the upper half of a float
SCRIPT = """
import array, json, pathlib, struct, sys

folder = pathlib.Path(sys.argv[1])
question = json.loads((folder / "question.json").read_text())


def values(name):
    data = (folder / f"{name}.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    words = array.array("H", data[8 + length :])
    return [struct.unpack("<f", struct.pack("<I", w << 16))[0] for w in words]


y = values("expected")
most = 0.02 * max(map(abs, y))
found = []
for number in range(len(question["defects"])):
    if max(abs(a - b) for a, b in zip(values(number), y)) <= most:
        found.append(number)
print(json.dumps({"passes": found}))
"""


def test_command_is_asked_by_files(subject: Planted, tmp_path: Path) -> None:
    script = tmp_path / "checker.py"
    script.write_text(SCRIPT)
    few = [d for d in subject.defects if d.name in ("output zero", "eps missing")]
    more = [d for d in subject.defects if "1 %" in d.name]
    asked = Planted(**{**vars(subject), "defects": [*few, *more]})
    found = command.judged(asked, shlex.join([sys.executable, str(script)]))
    assert "output 1 % too large" in found.passes
    assert "output zero" not in found.passes
    assert found.rounds > 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("false", "ended with status 1"),
        ("echo yes", "and no"),
        ("echo '{\"passes\": [99]}'", "and no"),
        ("/no/such/program", "can't be asked"),
    ],
)
def test_broken_command_is_said(said: str, why: str, subject: Planted) -> None:
    with pytest.raises(CannotRun, match=why):
        command.judged(subject, said)


def test_draws_are_those_of_the_checkers() -> None:
    random = torch.Generator().manual_seed(1)
    bf16 = torch.bfloat16
    assert drawing.sol_execbench("norm_weight", (8,), bf16, random).eq(1).all()
    assert drawing.sol_execbench("bias", (8,), bf16, random).eq(0).all()
    wide = drawing.sol_execbench("weight", (64, 1024), torch.float32, random)
    assert abs(float(wide.std()) * 32 - 1) < 0.05
    probs = drawing.flashinfer_bench("probs", (4, 9), torch.float32, random)
    assert torch.allclose(probs.sum(-1), torch.ones(4))
    short = drawing.flashinfer_bench("x", (999,), torch.float8_e4m3fn, random)
    assert short.float().abs().max() <= 2
    whole = drawing.flashinfer_bench("i", (9999,), torch.int32, random)
    assert int(whole.min()) >= -1024
    assert int(whole.max()) <= 1023
    assert drawing.normal("i", (4,), torch.int32, random) is None


@pytest.mark.parametrize(
    ("defect", "name"),
    [
        ("output zero", "zeros, a slice unwritten"),
        ("output along batch_size: the last zero", "zeros, a slice unwritten"),
        ("lse 1 % too large", "1.01 times too large"),
        ("LSE in natural units", "natural logarithm for the base-2 one"),
        ("mask one too wide", "mask off by one"),
        ("window missing", "another mask, or none"),
        ("eps missing", "of the op alone"),
    ],
)
def test_family_of_a_defect(defect: str, name: str) -> None:
    assert family(defect) == name


def checked(**more: Any) -> CheckedDefects:
    answers = {
        "gpu-mode": PosedRounds(3, ("eps missing",)),
        "kernelbench": PosedRounds(why="no"),
    }
    defects = ("output zero", "eps missing")
    path = f"definitions/rmsnorm/{NORM}.json"
    return CheckedDefects(
        NORM, "rmsnorm", path, defects, **{"checkers": answers, **more}
    )


def test_record_keeps_what_was_asked_before(subject: Planted) -> None:
    root = subject.dataset
    record(root, [checked()])
    record(root, [checked(checkers={"sol-execbench": PosedRounds(10)})])
    (found,) = known(root)
    assert set(found.checkers) == {"gpu-mode", "kernelbench", "sol-execbench"}
    assert found.checkers["gpu-mode"].passes == ["eps missing"]
    file = root / file_of().path
    text = json.loads(file.read_text())
    file.write_text(json.dumps({**text, "description": "another text"}))
    (found,) = known(root)
    assert found.error == ""
    file.write_text(json.dumps({**text, "reference": text["reference"] + "# other\n"}))
    (found,) = known(root)
    assert "another by now" in found.error
    (root / "verification/checkers.json").write_text(json.dumps({"definitions": [1]}))
    with pytest.raises(Failure, match="no record of checkers"):
        kept(root)


def test_report_counts_what_was_asked() -> None:
    report = checkers_report(
        [checked(), checked(error="it can't be read", checkers={})]
    )
    assert "1 of 2 planted defects pass" in report.conclude().summary
    assert report.payload["definitions"][1]["error"]
