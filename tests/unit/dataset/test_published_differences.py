"""tools/published_differences.py on a dataset as the published one is, and on others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import ROOT
from tools import published_differences

PAGE = " ".join((ROOT / "docs/dataset.md").read_text("utf-8").split())
PREFILL = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
NORM, GDN = "rmsnorm_h5376", "gdn_mtp_qk4_v8_d128_k_last"


def of_indptr(value: dict[str, Any]) -> None:
    """Give the lengths of last pages the shape of an indptr."""
    value["inputs"]["kv_last_page_len"]["shape"] = ["len_indptr"]
    del value["axes"]["batch_size"]
    value["constraints"].remove("len_indptr == batch_size + 1")


def plain_norm(value: dict[str, Any]) -> None:
    """Tag a norm with the kernel that adds no 1, and with a status."""
    tags = [tag for tag in value["tags"] if not tag.startswith("fi_api:")]
    value["tags"] = [*tags, "fi_api:flashinfer.norm.rmsnorm", "status:verified"]


def untagged(value: dict[str, Any]) -> None:
    """Leave out the tag of the function."""
    value["tags"] = [tag for tag in value["tags"] if not tag.startswith("fi_api:")]


def turned(value: dict[str, Any]) -> None:
    """Give the inputs in the opposite order."""
    value["inputs"] = dict(reversed(value["inputs"].items()))
    named = [f"{name}: torch.Tensor" for name in ("hidden_states", "weight")]
    text: str = value["reference"]
    assert ", ".join(named) in text
    value["reference"] = text.replace(", ".join(named), ", ".join(named[::-1]))


def other_dtype(value: dict[str, Any]) -> None:
    """Give the weight another dtype."""
    value["inputs"]["weight"]["dtype"] = "float32"


def said(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    **changes: Callable[[dict[str, Any]], None],
) -> tuple[int, list[str]]:
    """Return exit status and lines of the command on changed definitions."""
    for name, change in changes.items():
        (path,) = (ROOT / "definitions").glob(f"*/{name}.json")
        value = json.loads(path.read_text("utf-8"))
        change(value)
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(value), "utf-8")
    status = published_differences.main([str(root)])
    return status, capsys.readouterr().out.splitlines()


def test_what_the_page_states_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {PREFILL: of_indptr, NORM: plain_norm, GDN: untagged}
    status, lines = said(tmp_path, capsys, **changes)
    assert status == 0
    assert {line.split()[1] for line in lines[:-1]} == {
        *("axes:", "inputs:", "constraints:", "tags:")
    }
    assert lines[-1].startswith("3 definitions of both, ")
    assert lines[-1].endswith(", 0 that docs/dataset.md does not state")


@pytest.mark.parametrize("change", [turned, other_dtype])
def test_any_other_difference_is_unknown(
    change: Callable[[dict[str, Any]], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, lines = said(tmp_path, capsys, **{NORM: change})
    assert status == 1
    assert [line.split()[:2] for line in lines[:-1]] == [["UNKNOWN", "inputs:"]]


def test_equal_definitions_differ_in_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(tmp_path, capsys, **{NORM: lambda value: None})[0] == 0


def test_a_folder_without_any_of_the_names_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = said(tmp_path, capsys)
    assert status == 2
    assert lines[-1].endswith("has no definition of a name that this dataset has.")


@pytest.mark.parametrize(
    "word",
    ["kv_last_page_len", "`status:`", "rmsnorm_h5376", "gdn mtp", "routing_bias"],
)
def test_the_page_states_what_the_command_takes_as_stated(word: str) -> None:
    assert word in PAGE
    assert "tools/published_differences.py" in PAGE
