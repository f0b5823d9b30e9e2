"""Every path of a repository has a class, and what runs is never taken for data."""

from __future__ import annotations

import pytest

from generator.dataset.changes import PathClass, class_of, owner_of, sort_changes

DATA = (
    "definitions/gemm/gemm_n8_k4.json",
    "workloads/gemm/gemm_n8_k4.jsonl",
    "blob/workloads/gemm/gemm_n8_k4/one.safetensors",
    "blob/ground_truth/gemm/gemm_n8_k4.safetensors",
    "blob/ground_truth/unrecorded.json",
    "solutions/baseline/gemm/gemm_n8_k4/x.json",
    "traces/baseline/gemm/gemm_n8_k4.jsonl",
    "verification/h200.json",
)
RUNS = (
    "conftest.py",
    "tests/conftest.py",
    "tests/references/test_gemm/conftest.py",
    "tests/references/sitecustomize.py",
    "tests/references/evil.pth",
    "tests/data.json",
    "definitions/gemm/conftest.py",
    "definitions/conftest.py",
    "blob/workloads/gemm/gemm_n8_k4/conftest.py",
    "blob/workloads/gemm/gemm_n8_k4/x.so",
    "solutions/baseline/gemm/gemm_n8_k4/x.py",
    "verification/x.py",
    "custom_inputs/conftest.py",
    "custom_inputs/gemm/deeper/x.py",
    "oracles/gemm.py",
    "reference_support/__init__.py",
    "generator/ops/op_types/gemm/captured.json",
    "templates/test_file.py.jinja",
    "pytest.ini",
    "pyproject.toml",
    "PyTest.INI",
    "setup.cfg",
    "tox.ini",
    "action.yml",
    ".github/workflows/ci.yml",
    ".gitattributes",
    ".gitmodules",
    ".pre-commit-config.yaml",
    "Makefile",
    "torch.py",
    "torch/__init__.py",
    "evil.dist-info/entry_points.txt",
    "evil.egg-info/PKG-INFO",
    "requirements-dev.txt",
)


@pytest.mark.parametrize("path", DATA)
def test_what_a_reader_expects_is_data(path: str) -> None:
    assert class_of(path) is PathClass.DATA


@pytest.mark.parametrize("path", RUNS)
def test_what_python_pytest_git_or_ci_obey_runs(path: str) -> None:
    assert class_of(path) is PathClass.RUNS


@pytest.mark.parametrize(
    "path",
    [
        "tests/references/test_gemm.py",
        "tests/references/conftest.py",
        "tests/references/pytest.ini",
        "tests/references/SHA256SUMS",
        "tests/references/reference_support/running/harness.py",
    ],
)
def test_what_gen_tests_writes_is_rendered(path: str) -> None:
    assert class_of(path) is PathClass.RENDERED


def test_custom_inputs_are_source_of_their_definition() -> None:
    path = "custom_inputs/gemm/gemm_n8_k4.py"
    assert class_of(path) is PathClass.SOURCE
    assert owner_of(path) == (("gemm", "gemm_n8_k4"), "custom_inputs")
    found = sort_changes([path])
    assert found.definitions == {("gemm", "gemm_n8_k4"): {"custom_inputs": [path]}}
    assert found.others == []


@pytest.mark.parametrize("path", ["README.md", "LICENSE", "tables/definitions.jsonl"])
def test_the_card_s_files_are_pages(path: str) -> None:
    assert class_of(path) is PathClass.PAGES


@pytest.mark.parametrize(
    "path",
    [
        "definitions/gemm_n8_k4.json",
        "definitions/gemm/notes.txt",
        "data.bin",
        "a\nb",
        "",
        "tables/deeper/x.jsonl",
        "docs/index.md",
    ],
)
def test_all_else_is_unknown_never_data(path: str) -> None:
    assert class_of(path) is PathClass.UNKNOWN
