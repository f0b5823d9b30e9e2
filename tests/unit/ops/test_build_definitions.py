"""The command that writes the dataset."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from generator.ops.family import every_spec
from generator.ops.reference_text import reference_text
from generator.ops.registry import op_folder
from tests.golden.op_types import KEPT
from tools import build_definitions

ROOT = Path(__file__).resolve().parents[3]
# a blob for each workload that holds more than random tensors
BLOBS = Counter({name: kept["blobs"] for name, kept in KEPT.items() if kept["blobs"]})
DEFINITIONS = sum(kept["definitions"] for kept in KEPT.values())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/build_definitions.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    output = tmp_path_factory.mktemp("dataset")
    assert run("--output", str(output)).returncode == 0
    return output


def test_the_repository_is_up_to_date():
    result = run("--check")
    assert result.stderr == ""
    assert result.returncode == 0


def test_the_files_are_the_repository_s(built):
    files = sorted(p.relative_to(built) for p in built.rglob("*") if p.is_file())
    blobs = Counter(f.parts[2] for f in files if f.parts[0] == "blob")
    assert blobs == BLOBS
    # a definition and its workloads each
    assert len(files) == 2 * DEFINITIONS + BLOBS.total()
    assert all((ROOT / f).read_bytes() == (built / f).read_bytes() for f in files)


@pytest.fixture
def few(monkeypatch):
    """Let the families make GEMMs alone, which takes a moment."""
    specs = tuple(spec for spec in every_spec() if spec.op_type == "gemm")
    monkeypatch.setattr(build_definitions, "every_spec", lambda: specs)


@pytest.mark.usefixtures("few")
def test_check_names_what_differs_and_writes_nothing(tmp_path, capsys):
    build_definitions.main(["--output", str(tmp_path)])
    definitions = tmp_path / "definitions" / "gemm"
    (definitions / "gemm_n128_k2048.json").write_text("{}")
    (definitions / "gemm_n256_k3072.json").unlink()
    (definitions / "mine.json").write_text("{}")
    assert build_definitions.main(["--output", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "differs: definitions/gemm/gemm_n128_k2048.json",
        "missing: definitions/gemm/gemm_n256_k3072.json",
        "not from a family: definitions/gemm/mine.json",
    ]
    assert (definitions / "gemm_n128_k2048.json").read_text() == "{}"


@pytest.mark.usefixtures("few")
def test_a_file_of_no_family_is_reported_and_kept(tmp_path, capsys):
    stray = tmp_path / "workloads" / "gemm" / "mine.jsonl"
    stray.parent.mkdir(parents=True)
    stray.write_text("mine")
    assert build_definitions.main(["--output", str(tmp_path)]) == 1
    assert "not from a family: workloads/gemm/mine.jsonl" in capsys.readouterr().err
    assert stray.read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"captured_from": "gemm_n128_k204"},
            "gemm_n128_k2048: captured.json of gemm has no definition 'gemm_n128_k204'.",
        ),
        (
            {"captured_op_type": "rope", "captured_from": "x"},
            "gemm_n128_k2048: The op_type rope has no captured.json: let `captured_from`",
        ),
        (
            {"reference": reference_text("gemm", "gem")},
            f"There is no reference {op_folder('gemm') / 'references' / 'gem.py'}.",
        ),
    ],
)
def test_what_a_family_lacks_is_one_line_and_nothing_is_written(
    tmp_path, capsys, monkeypatch, change, line
):
    (spec,) = (s for s in every_spec() if s.name == "gemm_n128_k2048")
    wrong = replace(spec, **change)
    monkeypatch.setattr(build_definitions, "every_spec", lambda: (wrong,))
    assert build_definitions.main(["--output", str(tmp_path)]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"Error: {line}")
    assert not any(tmp_path.iterdir())


def test_building_needs_neither_torch_nor_numpy():
    code = (
        "import sys; sys.path.insert(0, '.');"
        "from tools import build_definitions;"
        "dict(build_definitions.dataset_files());"
        "sys.exit(bool({'torch', 'numpy', 'safetensors'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
