"""Production kernels' roundings pass where an H100's kernels were refused; defects there don't.

Each solution repeats one kernel's arithmetic: it gave the elements, to every digit, that
were refused on 2026-11-27.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from generator.ops.paging import input_table, kv_lengths, token_slots
from generator.rules.subjects import subject_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess

Inputs = Mapping[str, Any]
Change = Callable[[torch.Tensor], torch.Tensor]
BEYOND, CODES = "beyond-float16", "smallest-codes"
STEP, PREFILL = "causal_conv1d_update_d4096_w4", "causal_conv1d_fwd_d4096_w4"
STATES, GATES = "mamba_ssd_prefill_h128_d64_s128_ng8", "kda_prefill_h16_d128"
CACHE_OF_8_BITS = "gqa_paged_decode_kve4m3_h32_kv4_d128_ps64"
ALL_OF_8_BITS = "gqa_paged_decode_qe4m3_kve4m3_h32_kv8_d128_ps64"
_SECRET = 21


def refused(name: str, run: Callable[[Inputs], Any], *cases: str) -> dict[str, str]:
    """Return the cases in which a solution is refused, of those that begin so, and why."""
    asked = rounds_of(loaded(name), [], Path(), CPU, _SECRET)
    rounds = [one for one in asked.rounds if one[0].startswith(cases)]
    assert len({n for n, _ in rounds}) >= len(cases)
    asked = replace(asked, rounds=rounds, relations=[])
    names = [*subject_of(loaded(name)).interface.input_specs]

    def called(*given: Any) -> Any:
        return run(dict(zip(names, given, strict=True)))

    judge = Judge(InProcess(called), asked, CPU, False, _SECRET)
    return {v.case: v.reason for v in judge.judge() if v.verdict != "PASSED"}


def convolved(i: Inputs, in_float32: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Convolve as SGLang's Triton kernels: products in bfloat16, their sum in float32."""
    x, weight, pool = i["x"], i["weight"], i["conv_states"].clone()
    if in_float32:
        weight = weight.float()
    output = torch.zeros_like(x)
    ends = i["cu_seqlens"].tolist() if "cu_seqlens" in i else range(len(x) + 1)
    for row, slot in enumerate(i["cache_indices"].tolist()):
        if "has_initial_state" in i and not i["has_initial_state"][row]:
            pool[slot] = 0
        for token in range(ends[row], ends[row + 1]):
            seen = torch.cat((pool[slot], x[token, :, None]), dim=1)
            total = torch.zeros(x.shape[1])
            for tap in range(weight.shape[1]):
                total += (seen[:, tap] * weight[:, tap]).float()
            output[token] = total / (1 + torch.exp(-total))
            pool[slot] = seen[:, 1:]
    return output, pool


def through_float16(i: Inputs) -> Inputs:
    return {**i, **{n: i[n].half().to(i[n].dtype) for n in ("x", "conv_states")}}


def clamped_to_float16(i: Inputs) -> Inputs:
    return {**i, **{n: i[n].clamp(-65504, 65504) for n in ("x", "conv_states")}}


@pytest.mark.parametrize("name", [STEP, PREFILL])
def test_products_in_bfloat16_are_as_far_off_as_their_inputs_are_large(name):
    assert refused(name, convolved, BEYOND) == {}
    assert refused(name, lambda i: convolved(i, True), BEYOND) == {}
    assert refused(name, lambda i: convolved(through_float16(i)), BEYOND)
    assert refused(name, lambda i: convolved(clamped_to_float16(i)), BEYOND)
    factor = refused(name, lambda i: _first(convolved(i, True), _larger), BEYOND)
    assert "times expected" in factor[BEYOND]
    without = refused(name, lambda i: convolved({**i, "weight": _first_tap(i)}), BEYOND)
    assert "mismatched" in without[BEYOND]


def _first_tap(i: Inputs) -> torch.Tensor:
    return i["weight"] * torch.tensor([0.0, 1.0, 1.0, 1.0]).bfloat16()


def _larger(out: torch.Tensor) -> torch.Tensor:
    return (out.double() * 1.003).to(out.dtype)


def _first(outputs: tuple[torch.Tensor, ...], change: Change) -> Any:
    return change(outputs[0]), *outputs[1:]


