"""The patches of docs/findings/: each mends a planted defect of its kind, and passes."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from generator.dataset.definition import build_definition
from generator.ops.registry import op_module
from generator.rules.route_calls import check as check_calls
from tests.builders import ROOT, class_of, loaded, oracle_failures, run_of, sized
from tests.unit.ops.geometries import reduced
from tools import build_findings

FILES = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((ROOT / "docs/findings").glob("*.json"))
}
PATCHES = [(name, one) for name, found in FILES.items() for one in found]
# one of each finding and kind of reference: the others differ in sizes alone
KINDS = list(
    {
        (finding, *re.split(r"_(?:h|v|qk)\d+", name)[::2]): (finding, name)
        for finding, name in reversed(PATCHES)
    }.values()
)
PAGE = (ROOT / "docs/findings.md").read_text("utf-8")


def applied(patch: list[dict[str, Any]], value: dict[str, Any]) -> dict[str, Any]:
    """Return a value after the operations that the files use; RFC 6902."""
    value = copy.deepcopy(value)
    for step in patch:
        *parents, last = step["path"].split("/")[1:]
        place: Any = value
        for key in parents:
            place = place[key]
        match step["op"]:
            case "test":
                assert place[last] == step["value"], step["path"]
            case "add" if isinstance(place, list):
                assert last == "-"
                place.append(step["value"])
            case "add":
                place[last] = step["value"]
            case "replace":
                assert last in place, step["path"]
                place[last] = step["value"]
            case other:
                raise AssertionError(other)
    return value


def as_published(name: str, finding: str) -> dict[str, Any]:
    """Return our definition with what the finding says of the published one."""
    value = build_findings.ours(name)
    if finding == "kv-last-page-len":
        del value["axes"]["batch_size"]
        value["inputs"]["kv_last_page_len"]["shape"] = ["len_indptr"]
        value["constraints"].remove("len_indptr == batch_size + 1")
    if finding in DEFECTS:
        value["reference"] = broken(name, finding)
    return value


_KEPT = "kept = before < top_p.unsqueeze(1)"
# of each finding on a text: what the published one does, in words of ours
DEFECTS: dict[str, tuple[tuple[str, str], ...]] = {
    "gemma-unit-offset": (("(1.0 + weight.float())", "weight.float()"),),
    "queries-without-keys": (
        ("        qo_start = max(qo_start, qo_end - kv_len)\n", ""),
    ),
    "top-p-crossing-token": (
        (
            _KEPT,
            f"{_KEPT}\n    kept = torch.cat((kept[:, :1], kept[:, :-1]), dim=1)",
        ),
    ),
    "gdn-states": (
        (
            "state.clone()\n\n",
            "state.clone()\n        new_state[lengths == 0] = 0.0\n\n",
        ),
        (
            "buffer[:batch_size, t] = state",
            "buffer[initial_state_indices.long(), t] = state",
        ),
    ),
}


def broken(name: str, finding: str) -> str:
    """Return our reference with the defect planted, which must change it."""
    text: str = build_findings.ours(name)["reference"]
    (changed,) = (
        text.replace(old, new) for old, new in DEFECTS[finding] if text.count(old) == 1
    )
    return changed


def first_of(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a run() without its second output."""
    return lambda *inputs: run(*inputs)[0]


def definition_of(value: dict[str, Any]) -> Any:
    """Return a definition's JSON as it is loaded."""
    return build_definition(
        value, f"definitions/{value['op_type']}/{value['name']}.json", "0" * 64
    )


def test_the_files_are_what_the_dataset_says() -> None:
    assert build_findings.main(["--check"]) == 0


def test_the_page_names_every_file_and_every_file_is_there() -> None:
    named = set(re.findall(r"findings/([a-z0-9-]+)\.json", PAGE))
    assert named == set(FILES)


@pytest.mark.parametrize(("finding", "name"), PATCHES)
def test_a_patch_applies_and_what_it_makes_loads(finding: str, name: str) -> None:
    made = applied(FILES[finding][name], as_published(name, finding))
    definition = definition_of(made)
    assert definition.name == name
    run = run_of(definition.reference)
    assert callable(run)


@pytest.mark.parametrize(("finding", "name"), KINDS)
def test_what_a_patch_makes_agrees_with_the_oracle(finding: str, name: str) -> None:
    made = applied(FILES[finding][name], as_published(name, finding))
    run = run_of(made["reference"])
    if finding == "fused-add-residual":
        run = first_of(run)
    definition = sized(name, **reduced(name))
    cls = class_of(op_module(definition.op_type), definition, run)
    assert oracle_failures(cls, ("small",)) == []


@pytest.mark.parametrize("name", FILES["fused-add-residual"])
def test_the_residual_is_returned_and_the_call_takes_it(name: str) -> None:
    made = applied(FILES["fused-add-residual"][name], build_findings.ours(name))
    broken_calls = [p for p in check_calls(loaded(name)) if p.rule == "route-interface"]
    assert broken_calls
    assert not [
        p for p in check_calls(definition_of(made)) if p.rule == "route-interface"
    ]
    x, residual = torch.randn(2, 3, 8).bfloat16()
    _, total = run_of(made["reference"])(x, residual, torch.ones(8).bfloat16())
    assert torch.equal(total, (x.float() + residual.float()).bfloat16())


@pytest.mark.parametrize("name", FILES["decode-return-lse"])
def test_the_flag_is_taken_as_calls_pass_it(name: str) -> None:
    made = applied(FILES["decode-return-lse"][name], build_findings.ours(name))
    assert [p for p in check_calls(loaded(name)) if p.rule == "route-interface"]
    assert not [
        p for p in check_calls(definition_of(made)) if p.rule == "route-interface"
    ]


@pytest.mark.parametrize(
    ("finding", "name"), [one for one in KINDS if one[0] in DEFECTS]
)
def test_what_the_finding_is_about_is_caught(finding: str, name: str) -> None:
    definition = sized(name, **reduced(name))
    cls = class_of(
        op_module(definition.op_type), definition, run_of(broken(name, finding))
    )
    try:
        assert oracle_failures(cls, ("small",))
    except IndexError:
        # a buffer of as many rows as sequences has no row of that slot
        assert finding == "gdn-states"
