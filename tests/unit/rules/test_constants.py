"""Where a constant is from, and what is said where its sources disagree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.dataset.model_figures import model_figures
from generator.ops.op_types.gemm import SPEC as GEMM
from generator.ops.op_types.rmsnorm import SPEC as RMSNORM
from generator.ops.registry import op_specs
from generator.ops.spec import OpSpec
from generator.problems import Severity
from generator.rules import constants as module
from generator.rules.constants import Constant, read_constant, resolve_constants
from generator.rules.names import check_tokens
from tests.builders import definition_value, loaded

SILENT = "import torch\ndef run(x):\n    return x\n"


def norm(reference: str = SILENT, *tags: str):
    return definition_value(reference, name="rmsnorm_h4", op_type="rmsnorm", tags=tags)


def with_eps(eps: str) -> str:
    return f"import torch\n\nEPS = {eps}\n\n\ndef run(x):\n    return x\n"


def by_name(definition, spec: OpSpec = RMSNORM):
    found, problems = resolve_constants(definition, spec)
    return {constant.name: constant for constant in found}, problems


def test_an_op_without_constants_has_none():
    assert resolve_constants(norm(with_eps("1e-6")), GEMM) == ((), [])


def test_a_model_knows_eps_and_that_its_norms_have_no_offset():
    found, problems = by_name(norm(with_eps("1e-05"), "model:llama-3.1-8b"))
    assert found["eps"] == Constant("eps", 1e-5, "rms_norm_eps of llama-3.1-8b")
    offset = "rms_norm_unit_offset of llama-3.1-8b"
    assert found["unit_offset"] == Constant("unit_offset", False, offset)
    assert problems == []


def test_a_model_with_offset_norms_says_so():
    found, problems = by_name(norm(SILENT, "fused", "model:gemma-3-27b"))
    assert found["unit_offset"].value is True
    assert found["eps"].value == 1e-6
    assert problems == []


def test_a_name_for_the_same_model_has_its_figures():
    figures = model_figures()
    assert figures["deepseek-r1"] == figures["deepseek-v3"]
    assert not any(name.startswith("_") for name in figures)


def test_the_model_wins_over_the_reference_and_the_disagreement_is_an_error():
    found, (problem,) = by_name(norm(with_eps("1e-05"), "model:qwen3-14b"))
    assert found["eps"].value == 1e-6
    assert found["eps"].independent
    assert problem.rule == "constant-disagrees"
    assert problem.severity is Severity.ERROR
    assert "1e-05 in the reference" in problem.message
    assert "1e-06 by rms_norm_eps of qwen3-14b" in problem.message
    assert (problem.pointer, problem.line) == ("/reference", 3)


def test_models_that_disagree_are_an_error_with_both_values():
    tags = ("model:qwen3-14b", "model:llama-3.1-8b")
    found, problems = by_name(norm(SILENT, *tags))
    assert found["eps"].value == 1e-6, "the first tag's model is taken"
    (problem,) = problems
    assert (problem.rule, problem.severity) == (
        "constant-models-disagree",
        Severity.ERROR,
    )
    assert "1e-06 (rms_norm_eps of qwen3-14b)" in problem.message
    assert "1e-05 (rms_norm_eps of llama-3.1-8b)" in problem.message
    assert problem.pointer == "/tags"


def test_models_that_agree_are_no_problem():
    tags = ("model:qwen3-14b", "model:deepseek-v3")
    assert by_name(norm(with_eps("1e-6"), *tags))[1] == []


@pytest.mark.parametrize("tags", [(), ("model:nobody-7b",), ("model:kimi-k2",)])
def test_a_constant_of_the_reference_alone_is_a_warning(tags):
    # nobody-7b is not in the table; kimi-k2 is, but its eps is not known
    found, (problem,) = by_name(norm(with_eps("1e-5"), *tags))
    assert found["eps"].value == 1e-5
    assert not found["eps"].independent
    assert "not independent" in found["eps"].source
    assert (problem.rule, problem.severity) == (
        "constant-not-independent",
        Severity.WARNING,
    )
    assert "1e-05" in problem.message
    assert problem.fix
    # what the model does not say, the op's convention does
    assert found["unit_offset"].value is False
    assert found["unit_offset"].source == "the convention of rmsnorm"


def test_a_constant_that_nobody_knows_is_none():
    found, (problem,) = by_name(norm())
    assert found["eps"] == Constant("eps", None, "no source knows it", False)
    assert problem.severity is Severity.WARNING


def test_the_convention_is_an_independent_source():
    spec = OpSpec("op", {}, {"top_k": 8})
    found, problems = by_name(norm(), spec)
    assert found["top_k"] == Constant("top_k", 8, "the convention of op")
    assert problems == []


def test_a_false_convention_is_one(monkeypatch):
    monkeypatch.setattr(module, "model_figures", dict)
    found, _ = by_name(norm(with_eps("1e-6"), "model:qwen3-14b"))
    assert found["unit_offset"].independent
    assert found["eps"].independent is False


@pytest.mark.parametrize(
    "source",
    [
        "EPS = 1e-5\ndef run(x): return x",
        "_EPS = 1e-5\ndef run(x): return x",
        "RMS_NORM_EPS = 1e-5\ndef run(x): return x",
        "EPS: float = 1e-5\ndef run(x): return x",
        "def run(x):\n    eps = 1e-5\n    return x",
        "def run(x):\n    epsilon = 0.00001\n    return x",
        "def run(x, eps=1e-5):\n    return x",
        "def norm(x, w, *, other=3, eps: float = 1e-5): return x",
        "def run(x): return rms_norm(x, (4,), weight, eps=1e-5)",
        "def run(x): return torch.rsqrt(x.pow(2).mean(-1) + 1e-5)",
        "def run(x): return x / math.sqrt(1e-5 + x.mean())",
        "def run(x): return x * (x.mean() + 1e-5).rsqrt()",
        "def run(x): return (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()",
    ],
)
def test_eps_is_read_in_the_styles_in_which_it_is_written(source):
    assert read_constant(source, "eps") == 1e-5


@pytest.mark.parametrize(
    "source",
    [
        "def run(x): return x",
        "steps = 1e-5\ndef run(x): return x",
        "EPS = compute()\ndef run(x): return x",
        "EPS = 1e999\ndef run(x): return x",
        "EPS = True\ndef run(x): return x",
        "def run(x): return torch.rsqrt(x + 1.0)",
        "def run(x): return torch.exp(x + 1e-5)",
    ],
)
def test_what_is_no_eps_is_not_taken_for_one(source):
    assert read_constant(source, "eps") is None


def test_a_constant_that_nothing_reads_is_unknown():
    assert read_constant("top_k = 8\ndef run(x): return x", "top_k") is None


def test_the_tokens_of_a_name_are_constants_that_the_reference_must_have():
    name = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
    definition = loaded(name)
    constants, problems = resolve_constants(definition, op_specs()["moe"])
    assert problems == []
    assert {c.name: (c.value, c.source, c.independent) for c in constants} == {
        "top_k": (8, '"topk8" in the name', True),
        "n_group": (8, '"ng8" in the name', True),
        "topk_group": (4, '"kg4" in the name', True),
    }
    wrong = definition.reference.replace("TOPK_GROUP = 4", "TOPK_GROUP = 3")
    _, problems = resolve_constants(
        replace(definition, reference=wrong), op_specs()["moe"]
    )
    (problem,) = problems
    assert problem.rule == "constant-disagrees"
    assert "topk_group is 3 in the reference and 4" in problem.message


def test_a_constants_token_is_held_against_the_axis_of_its_name():
    definition = loaded("trtllm_fp4_block_scale_moe_topk8_e128_h2048_i768")
    assert list(check_tokens(definition)) == []
    renamed = replace(definition, name=definition.name.replace("topk8", "topk4"))
    (problem,) = check_tokens(renamed)
    assert problem.message == "The name says topk4, but the axis 'top_k' is 8."
    renamed = replace(definition, name=definition.name.replace("e128", "e64"))
    (problem,) = check_tokens(renamed)
    assert "the axis 'num_experts' is 128" in problem.message
