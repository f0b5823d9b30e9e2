"""Bounds of kernels: their roundings, as the CPU makes them, pass, and defects do not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from generator.ops.attention.flashinfer import skip_cleared, skip_unmasked
from generator.ops.domain_mutants import domain_mutants
from generator.ops.op_types.attention_backward import op as attention_backward
from generator.ops.op_types.embedding_backward import op as embedding_backward
from generator.ops.op_types.gemm import op as gemm
from generator.ops.op_types.gqa_ragged import op as gqa_ragged
from kernel_judge.comparison.compare import compare
from kernel_judge.definition import Case
from tests.builders import (
    cases_of,
    class_of,
    known,
    loaded,
    run_of,
    sized,
    skip_reason,
    trial_of,
)

GRADIENTS = ("grad_q", "grad_k", "grad_v")
FLASH, EMBEDDING = "pytorch/flash", "pytorch/embedding_dense_backward"
BACKWARD = ("gqa_causal_backward_h32_kv8_d64", {"num_qo_heads": 8, "num_kv_heads": 2})


def rounded(values):
    return values.bfloat16().float()


def flash(inputs):
    """Return what flash attention's backward pass makes, by its roundings.

    On an H200 the NMSE against the reference is this one's to three digits.
    """
    grad, q, k, v, output = (
        inputs[name].float().transpose(1, 2)
        for name in ("grad_output", "q", "k", "v", "output")
    )
    scale, each = inputs["sm_scale"], q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(each, 1) for x in (k, v))
    logits = q @ k.mT * scale - inputs["lse"].unsqueeze(3)
    weights = torch.tril(logits.exp())
    slopes = weights * (grad @ v.mT - (grad * output).sum(3, keepdim=True))
    weights, slopes = rounded(weights), rounded(slopes)
    of_heads = rounded(slopes.mT @ q * scale), rounded(weights.mT @ grad)
    of_keys = (x.unflatten(1, (-1, each)).sum(2) for x in of_heads)
    found = (slopes @ k * scale, *of_keys)
    return tuple(x.transpose(1, 2).bfloat16() for x in found)


def backward():
    name, axes = BACKWARD
    definition, run = sized(name, **axes), run_of(loaded(name).reference)
    return class_of(attention_backward, definition, run)


def comparisons(cls, case, run, expected, source=FLASH):
    inputs = trial_of(cls, case).fresh_inputs()
    tolerances = [cls.subject().tolerance(name, source, case) for name in GRADIENTS]
    outputs = run(*inputs.values())
    return [
        compare(*pair, same_dtype=True)
        for pair in zip(outputs, expected(inputs), tolerances, strict=True)
    ]


def test_the_roundings_of_flash_attention_take_a_third_to_all_of_its_bounds():
    cls = backward()
    for case in cases_of(cls, ("small", "medium")):
        inputs = trial_of(cls, case).fresh_inputs()
        for name, actual, expected in zip(
            GRADIENTS, cls.subject().run(*inputs.values()), flash(inputs), strict=True
        ):
            tolerance = cls.subject().tolerance(name, FLASH, case)
            assert compare(actual, expected, tolerance).passed, (case.name, name)
            error = (actual.double() - expected.double()).abs()
            share = float((error / tolerance.allowed(expected.double())).max())
            assert share > 0.2, (case.name, name)


def test_flash_attentions_bounds_refuse_all_defects_but_its_own():
    cls = backward()
    cases = cases_of(cls)
    survivors = []
    for mutant in domain_mutants(cls.definition()):
        wrong = mutant.wrap(cls.subject().run)
        found = [one for case in cases for one in comparisons(cls, case, wrong, flash)]
        survivors += [mutant.name] * all(one.passed for one in found)
    allowed = [m.name for m in domain_mutants(cls.definition()) if m.as_kernel]
    assert allowed == ["weights rounded to bfloat16"]
    # 2^-12 of a logit is less than what bfloat16 does to it: the oracle's bounds refuse it
    assert survivors == ["sm_scale rounded to float16", *allowed]


@pytest.mark.parametrize("output", range(3))
def test_flash_attentions_bounds_refuse_one_small_element_that_is_off(output):
    cls = backward()
    case = next(c for c in cases_of(cls, ("medium",)) if c.name == "batch")

    def run(*inputs):
        outputs = list(cls.subject().run(*inputs))
        wrong = outputs[output].clone()
        # a tenth of the row's RMS, which the default's atol would leave in late rows
        row = wrong[0, -1, 0].float()
        wrong[0, -1, 0, int(row.abs().argmin())] += 0.1 * row.square().mean().sqrt()
        outputs[output] = wrong
        return outputs

    found = comparisons(cls, case, run, flash)
    assert [one.passed for one in found] == [n != output for n in range(3)]


def embedding():
    name = "embedding_backward_v50257_h768"
    text = loaded(name).reference.replace("50257", "257")
    definition = sized(name, vocab_size=257, hidden_size=64)
    return class_of(embedding_backward, definition, run_of(text))


def in_chunks(inputs, chunk=32):
    """Return the sums of places by chunks, which bfloat16 adds, as PyTorch's kernel does."""
    grads, ids = inputs["grad_output"].float(), inputs["input_ids"]
    total = torch.zeros(257, grads.shape[1], dtype=torch.bfloat16)
    for some, of_some in zip(ids.split(chunk), grads.split(chunk), strict=True):
        rows, place = some.unique(return_inverse=True)
        sums = torch.zeros(len(rows), grads.shape[1]).index_add_(0, place, of_some)
        total[rows] = total[rows] + sums.bfloat16()
    return total


