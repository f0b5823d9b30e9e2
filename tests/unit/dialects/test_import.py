"""Dumps, problems and datasets of other projects become definitions, or say why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.dialects import flashinfer, flashinfer_bench, sol_execbench
from generator.dialects.export import export_dataset
from generator.dialects.imported import ImportRefused
from generator.dialects.sources import Unreadable, read_source
from generator.dialects.write import write
from generator.problems import has_errors
from generator.rendering.custom import Custom, read_custom
from generator.rules.load import load_definitions
from tests.unit.dialects.dumped import HEAD, dump
from tests.validating import validate


def convert(value: Any, **facts: Any) -> Any:
    """Return what a dump becomes."""
    return flashinfer.convert({"template": "norm.json", "dump": value, **facts})


def test_a_reference_is_renamed() -> None:
    found = convert(dump())
    assert found.value["reference"] == f"{HEAD}def run(x, eps):\n    return x * eps\n"
    assert "renamed the reference _norm_reference to run" in found.changes
    assert "description" not in found.value
    assert found.value["tags"] == ["fi_api:flashinfer.norm.norm", "status:unverified"]


def test_an_output_written_in_place_gets_a_name() -> None:
    source = f"{HEAD}def _norm_reference(x, eps):\n    x.mul_(eps)\n"
    outputs = {"x": {"shape": ["m", "h"], "dtype": "bfloat16", "param": "x"}}
    found = convert(dump(reference=source, outputs=outputs))
    assert list(found.value["outputs"]) == ["x_out"]
    names: dict[str, Any] = {}
    exec(found.value["reference"], names)  # noqa: S102
    import torch

    given = torch.ones(2, 4)
    assert torch.equal(names["run"](given, 3.0), torch.full((2, 4), 3.0))
    assert torch.equal(given, torch.ones(2, 4))


def test_a_helper_is_taken_from_the_module(tmp_path: Path) -> None:
    module = tmp_path / "norm.py"
    module.write_text("import math\n\nTWO = 2\n\ndef _twice(x):\n    return TWO * x\n")
    source = f"{HEAD}def _norm_reference(x, eps):\n    return _twice(x) + eps\n"
    found = convert(dump(reference=source), module=str(module))
    assert "def _twice(x):" in found.value["reference"]
    assert "TWO = 2" in found.value["reference"]
    assert any("inlined _twice" in change for change in found.changes)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "it is no JSON object"),
        (dump(reference=None), "it has no reference"),
        (dump(reference="def f(:"), "its reference is not Python"),
        (dump(reference="def f(x, eps):\n    return gone(x)\n"), "reads gone"),
        (dump(reference="def f(x, eps, z):\n    return x\n"), "requires z"),
        (dump(outputs={}), "it has no outputs"),
        (dump(axes=[]), "its field axes"),
        (dump(name="../x"), "is no identifier"),
        (dump(inputs={"x": {"shape": 3, "dtype": "int8"}}), "has no shape"),
        (
            dump(inputs={"x": {"shape": ["m"], "dtype": "float64"}}),
            "x is float64, which the format does not have",
        ),
        (
            dump(inputs={"x_quant": {"shape": ["m"], "dtype": "unknown"}}),
            "the dtype of x_quant is not known",
        ),
    ],
)
def test_what_can_not_become_a_definition(value: Any, reason: str) -> None:
    found = convert(value)
    assert found.value is None
    assert reason in found.reason


def test_nothing_of_a_dump_is_executed(tmp_path: Path) -> None:
    """Its code would end the process and leave a file."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n"
    hostile = dump(reference=trap + dump()["reference"].removeprefix(HEAD), init=trap)
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(hostile))
    (folder / "b.json").write_text(json.dumps(dump())[:-40])
    written = list(write(read_source("flashinfer", folder), tmp_path / "out"))
    assert [found.value is not None for found in written] == [True, False]
    validate(tmp_path / "out")
    assert not (tmp_path / "ran").exists()


def test_the_second_of_one_name_is_refused(tmp_path: Path) -> None:
    other = dump(reference=f"{HEAD}def f(x, eps):\n    return x\n")
    first, second = write([convert(dump()), convert(other)], tmp_path)
    assert first.value is not None
    assert "another content" in second.reason


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no folder"):
        list(read_source("flashinfer", tmp_path / "gone"))
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(Unreadable, match=r"x\.json is a file: name the folder"):
        list(read_source("flashinfer", tmp_path / "x.json"))
    with pytest.raises(Unreadable, match="nothing of the dialect"):
        list(read_source("sol-execbench", tmp_path))


