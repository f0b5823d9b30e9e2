"""The patches of docs/findings/: each mends a planted defect of its kind, and passes."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from generator.dataset.definition import build_definition
from generator.ops.registry import op_module, op_specs
from generator.rules.catalogue import RULES
from generator.rules.route_calls import check as check_calls
from generator.rules.routes import check as check_names
from generator.rules.routes import routes_to
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


SECTIONS = dict(
    re.findall(r"^## (\d+)\. .*\n((?:.*\n)*?)(?=^## |\Z)", PAGE, re.MULTILINE)
)


@pytest.mark.parametrize("number", SECTIONS)
def test_a_finding_has_a_command_of_rules_op_types_and_tests_that_there_are(
    number: str,
) -> None:
    commands = re.findall(r"^    (\w.*)$", SECTIONS[number], re.MULTILINE)
    assert commands
    text = "; ".join(commands)
    for rules in re.findall(r"--checks (\S+)", text):
        assert {*rules.split(",")} <= {*RULES}
    assert {*re.findall(r"--op-type (\w+)", text)} <= {*op_specs()}
    for name in re.findall(r"--definition(?:-name)? (\w+)", text):
        assert loaded(name).name == name
    for path in re.findall(r"tests/\S+\.py", text):
        assert (ROOT / path).is_file()


def test_every_finding_of_the_table_has_its_section() -> None:
    rows = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    assert rows == [*SECTIONS] == [str(n + 1) for n in range(len(rows))]


@pytest.mark.parametrize(("finding", "name"), PATCHES)
def test_a_patch_applies_and_what_it_makes_loads(finding: str, name: str) -> None:
    made = applied(FILES[finding][name], as_published(name, finding))
    definition = definition_of(made)
    # of the calls' own, or of a pass that is not causal
    named = [s["value"] for s in FILES[finding][name] if s["path"] == "/name"]
    assert definition.name == (named[0] if named else name)
    run = run_of(definition.reference)
    assert callable(run)


# their outputs are others than those of the published definition
OTHERWISE = ("prefix-pass", "gdn-unit-length")


@pytest.mark.parametrize(
    ("finding", "name"), [one for one in KINDS if one[0] not in OTHERWISE]
)
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
    left = [p for p in check_calls(definition_of(made)) if p.rule == "route-interface"]
    # Gemma's are asked for by the name of the other norm, whatever they return
    assert all("asks for this name" in p.message for p in left)
    assert bool(left) == (name in FILES["gemma-unit-offset"])
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


def patched(finding: str, name: str) -> Any:
    """Return a definition's JSON after the patch of a finding."""
    return applied(FILES[finding][name], build_findings.ours(name))


@pytest.mark.parametrize("name", FILES["eps-as-input"])
def test_eps_is_what_is_passed_and_else_what_it_was(name: str) -> None:
    before = run_of(build_findings.ours(name)["reference"])
    made = patched("eps-as-input", name)
    run = run_of(made["reference"])
    x = torch.full((2, 8), 1e-3).bfloat16()
    given = [x] * (len(build_findings.ours(name)["inputs"]) - 1)
    weight = torch.ones(8).bfloat16()
    assert torch.equal(run(*given, weight), before(*given, weight))
    assert not torch.equal(run(*given, weight, 1e-2), before(*given, weight))
    # calls of today, which do not pass it, are as they were
    broken_calls = [p.message for p in check_calls(definition_of(made))]
    assert broken_calls == [p.message for p in check_calls(loaded(name))]


def test_the_rows_of_the_finding() -> None:
    run = run_of(patched("eps-as-input", "rmsnorm_h4096")["reference"])
    rows, weight = torch.full((1, 4096), 1e-3).bfloat16(), torch.ones(4096).bfloat16()
    assert float(run(rows, weight)[0, 0]) == pytest.approx(0.301, abs=2e-3)
    assert float(run(rows, weight, 1e-6)[0, 0]) == pytest.approx(0.707, abs=3e-3)


@pytest.mark.parametrize("name", FILES["prefix-pass"])
def test_the_pass_over_a_prefix_agrees_with_the_oracle(name: str) -> None:
    made = patched("prefix-pass", name)
    short = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 32, "page_size": 4}
    definition = sized("gqa_paged_prefill_noncausal_h32_kv8_d128_ps64", **short)
    cls = class_of(op_module("gqa_paged"), definition, run_of(made["reference"]))
    assert oracle_failures(cls, ("small",)) == []
    # with the mask the queries of such workloads see nothing
    masked = run_of(build_findings.ours(name)["reference"])
    cls = class_of(op_module("gqa_paged"), definition, masked)
    assert oracle_failures(cls, ("small",))


