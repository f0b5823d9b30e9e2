"""Blobs, structural tensors, evidence and figures: single facts of their rules."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from generator.dataset.file_reading import LastFolder
from generator.dataset.tensors import open_tensor_file
from generator.rules.basis import basis_of_bytes
from tests.audits import audited, entry, write_audit
from tests.unit.rules.made import PAGED, paged

GEMM = "definitions/gemm/gemm_n8_k4.json"
VERIFICATION = "verification/2026-01-01_gpu.json"
PASSED = {"flashinfer/fa2": "PASSED", "oracle": "PASSED"}


def test_files_of_safetensors_are_read(tmp_path: Path) -> None:
    wanted = {
        "a": np.arange(6, dtype=np.int32).reshape(2, 3),
        "b": np.array([-1, 1 << 40], dtype=np.int64),
        "c": np.array([True, False]),
        "d": np.zeros((3, 0), dtype=np.float16),
        "e": np.array(7, dtype=np.uint8),
    }
    path = tmp_path / "x.safetensors"
    path.write_bytes(save(wanted, metadata={"made": "by hand"}))
    with closing(LastFolder(path.parent)) as folder:
        opened = open_tensor_file(folder, path.name)
    opened.read_header()
    assert set(opened.tensors) == set(wanted)
    for key, array in wanted.items():
        assert opened.tensors[key].shape == array.shape
        values = opened.integers(key)
        expected = None if key == "d" else array.ravel().astype(int).tolist()
        assert (None if values is None else list(values)) == expected


def test_a_large_file_is_read_where_it_has_to_be(tmp_path: Path) -> None:
    wanted = {
        "big": np.zeros(1 << 20, np.float32),
        "small": np.arange(9, dtype=np.int32),
    }
    path = tmp_path / "x.safetensors"
    path.write_bytes(save(wanted))
    with closing(LastFolder(path.parent)) as folder:
        opened = open_tensor_file(folder, path.name)
    opened.read_header()
    assert len(opened.head) < opened.size
    assert list(opened.integers("small") or ()) == list(range(9))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"qo_indptr": [1, 2, 3]}, "begins at 1, not at 0"),
        ({"qo_indptr": [0, 4, 3]}, "decreases from 4 to 3 at index 2"),
        ({"total_q": 4}, "ends at 3, but total_q is 4"),
        ({"kv_indices": [7, -1, 3]}, "has the index -1; allowed is 0 to 7 (num_pages)"),
        ({"kv_indices": [8, 0, 3]}, "has the index 8; allowed is 0 to 7 (num_pages)"),
        ({"kv_last_page_len": [1, 5]}, "has 5; allowed is 1 to 4 (page_size)"),
        ({"kv_indptr": [0, 2, 4]}, "num_kv_indices is 3"),
    ],
)
def test_structure_is_explained(dataset: Any, change: Any, said: str) -> None:
    paged(dataset, change)
    errors = [p for p in dataset.problems() if p.severity.value == "error"]
    assert len(errors) == 1
    assert said in errors[0].message


def test_queries_without_keys_are_counted(dataset: Any) -> None:
    paged(dataset, {}, {"qo_indptr": [0, 5, 6]}, {"qo_indptr": [0, 6, 7]})
    # the first sequence has two pages, one of them full: five keys
    assert "1 workload of 3 have" in dataset.only("workload-no-keys").message


def _record(dataset: Any, sources: dict[str, str], sha256: str | None = None) -> None:
    path = dataset.root / "definitions/gemm/gemm_n8_k4.json"
    entry = {
        "sha256": sha256 or basis_of_bytes(path.read_bytes(), str(path)),
        "sources": {source: {"verdict": v} for source, v in sources.items()},
    }
    run = {"date": "2026-01-01", "machine": {}, "definitions": {"gemm_n8_k4": entry}}
    dataset.write(VERIFICATION, json.dumps({"format": 1, "runs": [run]}))


@pytest.mark.parametrize(
    ("sources", "sha256", "backed"),
    [
        (PASSED, None, True),
        ({**PASSED, "sglang": "SKIPPED"}, None, True),
        ({**PASSED, "sglang": "FAILED"}, None, False),
        ({"oracle": "PASSED"}, None, False),
        ({"flashinfer": "SKIPPED"}, None, False),
        (PASSED, "0" * 64, False),
        ({}, None, False),
    ],
)
def test_verified_is_backed_by_a_run(
    dataset: Any, sources: dict[str, str], sha256: str | None, backed: bool
) -> None:
    dataset.definition(tags=["status:verified"])
    _record(dataset, sources, sha256)
    rules = [problem.rule for problem in dataset.problems()]
    assert rules == ([] if backed else ["tag-evidence"])
    dataset.definition(tags=["status:unverified"])
    _record(dataset, sources, sha256)
    rules = [problem.rule for problem in dataset.problems()]
    assert rules == (["tag-stale"] if backed else [])


@pytest.mark.parametrize(
    ("tags", "fits"),
    [
        (["model:qwen3-32b", "tp:32"], True),
        (["model:qwen3-32b", "tp:8"], False),
        (["model:qwen3-32b"], True),
        (["model:qwen3-32b", "tp:32", "tp:8"], True),
        (["model:qwen2.5-7b", "tp:14"], True),
        (["model:qwen2.5-7b"], False),
        (["model:toy"], True),
    ],
)
def test_heads_are_the_model_s_by_tp(dataset: Any, tags: list[str], fits: bool) -> None:
    paged(dataset, definition={"tags": tags})
    found = [p for p in dataset.problems() if p.rule == "model-figures"]
    assert (found == []) is fits
    assert all(p.file == f"definitions/{PAGED}.json" for p in found)


def test_an_audit_of_this_text_without_survivors_is_no_problem(dataset: Any) -> None:
    audited(dataset.root, GEMM)
    assert dataset.problems() == ()


def test_without_an_audit_nobody_is_told_to_make_one(dataset: Any) -> None:
    dataset.definition(name="other", axes={"M": {"type": "var"}})
    assert "audit" not in str(dataset.problems())


def test_the_first_three_survivors_are_named_and_all_are_counted(dataset: Any) -> None:
    audited(dataset.root, GEMM, *(f"defect {n}" for n in range(5)))
    assert dataset.only("audit-survivors").message == (
        "5 planted defects of 46 survived: defect 0, defect 1, defect 2, and 2 more."
    )


def test_survivors_of_another_text_are_not_held_against_this_one(dataset: Any) -> None:
    write_audit(dataset.root, {"gemm_n8_k4": entry("0" * 64, "defect")})
    assert "of 2026-11-20 is of another text" in dataset.only("audit-stale").message


def test_the_audit_s_file_is_no_evidence(dataset: Any) -> None:
    dataset.definition(tags=["status:verified"])
    audited(dataset.root, GEMM)
    assert dataset.only("tag-evidence")


@pytest.mark.parametrize("op_type", ["gemm", "rmsnorm"])
def test_a_reference_that_is_no_python_is_one_error(dataset: Any, op_type: str) -> None:
    # a constant is read from the source of a norm, if that can be read
    path = dataset.definition(reference="def run(:", op_type=op_type)
    rules = {
        p.rule for p in dataset.problems() if p.file.endswith(f"{op_type}/{path.name}")
    }
    assert "reference-syntax" in rules
