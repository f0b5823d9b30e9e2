"""SGLang itself, where it is installed: the second sources agree with ours on the CPU."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.ops.op_types.rope import op as rope
from generator.running import sglang
from generator.running.harness import matches
from kernel_judge.comparison.compare import compare
from kernel_judge.definition import Backend
from kernel_judge.inputs.trial import PROVIDER_SEED
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    run_of,
    trial_of,
)

NATIVE = Backend("native", needs_cuda=False)
ROPE = "rope_with_cos_sin_cache_neox_style_d128_rd64"


@pytest.fixture(scope="module", autouse=True)
def needs_sglang():
    try:
        sglang._provider.started()
    except sglang.Unavailable as error:
        pytest.skip(f"sglang: {error}")
    yield
    sglang._provider.stop()


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (rmsnorm, "rmsnorm_h128"),
        (rmsnorm, "rmsnorm_h5376"),
        (rmsnorm, "fused_add_rmsnorm_h4096"),
        (rope, ROPE),
        (rope, "rope_with_cos_sin_cache_gptj_style_d64_rd64"),
        (rope, "mrope_sectioned_t16_y24_x24_d128_rd128"),
        (rope, "mrope_interleaved_t11_y11_x10_d256_rd64"),
        (rope, "gemma_qk_rmsnorm_rope_eps_1em6_d128_rd128"),
        (rope, "llama31_rope_pos_ids_theta500000_scale32_h24_kv8_d128"),
        (rope, "yarn_rope_pos_ids_theta150000_scale32_h64_kv8_d64"),
        (rope, "deepseek_rope_pos_ids_gptj_theta10000_scale40_h128_kv1_d64"),
    ],
)
def test_references_match_its_native_layers(op, name):
    definition = known(name)
    cls = class_of(op, definition, run_of(loaded(name).reference))
    for case in cases_of(cls, ("small", "medium")):
        test = type("Rendered", (cls, matches("sglang")), {})()
        test.test_matches_sglang(trial_of(cls, case), NATIVE, ignore_property)


@pytest.mark.parametrize(
    ("op", "name", "constants"),
    [
        (rmsnorm, "rmsnorm_h128", {"unit_offset": True}),
        (rmsnorm, "fused_add_rmsnorm_h4096", {"unit_offset": True}),
        (rope, ROPE, {"is_neox": False}),
    ],
    ids=["gemma", "gemma-fused", "gptj"],
)
def test_what_no_reference_has_yet_agrees_with_the_oracle(op, name, constants):
    definition = known(name)
    changed = replace(definition, constants={**definition.constants, **constants})
    cls = class_of(op, definition, run_of(loaded(name).reference))
    for case in cases_of(cls):
        inputs = trial_of(cls, case).inputs
        found = sglang.ask(
            op.sglang_ground_truth, changed, inputs, "native", PROVIDER_SEED
        )
        expected = op.oracle(changed, inputs)
        pairs = (
            [(found, expected)]
            if isinstance(found, torch.Tensor)
            else zip(found, expected, strict=True)
        )
        outputs = definition.interface.output_specs
        for output, (actual, wanted) in zip(outputs, pairs, strict=True):
            tolerance = cls.subject().tolerance(output, "oracle", case)
            result = compare(actual, wanted, tolerance, same_dtype=False)
            assert result.passed, result.message(case.name)


def test_another_eps_is_seen():
    definition = known("rmsnorm_h128")
    run = run_of(loaded("rmsnorm_h128").reference)
    eps = 10 * definition.constants["eps"]
    wrong = replace(definition, constants={**definition.constants, "eps": eps})
    cls = class_of(rmsnorm, wrong, run)
    (case,) = [c for c in cases_of(cls) if c.name == "tiny-variance"]
    test = type("Rendered", (cls, matches("sglang")), {})()
    with pytest.raises(AssertionError, match="against sglang/native"):
        test.test_matches_sglang(trial_of(cls, case), NATIVE, ignore_property)


def test_it_is_not_in_this_process():
    assert "sglang" not in sys.modules
