"""What kernels returned on a GPU contradicts a wrong reference, on any machine.

The recordings are those of this repository's dataset, and so are the references, each
with one fault of those that only a kernel can settle: by its own formula each is right.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import ROOT, replaced
from tests.harness.datasets import class_name
from tests.harness.runs import Run, render, run_pytest

# fault: definition, and the text that is replaced in its reference
FAULTS = {
    "LSE in natural logarithm": (
        "gqa_paged/gqa_paged_decode_h32_kv8_d128_ps64",
        "logits.logsumexp(dim=-1).flatten() / math.log(2)",
        "logits.logsumexp(dim=-1).flatten()",
    ),
    "the sentinel of a padded row is taken for a slot": (
        "mamba_ssu/mamba_ssu_decode_h64_d64_s128_ng4",
        "rows = (state_batch_indices >= 0)",
        "rows = (state_batch_indices >= -1)",
    ),
    "the token that crosses top-p is dropped": (
        "sampling/top_p_sampling_from_probs_v128256",
        "kept = before < top_p.unsqueeze(1)",
        "kept = before + weights <= top_p.unsqueeze(1)",
    ),
    "RoPE turns neighbours": (
        "rope/rope_with_cos_sin_cache_neox_style_d128_rd64",
        """    first, second = x[..., :rotary_dim].float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
""",
        """    first, second = x[..., :rotary_dim].float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack((first * cos - second * sin, second * cos + first * sin), -1)
    turned = turned.flatten(-2)
""",
    ),
}
RECORDINGS = ROOT / "blob" / "ground_truth"


def definition(path: str) -> dict[str, Any]:
    file = ROOT / "definitions" / f"{path}.json"
    value: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return value


def replay(root, definitions) -> Run:
    folder = render(root, definitions)
    arguments = ["--recordings", str(RECORDINGS), "-k", "recorded", "--device", "cpu"]
    return run_pytest(folder, *arguments)


@pytest.fixture(scope="module")
def right(tmp_path_factory) -> Run:
    definitions = [definition(path) for path, _, _ in FAULTS.values()]
    return replay(tmp_path_factory.mktemp("right"), definitions)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory) -> Run:
    definitions = []
    for path, old, new in FAULTS.values():
        value = definition(path)
        text = replaced(value["reference"], old, new)
        definitions.append({**value, "reference": text})
    return replay(tmp_path_factory.mktemp("wrong"), definitions)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_reference_agrees_and_with_a_fault_it_is_red(fault, right, wrong):
    name = class_name(FAULTS[fault][0].partition("/")[2])
    assert right.functions(name, "passed") == {"test_matches_recorded"}
    assert not right.functions(name, "failed")
    assert wrong.functions(name, "failed") == {"test_matches_recorded"}