INIT = "import torch\n\ndef _init(*, m, h=4, device='cuda', seed=0):\n    return {}\n"
FACTS: dict[str, Any] = {
    "apis": ["flashinfer.norm.norm"],
    "inputs": {n: {"param": n, "tuple_idx": None} for n in ("x", "eps")},
    "outputs": {"y": {}},
    "axes": {"m": 8, "h": 4},
    "init": {
        "call": {"m": 8},
        "defaults": {},
        "made": {
            "x": {"tensor": [8, 4], "dtype": "bfloat16"},
            "eps": {"value": 1e-6},
        },
        "returned": None,
    },
}


def test_init_is_kept_as_custom_inputs(tmp_path: Path) -> None:
    assert list(write([convert(dump(init=INIT), **FACTS)], tmp_path))
    (definition,) = load_definitions(tmp_path).definitions
    custom = read_custom(tmp_path, definition)
    assert isinstance(custom, Custom)
    assert custom.case == {"m": 8}
    assert custom.arguments["x"] == ("x", None)
    assert "def init(" in custom.source
    assert "def check" not in custom.source


def test_what_returns_nothing_writes_the_argument_that_the_dtype_is_from() -> None:
    facts = {**FACTS, "outputs": {"y": {"dtype_from": "x"}}, "returns_nothing": True}
    found = convert(dump(init=INIT), **facts)
    assert "OUTPUTS = {'y': (0, 'x')}" in found.custom
    assert any("returns nothing" in line for line in found.changes)


def test_custom_inputs_that_do_not_fit_are_a_problem(tmp_path: Path) -> None:
    assert list(write([convert(dump(init=INIT), **FACTS)], tmp_path))
    (definition,) = load_definitions(tmp_path).definitions
    path = tmp_path / "custom_inputs" / "norm" / "norm_h4.py"
    path.write_text(path.read_text().replace("ARGUMENTS", "OTHER"))
    found = read_custom(tmp_path, definition)
    assert not isinstance(found, Custom)
    assert found is not None
    assert found.rule == "custom-inputs-unfit"


