"""moe: faults planted in every reference, and held against every kind of tolerance."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from generator.ops.op_types.moe import op as moe
from generator.ops.op_types.moe import routing as moe_routing
from generator.ops.op_types.moe.inputs import routing_inputs
from kernel_judge.comparison.compare import compare
from kernel_judge.definition import LIMITS
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import (
    ROOT,
    cases_of,
    class_of,
    distinct,
    known,
    loaded,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)
from tests.unit.ops.moe_faults import (
    BLOCKS,
    EVERY,
    FAULTS,
    KIMI,
    PAIRS,
    SMALL,
    TENSOR,
    TENSOR_LLAMA4,
)


def small(name):
    wanted = SMALL | (BLOCKS if name.startswith("moe") else {})
    return sized(name, **wanted)


def rendered(name, run):
    return class_of(moe, small(name), run)


def mutant(name, fault):
    reference = loaded(name).reference
    if fault == "score scales the output":
        reference = replaced(
            reference,
            "    return output",
            "    output *= scores.gather(1, experts.unsqueeze(1))\n    return output",
        )
    old, new = FAULTS[name][fault]
    return run_of(replaced(reference, old, new))


@pytest.mark.parametrize("name", EVERY)
def test_the_reference_passes_every_case(name):
    cls = rendered(name, run_of(loaded(name).reference))
    assert oracle_failures(cls, ("small", "medium", LIMITS)) == []


def sources(name):
    """Return the production kernels whose tolerances a definition's outputs meet."""
    definition = small(name)
    return [f"flashinfer/{b.name}" for b in moe.flashinfer_backends(definition)] + [
        f"sglang/{b.name}" for b in moe.sglang_backends(definition)
    ]


@cache
def expectations(name):
    """Return the oracle's answer to each case; no fault of a reference changes it."""
    cls = rendered(name, run_of(loaded(name).reference))
    trials = [trial_of(cls, case) for case in cases_of(cls, ("small", "medium"))]
    return {t.case.name: moe.oracle(t.definition, t.lazy_inputs()) for t in trials}


@pytest.mark.parametrize(("name", "fault"), PAIRS)
def test_a_fault_is_caught_by_every_tolerance(name, fault):
    cls = rendered(name, mutant(name, fault))
    wanted, failed = {"oracle", *sources(name)}, set()
    for case in cases_of(cls, ("small", "medium")):
        if failed == wanted:
            break
        actual, expected = trial_of(cls, case).outputs[0], expectations(name)[case.name]
        for source in wanted - failed:
            tolerance = cls.subject().tolerance("output", source, case)
            result = compare(actual, expected, tolerance, same_dtype=False)
            failed |= set() if result.passed else {source}
    assert failed == wanted


@pytest.mark.parametrize("name", EVERY)
def test_the_outputs_are_about_one(name):
    cls = rendered(name, run_of(loaded(name).reference))
    for case in cases_of(cls, ("small", "medium", LIMITS)):
        trial = trial_of(cls, case)
        rms = trial.outputs[0].double().square().mean().sqrt()
        if case.name == "experts-elsewhere":
            assert rms == 0.0
        else:
            assert 0.1 < rms < 4.0, case.name


@pytest.mark.parametrize("name", EVERY)
def test_one_wrong_expert_of_one_token_is_caught(name):
    """The smallest fault of routing: the other tokens are right."""
    definition = small(name)
    cls = rendered(name, run_of(loaded(name).reference))
    for case in cases_of(cls, ("medium",)):
        trial = trial_of(cls, case)
        given = trial.lazy_inputs()
        expected = moe.oracle(definition, given)
        choices = moe_routing.choices(definition, given)
        offset = given.get("local_expert_offset", 0)
        count = moe_routing.experts_of(definition)[1]
        token, expert = next(
            (t, e)
            for t, choice in enumerate(choices)
            for e in choice
            if offset <= e < offset + count
        )
        other = offset + (expert - offset + 1) % count
        choices[token][other] = choices[token].pop(expert)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moe_routing, "choices", lambda *_, made=choices: made)
            wrong = moe.oracle(definition, given).to(torch.bfloat16)
        for source in ("oracle", *sources(name)):
            tolerance = cls.subject().tolerance("output", source, case)
            found = compare(wrong, expected, tolerance, same_dtype=False)
            assert not found.passed, (case.name, source)


def rounded(tensor, dtype):
    return tensor.to(dtype).double()


ROUNDED = [(name, "bfloat16") for name in EVERY] + [
    (name, "float8") for name in EVERY if "fp8" in name
]