def delta(name: str, tokens: int, length: float) -> dict[str, Any]:
    """Return inputs of a delta net with keys of a length, of one sequence or several."""
    draw = torch.Generator().manual_seed(7)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw)

    rows = (tokens,) if "prefill" in name else (1, 1 if "decode" in name else tokens)
    inputs: dict[str, Any] = {
        what: randn(*rows, 2, 16).bfloat16() for what in ("q", "k", "v")
    }
    for what in ("q", "k"):
        unit = torch.nn.functional.normalize(inputs[what].float(), dim=-1)
        inputs[what] = (length * unit).bfloat16()
    states = randn(1, 2, 16, 16)
    inputs["initial_state" if "mtp" in name else "state"] = states
    if "mtp" in name:
        inputs["initial_state_indices"] = torch.zeros(1, dtype=torch.int32)
    gates = {"A_log": randn(2), "a": randn(*rows, 2).bfloat16(), "dt_bias": randn(2)}
    inputs |= {**gates, "b": randn(*rows, 2).bfloat16()}
    if "prefill" in name:
        inputs["cu_seqlens"] = torch.tensor([0, tokens])
    inputs["scale"] = 0.25
    return inputs


@pytest.mark.parametrize("name", FILES["gdn-unit-length"])
def test_keys_and_queries_of_any_length_are_as_those_of_length_one(name: str) -> None:
    run = run_of(patched("gdn-unit-length", name)["reference"])
    before = run_of(build_findings.ours(name)["reference"])
    one, eight = (run(**delta(name, 5, length)) for length in (1.0, 8.0))
    for found, expected in zip(eight, one, strict=True):
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    # of length 1, rounded to bfloat16, they are left as they are
    for found, expected in zip(one, before(**delta(name, 5, 1.0)), strict=True):
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


def test_random_keys_of_the_runner_no_longer_explode() -> None:
    name = "gdn_prefill_qk4_v8_d128_k_last"
    inputs = delta(name, 400, 11.0)
    _, state = run_of(build_findings.ours(name)["reference"])(**inputs)
    assert not bool(state.isfinite().all())
    _, state = run_of(patched("gdn-unit-length", name)["reference"])(**inputs)
    assert float(state.abs().max()) < 100.0


@pytest.mark.parametrize("name", FILES["names-asked-for"])
def test_a_name_that_is_asked_for_is_called_as_the_definition_says(name: str) -> None:
    definition = definition_of(patched("names-asked-for", name))
    assert [p.rule for p in check_names(loaded(name))] == ["name-route"]
    assert [*check_names(definition)] == []
    asking = [api for api, _ in routes_to(definition)]
    assert asking == [*definition.tag_values("fi_api")]
    assert [p for p in check_calls(definition) if p.rule == "route-interface"] == []


def evaluator(root: Path, *, is_patched: bool) -> ModuleType:
    """Return flashinfer-bench's evaluator of samplers, as installed or patched."""
    installed = pytest.importorskip("flashinfer_bench.bench.evaluators.sampling")
    path = root / "flashinfer_bench/bench/evaluators/sampling.py"
    path.parent.mkdir(parents=True)
    path.write_text(Path(str(installed.__file__)).read_text())
    if is_patched:
        diff = ROOT / "docs/findings/sampling-from-logits.diff"
        apply = ["git", "apply", "--unidiff-zero", str(diff)]
        subprocess.run(apply, cwd=root, check=True, capture_output=True)
    # what it imports lies beside it in its package
    spec = spec_from_file_location(str(installed.__name__), path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def sampled_from(kind: str) -> tuple[SimpleNamespace, list[torch.Tensor]]:
    """Return a sampling definition and inputs of it, the first of which has figures."""
    name = f"top_k_top_p_sampling_from_{kind}_v128256"
    definition = SimpleNamespace(inputs=build_findings.ours(name)["inputs"])
    return definition, [torch.tensor([[0.0, 2.0, 1.0]])] * len(definition.inputs)


def test_the_runner_samples_from_probabilities_as_they_are(tmp_path: Path) -> None:
    after = evaluator(tmp_path, is_patched=True)
    definition, given = sampled_from("probs")
    assert after._probabilities(definition, given) is given[0]


def test_the_runner_samples_from_logits_too(tmp_path: Path) -> None:
    before, after = (
        evaluator(tmp_path / str(is_patched), is_patched=is_patched)
        for is_patched in (False, True)
    )
    definition, given = sampled_from("logits")
    with pytest.raises(KeyError, match="probs"):
        before._get_input_by_name(definition, given, "probs")
    torch.testing.assert_close(
        after._probabilities(definition, given), given[0].softmax(-1)
    )