SOL = {
    "name": "my-problem.1",
    "hf_id": "org/model",
    "custom_inputs_entrypoint": "make",
    "axes": {
        "m": {"type": "var"},
        "h": {"type": "const", "value": 8},
        "half": {"type": "expr", "expression": "h // 2"},
        "m2": {"type": "expr", "expression": "m * 2"},
    },
    "inputs": {
        "x": {"shape": ["m", "h"], "dtype": "float32"},
        "w": {"shape": ["half", "3"], "dtype": "float32"},
        "z": {"shape": ["m2"], "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["m", "h"], "dtype": "float32"}},
    "reference": "def make(a, d):\n    return {}\n\n\ndef run(x, w, z):\n    return x\n",
}
SOL_LINE = {
    "uuid": "u1",
    "axes": {"m": 4},
    "inputs": {
        "x": {"type": "random"},
        "w": {"type": "custom"},
        "z": {"type": "random"},
    },
    "tolerance": {"max_atol": 0.1, "max_rtol": 0.2, "required_matched_ratio": 0.9},
}


def test_a_sol_execbench_problem_comes_back(tmp_path: Path) -> None:
    """Expression axes, tolerances and custom inputs are there again after both ways."""
    problem = tmp_path / "in" / "L1" / "p"
    problem.mkdir(parents=True)
    (problem / "definition.json").write_text(json.dumps(SOL))
    (problem / "workload.jsonl").write_text(json.dumps(SOL_LINE) + "\n")
    (found,) = write(read_source("sol-execbench", tmp_path / "in"), tmp_path / "ds")
    assert found.value is not None
    assert found.value["axes"]["half"] == {"type": "const", "value": 4}
    assert "m2 == m * 2" in found.value["constraints"]
    (row,) = export_dataset(tmp_path / "ds", "sol-execbench", tmp_path / "out", [], [])
    assert row["reason"] is None
    (back,) = (tmp_path / "out").rglob("definition.json")
    value = json.loads(back.read_text())
    assert value == {**SOL, "op_type": None} or value == SOL
    line = json.loads(back.with_name("workload.jsonl").read_text())
    assert line == SOL_LINE


@pytest.mark.parametrize(
    ("expression", "value"),
    [("a * 2 + 1", 9), ("a ** 2", 16), ("a / 2", 2), ("-a + 5", 1)],
)
def test_expressions_are_evaluated(expression: str, value: int) -> None:
    assert sol_execbench.evaluate(expression, {"a": 4}) == value


@pytest.mark.parametrize("expression", ["a / 3", "a // 0", "f(a)", "2 ** 99999", "a ="])
def test_other_expressions_are_refused(expression: str) -> None:
    with pytest.raises(ImportRefused):
        sol_execbench.evaluate(expression, {"a": 4})


def test_what_flashinfer_bench_writes_is_read(tmp_path: Path) -> None:
    """It leaves out the type of an axis, and writes null for what nobody set."""
    value = dump(reference="def run(x, eps):\n    return x * eps\n", tags=[])
    del value["check"]
    value["axes"] = {"m": {}, "h": {"value": 4}}
    path = tmp_path / "in" / "definitions" / "norm" / "norm_h4.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(value))
    (found,) = write(flashinfer_bench.read(tmp_path / "in"), tmp_path / "out")
    assert found.value is not None
    assert found.value["axes"]["h"] == {"value": 4, "type": "const"}
    assert not has_errors(validate(tmp_path / "out"))
    (row,) = export_dataset(
        tmp_path / "out", "flashinfer-bench", tmp_path / "b", [], []
    )
    assert row == {"definition": "norm_h4", "reason": None, "lost": []}


def test_a_dtype_is_what_a_description_states() -> None:
    inputs = {
        "w": {"shape": ["m"], "dtype": "unknown", "description": "NvFP4-packed."},
        "w_scale": {"shape": ["m"], "dtype": "unknown", "description": "NvFP4 scale."},
        "x": {"shape": ["m"], "dtype": "unknown", "description": "FP8 activations."},
        "x_sf": {"shape": ["m"], "dtype": "unknown", "description": "UE8M0 scales."},
    }
    outputs = {"y": {"shape": ["m"], "dtype": "bfloat16"}}
    source = f"{HEAD}def _f(w, w_scale, x, x_sf):\n    return x\n"
    found = convert(dump(inputs=inputs, outputs=outputs, reference=source))
    assert [spec["dtype"] for spec in found.value["inputs"].values()] == [
        *("uint8", "float8_e4m3fn", "float8_e4m3fn", "uint8"),
    ]
    assert "x is float8_e4m3fn, by its description" in found.changes


def test_helpers_come_from_the_modules_that_theirs_are_from(tmp_path: Path) -> None:
    (tmp_path / "enums.py").write_text(
        "from enum import IntEnum\n\n\nclass Kind(IntEnum):\n    A = 1\n\n"
        "    def is_known(self):\n        return self in _KNOWN\n\n\n"
        "_KNOWN = (Kind.A,)\n"
    )
    (tmp_path / "templates.py").write_text("from .enums import Kind\n")
    source = f"{HEAD}def _f(x, eps):\n    return x * Kind.A.is_known()\n"
    module = str(tmp_path / "templates.py")
    text = convert(dump(reference=source), module=module).value["reference"]
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102
    assert names["run"](2.0, 0.0) == 2.0


def test_an_output_gets_the_dtype_that_its_template_declares() -> None:
    returned = [{"tensor": [2, 4], "dtype": "float32"}]
    facts = {"param": None, "tuple_idx": None, "dtype": None}
    made = {"x": {"tensor": [2, 4], "dtype": "bfloat16"}, "eps": {"value": 1.0}}
    found = convert(
        dump(init="def _init(device='cpu'):\n    return {}\n"),
        inputs={"x": facts, "eps": facts},
        init={"call": {}, "made": made, "returned": returned},
        apis=[],
    )
    assert found.value["outputs"]["y"]["dtype"] == "bfloat16"
    assert "returned.to(torch.bfloat16)" in found.value["reference"]
    assert "y is made bfloat16: the reference returns float32" in found.changes
