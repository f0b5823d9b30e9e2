"""`trace-dataset floors` as a black box: what it measures, judges and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import ROOT, resized_json, write_dataset
from tests.functional.audit_command import (
    NORM,
    audit,
    interrupt_after_first,
    with_text,
)


def floors(*arguments: str | Path) -> tuple[int, str, str]:
    return audit(*arguments, "--tolerances")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Say what to audit: --op-type, --definition-name, --all."),
        (["--all", "--op-type", "rmsnorm"], "--all leaves nothing to choose"),
        (["--definition-name", "rmsnorm_h12"], "Did you mean 'rmsnorm_h128'?"),
        (["--op-type", "norm"], "No op_type of the dataset is named 'norm'."),
        (["--all", "--tolerance", "nan"], "--tolerance nan: choose a number"),
        (["--all", "--tolerance", "0"], "--tolerance 0.0: choose a number"),
        (["--all", "--jobs", "0"], "0 is not in the range"),
        (["--all", "--output", "floors.py"], "choose a name that ends in .md"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_2(tmp_path, arguments, said):
    root = write_dataset(tmp_path, [resized_json(NORM, NORM)])
    status, out, err = floors("--dataset", root, *arguments)
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]
    assert not (ROOT / "floors.py").exists()


def test_a_folder_without_definitions_exits_2(tmp_path):
    status, out, err = floors("--all", "--dataset", tmp_path)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_a_norm_is_one_rounding_from_float64(tmp_path):
    root = write_dataset(tmp_path, [resized_json(NORM, NORM)])
    page = tmp_path / "floors.md"
    status, out, err = floors("--all", "--dataset", root, "--output", page)
    assert status == 0, out + err
    (row,) = [line for line in out.splitlines() if line.startswith(" rmsnorm ")]
    assert "output (bfloat16)   oracle   1.6e-03        1.00       0.00" in row
    assert "1e-06 + 0.004·|e|, NMSE 1.6e-05" in row
    assert "1 definition, 0 not measured: 0 errors, 0 warnings" in err
    assert "| rmsnorm | 1 | " in page.read_text()
    everything = page.with_suffix(".html").read_text()
    assert '"rmsnorm", "output (bfloat16)", "oracle", "1.6e-03", "1.00"' in everything


@pytest.mark.parametrize(
    ("tolerance", "rule", "proposed"),
    [
        ("0.5", "tolerance-loose", "0.004·|e|, NMSE 1.6e-05 leaves 10 times"),
        ("1e-4", "tolerance-tight", "+ 0.0001·|e|, NMSE 1.6e-05 leaves 3 times"),
    ],
)
def test_a_tolerance_that_does_not_fit_is_a_problem(
    tmp_path, tolerance, rule, proposed
):
    root = write_dataset(tmp_path, [resized_json(NORM, NORM)])
    options = ("--all", "--dataset", root, "--tolerance", tolerance)
    status, out, err = floors(*options, "--json")
    assert status == 1, err
    (problem,) = json.loads(out)["problems"]
    assert (problem["rule"], problem["severity"]) == (rule, "error")
    assert proposed in problem["fix"]


WRONG = [
    ("EPS = 1e-06", "EPS = 1e-05", "in float64, 'output' is "),
    ("EPS = 1e-06", "EPS = int('x')", "not measured: ValueError: invalid literal"),
    ("EPS = 1e-06", "import os; os._exit(0)", "not measured: ended its process"),
    ("x = hidden_states.float()", "raise SystemExit('\\x1b[2J')", "SystemExit: \\x1b"),
    (
        "x = hidden_states.float()",
        "import os; raise OSError(os.environ.get('PLANTED_SECRET'))",
        "not measured: OSError: None",
    ),
    (
        "return (x",
        "return None and (x",
        "not measured: nothing was compared: one-row: output and oracle's don't",
    ),
    (
        "return (x",
        "return float('nan') * (x",
        "not measured: nothing was compared: no case has finite outputs",
    ),
]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, str]:
    values = [
        with_text((old, new), name=f"{NORM}_v{number}")
        for number, (old, new, _) in enumerate(WRONG)
    ]
    root = write_dataset(tmp_path_factory.mktemp("wrong"), values)
    return floors("--all", "--dataset", root)


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_reference_that_is_wrong_itself_is_told(wrong, number):
    status, out, err = wrong
    assert status == 1
    lines = [line for line in out.splitlines() if f"{NORM}_v{number}" in line]
    assert any(WRONG[number][2] in line for line in lines), out
    assert "\x1b" not in out + err
    assert f"{len(WRONG)} definitions, 6 not measured: 1 error" in err


def test_interrupted_it_ends_its_processes(tmp_path):
    endless = "    while True:\n        pass\n    x = hidden"
    value = with_text(("    x = hidden", endless), name=f"{NORM}_v2")
    root = write_dataset(tmp_path, [resized_json(NORM, NORM), value])
    interrupt_after_first("--all", "--dataset", root, "--jobs", "1", "--tolerances")


def test_recorded_kernels_and_outputs_without_a_floor(tmp_path):
    names = ("gemm_n128_k2048", "top_p_sampling_from_probs_v128256")
    chosen = [part for name in names for part in ("--definition-name", name)]
    status, out, err = floors(*chosen, "--jobs", "1")
    assert status == 0, out + err
    rows = [line.split() for line in out.splitlines() if line.startswith(" ")]
    assert ["gemm", "C", "(float16)", "oracle"] in [row[:4] for row in rows]
    (kernel,) = [row for row in rows if row[3:4] == ["pytorch/cublas"]]
    # what cuBLAS returned on a GPU is one rounding from float64, as the reference is
    assert kernel[4:7] == ["2.3e-04", "1.00", "1.00"]
    assert any(row[:2] == ["sampling", "samples"] and "law" in row for row in rows)
