"""Names that FlashInfer asks for: name-route and name-route-other."""

from __future__ import annotations

from typing import Any

import pytest

from generator.dataset.definition import LoadedAxis
from generator.problems import Severity
from generator.rules.routes import check
from tests.builders import ROOT, definition_value
from tests.validating import validate

REFERENCE = "def run(x):\n    return x\n"


def _problems(name: str, api: str, **axes: int) -> list[tuple[str, str]]:
    made = {axis: LoadedAxis(axis, size) for axis, size in axes.items()}
    tags = [f"fi_api:{api}"]
    definition: Any = definition_value(REFERENCE, name=name, tags=tags, axes=made)
    return [(problem.rule, problem.message) for problem in check(definition)]


SAMPLING = "flashinfer.sampling.top_k_sampling_from_probs"
MOE = "flashinfer.fused_moe.trtllm_fp8_block_scale_moe"


@pytest.mark.parametrize(
    ("name", "api", "axes"),
    [
        ("top_k_sampling_v128256", SAMPLING, {"vocab_size": 128256}),
        # an axis that the name alone states
        (
            "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048",
            MOE,
            {"num_local_experts": 32, "hidden_size": 7168, "intermediate_size": 2048},
        ),
        # nothing is known of the axis, or of the function
        ("anything", SAMPLING, {"V": 5}),
        ("anything_h5", "flashinfer.norm.unheard_of", {"hidden_size": 5}),
    ],
)
def test_names_that_are_asked_for_have_no_problem(
    name: str, api: str, axes: dict[str, int]
) -> None:
    assert _problems(name, api, **axes) == []


def test_another_name_is_asked_for() -> None:
    [(rule, message)] = _problems(
        "top_k_sampling_from_probs_v128256", SAMPLING, vocab_size=128256
    )
    assert rule == "name-route"
    assert message.endswith("ask for 'top_k_sampling_v128256'.")


def test_each_name_that_a_function_may_ask_for_is_named() -> None:
    [(rule, message)] = _problems(
        "moe_of_mine_topk8_ng8_kg4",
        MOE,
        num_local_experts=32,
        hidden_size=7168,
        intermediate_size=2048,
    )
    assert rule == "name-route"
    for route in ("default_routing", "ds_routing", "llama4_routing"):
        assert f"{route}_topk8_" in message


def test_name_that_another_function_asks_for() -> None:
    [(rule, message)] = _problems(
        "rmsnorm_h5376", "flashinfer.norm.gemma_rmsnorm", hidden_size=5376
    )
    assert rule == "name-route-other"
    assert "Calls of flashinfer.norm.rmsnorm ask for this name" in message
    assert "'gemma_rmsnorm_h5376'" in message


def test_warnings_of_the_published_dataset() -> None:
    problems = validate(ROOT)
    warnings = [p for p in problems if p.severity is not Severity.NOTE]
    # published names, interfaces and tags stay: test_route_calls and test_tag_claims
    of_calls = ("route-interface", "route-constant", "tag-spelling", "tag-parallel")
    found = {(p.rule, p.file) for p in warnings if p.rule not in of_calls}
    # published names stay: these two would be applied to norms without 1 + weight
    assert found == {
        ("name-route-other", "definitions/rmsnorm/rmsnorm_h5376.json"),
        ("name-route-other", "definitions/rmsnorm/fused_add_rmsnorm_h5376.json"),
    }
