"""Equivalent is what gives the same bits, or rounds no worse; nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.audit.bench import loaded
from generator.audit.classes import rendered_class
from generator.audit.coupling import coupled_draws
from generator.audit.equivalence import RUNS, Equivalence
from generator.audit.geometry import reduced, tiny
from generator.audit.variation import varied
from tests.builders import ROOT, known, replaced
from tests.builders import loaded as definition_of

NAMES = sorted(path.stem for path in (ROOT / "definitions").glob("*/*.json"))


def equivalence(name: str) -> Equivalence:
    definition = definition_of(name)
    cls = rendered_class(definition, tiny(definition.op_type, definition.const_axes))
    return Equivalence(cls, loaded(definition.reference)(), cls.oracle)


@pytest.fixture(scope="module")
def norm() -> Equivalence:
    return equivalence("rmsnorm_h128")


def shown(norm: Equivalence, old: str, new: str) -> Any:
    text = replaced(definition_of("rmsnorm_h128").reference, old, new)
    return norm.shown(loaded(text)())


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


SAMPLER = "top_k_top_p_sampling_from_probs_v128256"


@pytest.fixture(scope="module")
def sampler() -> Equivalence:
    return equivalence(SAMPLER)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("topk(int(k.max()), dim=1)", "topk(min(int(k.max()) + 5, 600), dim=1)", True),
        ("before < top_p", "before <= top_p", False),
        ("rank >= k", "rank > k", False),
        ("top_k > 0", "top_k >= 0", False),
    ],
)
def test_samplers_are_compared_by_law(sampler, old, new, same):
    text = replaced(definition_of(SAMPLER).reference, old, new)
    try:
        found = sampler.shown(loaded(text)()).equivalent
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


@pytest.mark.parametrize("op_type", ["moe", "gdn", "gqa_paged", "mamba_ssu", "unknown"])
def test_an_interface_of_another_shape_keeps_its_axes(op_type):
    assert reduced(op_type, {"N": 4}) == {} == tiny(op_type, {"N": 4})


def test_random_cases_are_other_ones_each_time_and_the_same_in_each_run():
    definition = known("gqa_paged_prefill_causal_h32_kv8_d128_ps64")
    cls: Any = rendered_class(definition_of(definition.name))
    cases = cls.cases(definition)
    first = [varied(definition, cases, n)[0] for n in range(20)]
    assert first == [varied(definition, cases, n)[0] for n in range(20)]
    assert len({case.params["kv_lens"] for case in first}) > 15
    for case in first:
        assert case.axes["total_q"] == sum(case.params["q_lens"]) > 0
        assert set(case.axes) == set(cases[0].axes)
