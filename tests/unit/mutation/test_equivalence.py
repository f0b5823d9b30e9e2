"""Equivalent is what gives the same bits, or rounds no worse; nothing else is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from generator.mutation.audit_job import AuditJob, prepare
from generator.mutation.coupling import coupled_draws
from generator.mutation.equivalence import RUNS, Equivalence
from generator.ops.geometry import reduced, tiny
from generator.ops.variation import varied
from generator.rules.subjects import subject_of
from kernel_judge.reference import load_run
from tests.builders import ROOT, known, replaced
from tests.builders import loaded as definition_of

NAMES = sorted(path.stem for path in (ROOT / "definitions").glob("*/*.json"))


def equivalence(name: str) -> Equivalence:
    definition = definition_of(name)
    subject = subject_of(definition, tiny(definition.op_type, definition.const_axes))
    return Equivalence(subject, load_run(definition.reference), subject.op.oracle)


@pytest.fixture(scope="module")
def norm() -> Equivalence:
    return equivalence("rmsnorm_h128")


def shown(norm: Equivalence, old: str, new: str) -> Any:
    text = replaced(definition_of("rmsnorm_h128").reference, old, new)
    return norm.check(load_run(text))


def test_the_same_bits_are_equivalent(norm):
    found = shown(norm, "weight.float()", "weight")
    assert (found.equivalent, found.how) == (
        True,
        f"the same bits in {RUNS} random cases",
    )


def test_another_order_of_the_same_sum_is_equivalent(norm):
    found = shown(
        norm, "x * inverse_rms * weight.float()", "x * (inverse_rms * weight.float())"
    )
    assert found.equivalent
    assert found.how.startswith("rounds otherwise: 1.0")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("EPS = 1e-06", "EPS = 1.1e-06"),
        ("x * inverse_rms", "(x * inverse_rms).bfloat16().float()"),
        ("x * inverse_rms", "x * inverse_rms * 1.001"),
        ("hidden_states.float()", "hidden_states.float().clamp(max=2.0)"),
    ],
)
def test_a_small_defect_is_not(norm, old, new):
    found = shown(norm, old, new)
    assert not found.equivalent


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("hidden_states[:, 0] = 0", False),
        ("weight.add_(1)", False),
        # written to, and nothing changed
        ("weight.mul_(1)", True),
    ],
)
def test_what_is_written_into_the_inputs_counts(norm, line, same):
    end = "(x * inverse_rms * weight.float()).to(hidden_states.dtype)"
    changed = f"answer = {end}\n    {line}\n    return answer"
    assert shown(norm, f"return {end}", changed).equivalent is same


SAMPLER = "top_k_top_p_sampling_from_probs_v128256"


@pytest.fixture(scope="module")
def sampler() -> Equivalence:
    return equivalence(SAMPLER)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("topk(int(k.max()), dim=1)", "topk(min(int(k.max()) + 5, 600), dim=1)", True),
        ("before < top_p", "before <= top_p", False),
        ("before < top_p", "before < top_p.bfloat16().float()", False),
        ("rank >= k", "rank > k", False),
        ("top_k > 0", "top_k >= 0", False),
    ],
)
def test_samplers_are_compared_by_law(sampler, old, new, same):
    text = replaced(definition_of(SAMPLER).reference, old, new)
    try:
        found = sampler.check(load_run(text)).equivalent
    except RuntimeError:
        found = False
    assert found is same


def test_coupled_draws_follow_the_weights_whatever_the_columns():
    weights = torch.tensor([[1.0, 3.0, 0.0]]).repeat(4000, 1)
    with coupled_draws():
        first = torch.multinomial(weights, 1)
    with coupled_draws():
        second = torch.multinomial(torch.nn.functional.pad(2 * weights, (0, 5)), 1)
    assert torch.equal(first, second)
    assert first.shape == (4000, 1)
    assert 2900 < int((first == 1).sum()) < 3100
    assert int(first.max()) == 1


def test_coupled_draws_refuse_what_torch_refuses():
    with coupled_draws(), pytest.raises(RuntimeError):
        torch.multinomial(torch.zeros(2, 3), 1)
    with coupled_draws(), pytest.raises(RuntimeError):
        torch.multinomial(torch.tensor([[0.5, -0.5]]), 1)


@pytest.mark.parametrize("name", NAMES)
def test_shorter_axes_are_axes_of_the_definition(name):
    definition = known(name)
    for axes in (
        reduced(definition.op_type, definition.axes),
        tiny(definition.op_type, definition.axes),
    ):
        assert all(0 < n < definition.axes[axis] for axis, n in axes.items())


@pytest.mark.parametrize(
    "name",
    [
        "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e48_h7168_i2048",
        "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512",
        "trtllm_fp4_block_scale_routed_moe_topk1_e16_h5120_i8192",
        "trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192",
        "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64",
        "gdn_mtp_qk4_v8_d128_k_last",
    ],
)
def test_the_reference_takes_its_random_cases(name):
    made = equivalence(name)
    for number in range(12):
        assert made._draw(number) is not None
    assert made._next == len(made.draws)
    assert any(bool(draw.outputs[0].any()) for draw in made.draws)


def test_random_cases_of_experts_keep_a_choice_and_differ():
    name = "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768"
    definition = known(name)
    subject = subject_of(definition_of(name))
    cases = subject.op.cases(definition)
    drawn = [varied(subject.definition, cases, n)[0] for n in range(40)]
    assert all(case.params["local"] > 8 for case in drawn)
    assert {case.axes["seq_len"] for case in drawn} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (
            "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512",
            "weights[tokens, slots]",
            "weights[tokens - 1, slots]",
        ),
        (
            "trtllm_fp4_block_scale_routed_moe_topk8_e128_h2048_i768",
            "0xFFFF",
            "0xFFFE",
        ),
        (
            "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048",
            "* routed_scaling_factor",
            "* 2.5",
        ),
        (
            "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048",
            'float("-inf")',
            "0.0",
        ),
        (
            "gqa_paged_decode_h16_kv2_d128_ps64",
            "* sm_scale",
            "* q.shape[-1] ** -0.5",
        ),
    ],
)
def test_random_cases_show_what_small_cases_hide(name, old, new):
    text = replaced(definition_of(name).reference, old, new)
    assert not equivalence(name).check(load_run(text)).equivalent


def test_random_cases_of_the_indexer_have_lengths_around_k():
    name = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
    definition = known(name)
    subject = subject_of(definition_of(name))
    drawn = [varied(definition, subject.op.cases(definition), n)[0] for n in range(40)]
    lengths = [length for case in drawn for length in case.params["seq_lens"]]
    assert min(lengths) < 64
    assert {n > 2048 for n in lengths if n > 1000} == {True, False}
    for case in drawn:
        assert case.axes["batch_size"] == len(case.params["seq_lens"])
        assert set(case.axes) == {"batch_size", "max_num_pages", "num_pages"}


def checking(name: str, check: str) -> Any:
    """Return a norm that computes a number of its own first, and may raise."""
    definition = definition_of(name)
    old, new = "x = hidden_states", f"{check}\n    x = hidden_states"
    return replace(definition, reference=replaced(definition.reference, old, new))


@pytest.fixture(scope="module")
def job() -> AuditJob:
    return prepare(definition_of("rmsnorm_h512"), None, None)


def test_random_cases_are_made_before_mutants_run(job):
    assert [len(e.draws) for e in job.equivalences] == [RUNS, 0]
    assert [e.subject.definition.axes["hidden_size"] for e in job.equivalences] == [
        160,
        512,
    ]


def test_what_raises_on_the_tiny_axes_alone_is_compared_on_those_of_the_bench(job):
    text = checking("rmsnorm_h512", "weight.topk(300)").reference
    found = job._prove_equivalence(partial(load_run, text))
    assert (found.equivalent, found.how) == (
        True,
        f"the same bits in {RUNS} random cases",
    )
    wrong = replaced(text, "* weight.float()", "* (1.001 * weight.float())")
    assert not job._prove_equivalence(partial(load_run, wrong)).equivalent
    text = checking("rmsnorm_h512", "weight.topk(600)").reference
    assert job._prove_equivalence(partial(load_run, text)).how.startswith(
        "raised RuntimeError: selected"
    )


def test_a_reference_that_refuses_the_tiny_axes_has_random_cases_all_the_same():
    check = "assert weight.shape == (512,)"
    own = prepare(checking("rmsnorm_h512", check), None, None)
    (found,) = own.equivalences
    assert found.subject.definition.axes["hidden_size"] == 512
    assert own._prove_equivalence(
        partial(load_run, own.definition.reference)
    ).equivalent


@pytest.mark.parametrize("op_type", ["moe", "gdn", "gqa_paged", "mamba_ssu", "unknown"])
def test_an_interface_of_another_shape_keeps_its_axes(op_type):
    assert reduced(op_type, {"N": 4}) == {} == tiny(op_type, {"N": 4})


def test_random_cases_are_other_ones_each_time_and_the_same_in_each_run():
    definition = known("gqa_paged_prefill_causal_h32_kv8_d128_ps64")
    subject = subject_of(definition_of(definition.name))
    cases = subject.op.cases(definition)
    first = [varied(definition, cases, n)[0] for n in range(20)]
    assert first == [varied(definition, cases, n)[0] for n in range(20)]
    assert len({case.params["kv_lens"] for case in first}) > 15
    for case in first:
        assert case.axes["total_q"] == sum(case.params["q_lens"]) > 0
        assert set(case.axes) == set(cases[0].axes)