def of_chunks(i: Inputs, rate: float = 1.0, change: Change | None = None) -> Any:
    """Return a chunk's states as SGLang's kernel: B times its scale, and x, in bfloat16."""
    output, new = run_of(loaded(STATES).reference)(*i.values())
    raw = i["dt"].float() + i["dt_bias"]
    steps = torch.where(raw <= 20.0, torch.log1p(torch.exp(raw)), raw)
    ratio = len(i["A"]) // i["B"].shape[1]
    for row, (start, end) in enumerate(pairwise(i["cu_seqlens"].tolist())):
        total = torch.cumsum(rate * i["A"] * steps[start:end], 0)
        scale = torch.exp(total[-1] - total) * steps[start:end]
        b = i["B"][start:end].float().repeat_interleave(ratio, 1) * scale[:, :, None]
        x, b = i["x"][start:end].float(), b.bfloat16().float()
        new[row] = torch.einsum("thp,thn->hpn", x, b)
        new[row] += torch.exp(total[-1])[:, None, None] * i["state"][row]
    return output, new if change is None else change(new)


def test_an_outer_product_shares_the_roundings_of_both_factors():
    assert refused(STATES, of_chunks, "one-token", "huge-steps", "large-steps") == {}
    larger = refused(STATES, lambda i: of_chunks(i, change=_slightly), "one-token")
    assert "times expected throughout" in larger["one-token"]
    fades = "state-only-fades"
    assert refused(STATES, of_chunks, fades) == {}
    assert "new_state" in refused(STATES, lambda i: of_chunks(i, 1.001), fades)[fades]


def _slightly(state: torch.Tensor) -> torch.Tensor:
    return state * 1.0005


def of_gates(i: Inputs, units: float = 0.0, change: Change | None = None) -> Any:
    """Return a delta net's states, in float64 but for gates off by units of 2^-25."""
    wide = {n: t.double() for n, t in i.items() if n != "cu_seqlens"}
    steps = torch.nn.functional.softplus(wide["a"] + wide["dt_bias"])
    gates = torch.exp(-wide["A_log"].exp()[:, None] * steps) * (1 + units * 2.0**-25)
    q, k = (
        wide[n] / (wide[n].square().sum(-1, keepdim=True) + 1e-6).sqrt() for n in "qk"
    )
    beta, state = torch.sigmoid(wide["b"]), wide["state"].clone()
    output = torch.zeros_like(wide["v"])
    for row, (start, end) in enumerate(pairwise(i["cu_seqlens"].tolist())):
        for t in range(start, end):
            faded = state[row] * gates[t][:, None]
            recalled = torch.einsum("hvk,hk->hv", faded, k[t])
            update = beta[t][:, None] * (wide["v"][t] - recalled)
            state[row] = faded + update[:, :, None] * k[t][:, None]
            output[t] = torch.einsum("hvk,hk->hv", state[row], q[t])
    new = state.float()
    scaled = (output / q.shape[-1] ** 0.5).bfloat16()
    return scaled, new if change is None else change(new)


def test_gates_that_are_rounded_one_way_add_up():
    # an H100's are off by 0.44 units: 1.01e-6 of the state
    for units in (0.44, 1.0, -1.0):
        assert refused(GATES, lambda i, u=units: of_gates(i, u), "long-memory") == {}
    for units in (80.0, -80.0):
        why = refused(GATES, lambda i, u=units: of_gates(i, u), "long-memory")
        assert "new_state: actual is" in why["long-memory"]
    assert refused(GATES, lambda i: of_gates(i, change=_larger), "long-memory")


