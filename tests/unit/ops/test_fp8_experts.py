"""Limits of experts of float8 against a kernel that rounds inner values to float8."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from generator.ops.domain_mutants import domain_mutants
from generator.ops.op_types.moe_experts import op as experts
from kernel_judge.comparison.compare import compare
from kernel_judge.definition import LIMITS
from kernel_judge.inputs.trial import as_tuple
from tests.builders import cases_of, class_of, loaded, run_of, sized, trial_of

SOURCE = "sglang/triton-fp8"
# the fewest inner values of a token: 9 or 10 experts of 128
FEWEST = [
    "moe_fp8_block_shared_topk9_e257_h7168_i128",
    "moe_fp8_block_topk10_e512_h2048_i128",
]

# defects that change less than four bits of an inner value do, and one of a second call
SMALLER = {
    "outputs stale from the last call",
    "output 1 % too large",
    *(
        f"{name} rounded to float16"
        for name in ("topk_weights", "w13_scale", "w2_scale")
    ),
    # codes of the usual cases are neither subnormal nor the largest
    *(f"{name}: subnormal codes taken as 0" for name in ("w13", "w2")),
    *(f"{name}: the largest code taken as the one before" for name in ("w13", "w2")),
}


def quantised(values: torch.Tensor) -> torch.Tensor:
    """Round [rows, n] to float8, with a scale for each 128 of a row."""
    blocks = values.unflatten(1, (-1, 128))
    scales = blocks.abs().amax(2, keepdim=True).clamp(min=1e-10) / 448.0
    return ((blocks / scales).to(torch.float8_e4m3fn).float() * scales).flatten(1)


def widened(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return codes.float() * scales.repeat_interleave(128, 0).repeat_interleave(128, 1)


def short(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.bfloat16).float()


def kernel(inputs):
    """Return what SGLang's Triton kernel gives, with each of its roundings."""
    x, ids = quantised(inputs["hidden_states"].float()), inputs["topk_ids"]
    total = torch.zeros_like(x)
    for expert in sorted(set(ids.flatten().tolist()) - {-1}):
        one, two = (
            widened(inputs[name][expert], inputs[f"{name}_scale"][expert])
            for name in ("w13", "w2")
        )
        tokens, slots = (ids == expert).nonzero(as_tuple=True)
        gate, up = short(x[tokens] @ one.T).chunk(2, dim=1)
        inner = quantised(short(short(torch.nn.functional.silu(gate)) * up))
        weights = inputs["topk_weights"][tokens, slots, None]
        total.index_add_(0, tokens, short(inner @ two.T * weights))
    return total.to(torch.bfloat16)


@cache
def rendered(name: str):
    """Return the class of a definition with few experts of its own inner values."""
    count = "num_all_experts" if "shared" in name else "num_experts"
    axes = {"hidden_size": 2048, "num_hidden_blocks": 16, count: 13}
    return class_of(experts, sized(name, **axes), run_of(loaded(name).reference))


def judged(cls, case, actual, expected):
    tolerance = cls.subject().tolerance("output", SOURCE, case)
    return compare(actual, expected, tolerance, same_dtype=True)


@pytest.mark.parametrize("name", FEWEST)
def test_what_the_kernel_rounds_is_within_its_limits(name):
    cls = rendered(name)
    for case in cases_of(cls, ("small", LIMITS)):
        if case.repeats:
            continue
        trial = trial_of(cls, case)
        result = judged(cls, case, trial.outputs[0], kernel(trial.fresh_inputs()))
        assert result.passed, (case.name, result.findings)


def test_the_factor_of_a_token_s_inner_values_is_what_the_limit_says():
    torch.manual_seed(20)
    tokens, slots, hidden_blocks = 600, 8, 56
    gate, up = torch.randn(2, tokens, slots, 128)
    inner = (torch.nn.functional.silu(gate) * up).flatten(0, 1)
    weights = torch.rand(tokens, slots) + 0.5
    # scales of the second weights' blocks: 8 to 16, half of them doubled
    scales = 8.0 + 8.0 * torch.rand(tokens, slots, hidden_blocks)
    scales *= 1.0 + torch.randint(0, 2, scales.shape)
    shares = (weights**2 * scales.square().mean(2)).flatten()[:, None]
    lost = (shares * inner * (quantised(inner) - inner)).view(tokens, -1).sum(1)
    factors = lost / (shares * inner**2).view(tokens, -1).sum(1)
    assert 2.0e-3 < float(factors.std()) < 2.5e-3
    # rounding to even of a falling density has a mean, a seventh of it
    assert abs(float(factors.mean())) < 5e-4


def test_defects_that_are_larger_than_the_rounding_are_caught():
    cls = rendered(FEWEST[1])
    (case,) = (c for c in cases_of(cls) if c.name == "ends-and-elsewhere")
    trial = trial_of(cls, case)
    expected = kernel(trial.fresh_inputs())
    passed = set()
    for mutant in domain_mutants(cls.definition()):
        run = mutant.wrap(cls.reference())
        (output,) = as_tuple(run(*trial.fresh_inputs().values()))
        if judged(cls, case, output, expected).passed:
            passed.add(mutant.name)
    # the last token has no expert here; of one column some value must not be small
    zeros = {
        f"output along {axis}: the last zero" for axis in ("seq_len", "hidden_size")
    }
    assert passed - SMALLER <= zeros


def test_a_factor_beyond_what_tokens_share_is_caught():
    cls = rendered(FEWEST[0])
    (case,) = (c for c in cases_of(cls) if c.name == "one-token")
    trial = trial_of(cls, case)
    expected = kernel(trial.fresh_inputs())
    for factor in (0.97, 1.03):
        output = trial.outputs[0] * factor
        assert not judged(cls, case, output, expected).passed