@pytest.mark.parametrize(("name", "bits"), ROUNDED)
def test_what_kernels_round_between_the_products_is_within_their_tolerance(
    name, bits, monkeypatch
):
    """The oracle with a kernel's roundings stands in for the kernel."""
    cls = rendered(name, run_of(loaded(name).reference))
    kinds = {"bfloat16": ("triton-bf16", "fp4"), "float8": ("fp8",)}[bits]
    chosen = [s for s in sources(name) if any(kind in s for kind in kinds)]
    assert chosen
    exact = moe._expert

    def product(x, weights, scales):
        short = rounded(x, torch.bfloat16)
        if bits == "float8":
            blocks = short.view(len(x), -1, 128)
            scale = blocks.abs().amax(2, keepdim=True) / 448.0
            short = (rounded(blocks / scale, torch.float8_e4m3fn) * scale).view(x.shape)
        return short, weights.double() * (
            scales.double().repeat_interleave(128, 0).repeat_interleave(128, 1)
        )

    def expert(inputs, number, x):
        scaled = dict(inputs)
        one, two = inputs["gemm1_weights"][number], inputs["gemm2_weights"][number]
        if "gemm1_weights_scale" in inputs:
            _, one = product(x, one, inputs["gemm1_weights_scale"][number])
        both = x @ one.double().T
        if bits == "bfloat16" and "output1_scales_scalar" not in inputs:
            both = rounded(both, torch.bfloat16)
        up, gate = both.chunk(2, dim=1)
        if "output1_scales_scalar" in scaled:
            up = up * inputs["output1_scales_scalar"][number].double()
            gate = gate * inputs["output1_scales_gate_scalar"][number].double()
        inner = rounded(up * gate * torch.sigmoid(gate), torch.bfloat16)
        if "gemm2_weights_scale" in inputs:
            inner, two = product(inner, two, inputs["gemm2_weights_scale"][number])
        elif bits == "float8":
            inner = rounded(inner, torch.float8_e4m3fn)
        y = inner @ two.double().T
        if "output2_scales_scalar" in inputs:
            y = y * inputs["output2_scales_scalar"][number].double()
        assert torch.allclose(y, exact(inputs, number, x), rtol=0.5, atol=1.0)
        return rounded(y, torch.bfloat16)

    for case in cases_of(cls, ("small", "medium")):
        trial = trial_of(cls, case)
        outputs = trial.outputs
        monkeypatch.setattr(moe, "_expert", expert)
        kernel = moe.oracle(trial.definition, trial.lazy_inputs()).to(torch.bfloat16)
        monkeypatch.setattr(moe, "_expert", exact)
        for source in chosen:
            tolerance = cls.subject().tolerance("output", source, case)
            result = compare(outputs[0], kernel, tolerance, same_dtype=True)
            assert result.passed, (case.name, source, result.findings)


def test_a_case_counts_the_weights_once_and_its_experts_copies():
    name = "trtllm_fp4_block_scale_moe_topk1_e128_h5120_i8192"
    definition = sized(name)
    needed = {c.name: moe.peak_bytes(definition, c) for c in moe.cases(definition)}
    weights = 4 * 128 * 3 * 5120 * 8192
    # an H200 has 139 GB
    assert all(weights < bytes_ < 100 * 2**30 for bytes_ in needed.values())
    one = needed["one-token"] - weights
    assert 8 * 3 * 5120 * 8192 < one < 5 * 2**30


MOE = sorted(path.stem for path in (ROOT / "definitions" / "moe").glob("*.json"))


@pytest.mark.parametrize("name", MOE)
def test_the_first_and_the_last_expert_here_are_chosen_in_one_case(name):
    # with the definition's own sizes: how many experts a case may have depends on them
    definition = known(name)
    (case,) = (c for c in moe.cases(definition) if c.name == "end-experts")
    stream = Stream(name, case.name)
    given = {
        **routing_inputs(definition, case, stream),
        "routed_scaling_factor": 2.5,
    }
    chosen = {e for c in moe_routing.choices(definition, given) for e in c}
    local = moe_routing.experts_of(definition)[1]
    offset = case.params["offset"]
    assert {offset, offset + local - 1} <= chosen


@pytest.mark.parametrize("name", [TENSOR, TENSOR_LLAMA4])
def test_no_seed_draws_outputs_beyond_what_the_bounds_are_made_for(name):
    # three scales an expert multiply: drawn apart they made rows of 6
    axes = {"hidden_size": 512, "intermediate_size": 512, "gemm1_out_size": 1024}
    definition = sized(name, **axes)
    rows = []
    for case in moe.cases(definition):
        for seed in range(8 if case.size != "large" else 0):
            stream = Stream(name, case.name, f"seed {seed}")
            inputs = moe.make_inputs(definition, distinct(case), stream)
            rows.append(moe.oracle(definition, inputs).square().mean(dim=1).sqrt())
    rms = torch.cat(rows)
    # 512 elements of a row and of what makes them: 5 % more by chance
    assert rms.min() > 0.1
    assert rms.max() < 2.1


@pytest.mark.parametrize("name", [KIMI, TENSOR_LLAMA4])
def test_a_few_tokens_of_an_expert_at_a_time_give_what_all_give(name, monkeypatch):
    whole = expectations(name)
    monkeypatch.setattr(moe, "_CPU_ROWS", 1)
    few = expectations.__wrapped__(name)
    for case in whole:
        torch.testing.assert_close(few[case], whole[case])