def attended(
    i: Inputs, rounds: Callable[[torch.Tensor], torch.Tensor], twice: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attend by blocks of 128 keys, last first, with rounded weights, as FlashInfer does.

    fa3 adds weights before they are rounded; fa2 after, and where `twice` the output is
    rounded before it is multiplied by v_scale as well.
    """
    q, k, v = (i[name].float() for name in ("q", "k_cache", "v_cache"))
    table, heads = input_table(i), k.shape[2]
    scales = [torch.as_tensor(i.get(f"{n}_scale", 1.0)).flatten() for n in "qkv"]
    of_q, of_k, of_v = (
        s.expand(n) for s, n in zip(scales, (q.shape[1], heads, heads), strict=True)
    )
    ratio = q.shape[1] // heads
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf)
    lengths, slots = kv_lengths(table, k.shape[1]), token_slots(table, k.shape[1])
    for row, (length, slot) in enumerate(zip(lengths, slots, strict=True)):
        keys = k.flatten(0, 1)[slot].transpose(0, 1).repeat_interleave(ratio, 0)
        values = v.flatten(0, 1)[slot].transpose(0, 1).repeat_interleave(ratio, 0)
        of_keys = of_q * of_k.repeat_interleave(ratio) * i["sm_scale"] / math.log(2.0)
        bits = torch.einsum("hd,hnd->hn", q[row].double(), keys.double())
        bits = (bits * of_keys[:, None]).float()
        peak, total = torch.full((len(bits), 1), -math.inf), torch.zeros(len(bits), 1)
        mean = torch.zeros_like(q[row])
        for start in range((length - 1) // 128 * 128, -1, -128):
            some = bits[:, start : start + 128]
            higher = torch.maximum(peak, some.amax(1, keepdim=True))
            kept, weights = torch.exp2(peak - higher), torch.exp2(some - higher)
            rounded = rounds(weights)
            added = rounded if twice else weights
            total = total * kept + added.sum(1, keepdim=True)
            part = torch.einsum("hn,hnd->hd", rounded, values[:, start : start + 128])
            mean, peak = mean * kept + part, higher
        of_head = of_v.repeat_interleave(ratio)[:, None]
        mean = mean / total
        output[row] = (mean.bfloat16().float() if twice else mean) * of_head
        lse[row] = (torch.log2(total) + peak)[:, 0]
    return output.bfloat16(), lse


def _in_bfloat16(weights: torch.Tensor) -> torch.Tensor:
    return weights.bfloat16().float()


def _in_8_bits(weights: torch.Tensor) -> torch.Tensor:
    return (weights * 448.0).to(torch.float8_e4m3fn).float() / 448.0


def _in_7_bits(weights: torch.Tensor) -> torch.Tensor:
    return (weights * 448.0).to(torch.float8_e5m2).float() / 448.0


def without_subnormals(i: Inputs, *names: str) -> Inputs:
    few = {
        n: i[n].float().masked_fill(i[n].float().abs() < 2.0**-6, 0.0) for n in names
    }
    return {**i, **{n: v.to(i[n].dtype) for n, v in few.items()}}


@pytest.mark.parametrize(
    ("name", "rounds", "twice"),
    [(CACHE_OF_8_BITS, _in_bfloat16, True), (ALL_OF_8_BITS, _in_8_bits, False)],
)
def test_codes_as_much_smaller_as_their_scale_is_larger_leave_bounds(
    name, rounds, twice
):
    assert refused(name, lambda i: attended(i, rounds, twice), CODES) == {}
    for cache in ("k_cache", "v_cache"):
        why = refused(
            name,
            lambda i, c=cache: attended(without_subnormals(i, c), rounds, twice),
            CODES,
        )
        assert "mismatched" in why[CODES]
    factor = refused(
        name,
        lambda i: attended({**i, "v_scale": i["v_scale"] * 1.003}, _as_they_are, False),
        CODES,
    )
    assert "times expected" in factor[CODES]


def _as_they_are(weights: torch.Tensor) -> torch.Tensor:
    return weights


def test_weights_in_8_bits_are_off_by_their_share_of_a_small_output_too():
    def asked(rounds: Change, change: Change | None = None) -> dict[str, str]:
        def run(i: Inputs) -> Any:
            output, lse = attended(i, rounds, False)
            return output if change is None else change(output), lse

        # one sequence of more than 16,384 keys: outputs of 0.02
        return refused(ALL_OF_8_BITS, run, "lengths 2")

    assert asked(_in_8_bits) == {}
    assert asked(_in_7_bits)
    assert asked(_as_they_are, _larger)
    assert asked(_in_8_bits, torch.zeros_like)


@pytest.mark.parametrize("name", [CACHE_OF_8_BITS, ALL_OF_8_BITS])
def test_lone_keys_are_above_what_kernels_begin_a_largest_logit_at(name):
    asked = rounds_of(loaded(name), [], Path(), CPU, _SECRET)
    ((_, (one,)),) = asked.of_case("limits: lone-keys").rounds
    slots = token_slots(input_table(one.inputs), one.inputs["k_cache"].shape[1])
    q, keys = one.inputs["q"].float(), one.inputs["k_cache"].float().flatten(0, 1)
    key = keys[slots[0]].repeat_interleave(q.shape[1] // keys.shape[1], 1)
    products = (q * key).sum(-1)
    assert products.isfinite().all()
    # math::inf of FlashInfer's math.cuh, before sm_scale and the scales of codes
    assert products.min() > -5e4
    assert one.expected[1].min() < -100.0 / math.log(2.0)
