"""Solutions that are right for usual values alone are refused, where values are far from these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.far_sizes import far_sizes
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import EvaluationRounds, far_cases, rounds_of
from generator.rules.subjects import subject_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]
AXES = {
    "w8a8_fp8_n12800_k5120": {"N": 96, "K": 256},
    "gemm_bf16_n128_k2880": {"K": 256},
}
NORM, BIAS, DECODE = "rmsnorm_h128", "bias_add_n1280", "gqa_single_decode_h32_kv8_d128"
BEYOND = "beyond-float16"
GEMM, CODES, GRADIENT = *reversed(AXES), "gelu_tanh_backward_i3072"


def through_float16(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    wide = {n: v for n, v in inputs.items() if _is_bfloat16(v)}
    return {**inputs, **{n: v.half().to(v.dtype) for n, v in wide.items()}}


def clamped(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    wide = {n: v for n, v in inputs.items() if _is_bfloat16(v)}
    return {**inputs, **{n: v.clamp(-1000.0, 1000.0) for n, v in wide.items()}}


def tiny_ones_flushed(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    wide = {n: v for n, v in inputs.items() if _is_bfloat16(v)}
    few = {n: v.masked_fill(v.abs() < 1e-6, 0.0) for n, v in wide.items()}
    return {**inputs, **few}


def scales_in_float16(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    scales = {n: v for n, v in inputs.items() if n.endswith("_scale")}
    rounded = {n: torch.as_tensor(v).half().float() for n, v in scales.items()}
    return {
        **inputs,
        **{n: v if v.dim() else float(v) for n, v in rounded.items()},
    }


def subnormal_codes_as_zero(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    codes = inputs["x"].float()
    few = codes.masked_fill(codes.abs() < 2.0**-6, 0.0)
    return {**inputs, "x": few.to(inputs["x"].dtype)}


def _is_bfloat16(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16


RIGHT_WHERE_USUAL: tuple[tuple[str, Change], ...] = (
    (BIAS, through_float16),
    (BIAS, clamped),
    (BIAS, tiny_ones_flushed),
    (GEMM, through_float16),
    (GRADIENT, through_float16),
    (GRADIENT, clamped),
    (DECODE, through_float16),
    ("causal_conv1d_update_gated_d1024_w3", through_float16),
    ("lora_expand_r16_n1024", through_float16),
    ("mamba1_update_d1536_s16", through_float16),
    (CODES, scales_in_float16),
    (CODES, subnormal_codes_as_zero),
)


def asked(name: str, far: bool) -> EvaluationRounds:
    """Return the rounds of values far from the usual, or the first of the others."""
    found = rounds_of(loaded(name), [], Path(), CPU, 7, axes=AXES.get(name))
    found = replace(found, rounds=[r for r in found.rounds if r[0] != BEYOND])
    rounds = [one for one in found.rounds if bool(one[1][0].case.moved) == far]
    return replace(found, rounds=rounds if far else rounds[:5], relations=[])


def reason(name: str, change: Change, far: bool) -> str:
    """Return why a solution is refused whose inputs are changed; empty if it is not."""
    run = run_of(loaded(name).reference)
    names = [*subject_of(loaded(name)).interface.input_specs]

    def changed(*given: Any) -> Any:
        return run(*change(dict(zip(names, given, strict=True))).values())

    try:
        UntilWrong(InProcess(changed), asked(name, far), CPU, False, 7).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


@pytest.mark.parametrize(("name", "change"), RIGHT_WHERE_USUAL)
def test_what_is_right_for_usual_values_alone_is_refused(
    name: str, change: Change
) -> None:
    assert reason(name, change, far=False) == ""
    assert "limits: " in reason(name, change, far=True)


# their outputs bend: the case is stated, not found
BENT = (
    "silu_and_mul_i512",
    "gelu_i18176",
    "silu_and_mul_backward_i12288",
    "adaptive_layernorm_h1152",
    "causal_conv1d_fwd_d4096_w4",
    "causal_conv1d_update_d4096_w4",
)


@pytest.mark.parametrize("name", BENT)
def test_float16_is_refused_where_outputs_bend(name: str) -> None:
    every = replace(rounds_of(loaded(name), [], Path(), CPU, 7), relations=[])
    run = run_of(loaded(name).reference)
    names = [*every.subject.interface.input_specs]

    def changed(*given: Any) -> Any:
        inputs = dict(zip(names, given, strict=True))
        return run(*through_float16(inputs).values())

    beyond = every.of_case(BEYOND)
    usual = replace(every, rounds=every.rounds[:3])
    for asked_of, solution, is_right in (
        (usual, changed, True),
        (beyond, run, True),
        (beyond, changed, False),
    ):
        judge = Judge(InProcess(solution), asked_of, CPU, False, 7)
        found = [v.verdict == "PASSED" for v in judge.judge()]
        assert all(found) == is_right


@pytest.mark.parametrize("name", [NORM, BIAS, DECODE, GEMM, CODES, GRADIENT])
def test_references_are_right_there(name: str) -> None:
    judge = Judge(
        InProcess(run_of(loaded(name).reference)), asked(name, True), CPU, False, 7
    )
    found = {v.case: v.reason for v in judge.judge() if v.verdict != "PASSED"}
    assert not found


@pytest.mark.parametrize(
    ("name", "names"),
    [
        (NORM, ["weight large", "weight small"]),
        (BIAS, ["input and bias large", "input and bias small"]),
        # its logits bend with queries and keys, its log-sum-exp as well
        (DECODE, ["v large", "v small"]),
        # the gate bends
        ("gelu_and_mul_i1152", []),
        (GRADIENT, ["grad_output large", "grad_output small"]),
        # a product of two, of which one is large, and what is added to it
        ("lora_expand_r16_n1024", ["x and base large", "x and base small"]),
        # a state in float32, and what is added to it
        (
            "mamba1_update_d1536_s16",
            [
                "x and state large",
                "C and D large",
                "x and state small",
                "C and D small",
            ],
        ),
        # tokens are drawn: nothing to multiply
        ("argmax_rows_v128256", []),
    ],
)
def test_inputs_that_outputs_follow_are_seen(name: str, names: list[str]) -> None:
    subject = subject_of(loaded(name))
    found = far_sizes(subject, subject.cases(("small",)))
    assert [one.name for one in found] == names
    assert far_sizes(subject, subject.cases(("small",))) is found


def test_far_scales_are_asked_and_of_queries_a_scale_of_many_bits() -> None:
    def asked_of(name: str) -> list[str]:
        subject = subject_of(loaded(name))
        known = subject.definition
        return [case.name for case in far_cases(known, subject.op.cases(known))]

    assert asked_of(DECODE) == ["lone-keys", "low-logits", "scale-of-many-bits"]
    # what is large there are scales of stored keys, which are multiplied with sm_scale
    stored = "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64"
    assert {"factors-up", "factors-down"} <= {*asked_of(stored)}
    assert asked_of(NORM) == []