def one_token(places):
    return Case("one-many-times", "small", {"num_tokens": places}, {"tokens": 1})


@pytest.mark.parametrize("places", [1, 32, 70, 500, 3_072])
def test_sums_of_chunks_in_bfloat16_pass_and_by_place_do_not(places):
    cls, case = embedding(), one_token(places)
    inputs = trial_of(cls, case).fresh_inputs()
    tolerance = cls.subject().tolerance("grad_weight", EMBEDDING, case)
    actual = cls.subject().run(*inputs.values())
    assert compare(actual, in_chunks(inputs), tolerance).passed
    if places > 1:
        assert not compare(actual, in_chunks(inputs, 1), tolerance).passed
    stray = actual.clone()
    stray[5] = 2e-3
    assert not compare(stray, actual, tolerance).passed


def test_a_table_of_few_rows_is_compared_by_bounds_that_zeros_exceed():
    cls, case = embedding(), one_token(1)
    actual = cls.subject().run(*trial_of(cls, case).fresh_inputs().values())
    for source in ("metamorphic:cpu", EMBEDDING, "oracle"):
        tolerance = cls.subject().tolerance("grad_weight", source, case)
        assert compare(actual, actual, tolerance).passed
        zeros = torch.zeros_like(actual)
        assert compare(zeros, actual, tolerance).findings[0].startswith("mismatched")


def truncated(total):
    """Cut float64 sums off below 24 bits, as tensor cores do."""
    mantissa, exponent = torch.frexp(total)
    return torch.ldexp((mantissa * 2.0**24).trunc() * 2.0**-24, exponent)


def on_tensor_cores(a, b, step=16):
    total = torch.zeros(len(a), len(b), dtype=torch.float64)
    for left, right in zip(a.split(step, 1), b.split(step, 1), strict=True):
        total = truncated(total + left.double() @ right.double().T)
    return total.float()


def test_sums_cut_off_below_float32_pass_as_cublas_and_not_as_the_reference():
    name = "gemm_bf16_f32_n256_k7168"
    cls = class_of(gemm, known(name), run_of(loaded(name).reference))
    case = Case("rows", "small", {"M": 16})
    inputs = trial_of(cls, case).fresh_inputs()
    of_kernel = cls.subject().tolerance("logits", "pytorch/cublas", case)
    exact = cls.subject().run(*inputs.values())
    found = compare(exact, on_tensor_cores(**inputs_of(inputs)), of_kernel)
    # 6.9e-6 at most on an H200
    assert found.passed
    assert found.metrics is not None
    assert found.metrics.factor - 1.0 == pytest.approx(8e-6, abs=4e-6)
    strict = replace(of_kernel, bias=2.0**-20)
    wrong = compare(exact, on_tensor_cores(**inputs_of(inputs)), strict)
    assert wrong.findings[0].startswith("actual is 1.0000")
    # four products at a time, and a factor that is off by as much
    assert not compare(
        exact, on_tensor_cores(**inputs_of(inputs), step=4), of_kernel
    ).passed
    assert not compare(exact * (1.0 + 2.0**-15), exact, of_kernel).passed


def inputs_of(inputs):
    return {"a": inputs["A"], "b": inputs["B"]}


def test_fa3_is_not_asked_for_an_lse_that_it_clears():
    definition = known("gqa_ragged_prefill_causal_h12_kv1_d128")

    def asked(queries, keys, kernel="fa3"):
        starts = {
            "qo_indptr": torch.tensor([0, 1, 1 + queries]),
            "kv_indptr": torch.tensor([0, 1, 1 + keys]),
        }
        return lambda: skip_cleared(definition, starts, kernel)

    reason = skip_reason(asked(520, 8))
    assert reason == (
        "flashinfer: fa3 clears the LSE of queries behind 128 without keys: 520 queries "
        "and 8 keys"
    )
    for others in ((135, 8), (520, 0), (8, 520), (520, 8, "fa2")):
        asked(*others)()


def test_kernels_that_give_masked_keys_a_weight_are_not_asked():
    definition = known("gqa_ragged_prefill_causal_h12_kv1_d128")

    def asked(scale, kernel="fa2"):
        return lambda: skip_unmasked(definition, {"sm_scale": scale}, kernel)

    assert skip_reason(asked(2.0**-16)) == (
        "flashinfer: fa2 gives masked keys a logit of -0.763: sm_scale 1.53e-05"
    )
    for scale in (2.0**14, 2.0**8, 1.0, 128**-0.5, 0.75 * 576**-0.5):
        asked(scale)()
    # what rounding leaves of a warp without keys: -5e4 scale, less itself rounded
    scale = 0.75 * 2.0**24 * 128**-0.5
    in_twos = np.float32(scale * float(np.float32(math.log2(math.e))))
    left = -5e4 * float(in_twos) - float(np.float32(-5e4) * in_twos)
    assert left == 1838 > math.log2(torch.finfo(torch.float32).max)
    assert skip_reason(asked(scale)) == (
        "flashinfer: fa2 gives masked keys weights that may be infinite: sm_scale 1.11e+06"
    )
    asked(scale, "fa3")()


def test_an_lse_of_sums_that_tensor_cores_cut_off_passes_as_fa2s_alone():
    definition = known("gqa_ragged_prefill_causal_h12_kv1_d128")
    subject = class_of(gqa_ragged, definition, print).subject()
    case = Case("rows", "small", {})
    weights = torch.randn(32, 2**14, generator=torch.Generator().manual_seed(1))
    weights = (2.0 * weights).exp().double()
    total = torch.zeros(len(weights), 1, dtype=torch.float64)
    for some in weights.split(16, 1):
        total = truncated(total + some.sum(1, keepdim=True))
    exact = weights.sum(1, keepdim=True).log2()
    fa2, fa3 = (
        subject.tolerance("lse", f"flashinfer/{name}", case) for name in ("fa2", "fa3")
    )
    # of 2^13 keys an H100 made them 1.1e-6 to 1.5e-6 of themselves too small
    assert compare(exact, total.log2(), fa2).passed
    assert "actual is 1.00000" in compare(exact, total.log2(), fa3).findings[0]
    for wrong in (1.0 + 2.0**-16, 1.0 - 2.0**-16):
        assert not compare(exact * wrong, exact, fa2).passed
