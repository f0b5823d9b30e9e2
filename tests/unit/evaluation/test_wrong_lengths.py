"""Solutions that are right for the lengths of cases alone are refused, with the lengths."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation import rounds
from generator.evaluation.drawn_lengths import drawn_lengths, past_limits
from generator.evaluation.rounds import EvaluationRounds, Round, rounds_of
from generator.rules.subjects import subject_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

DECODE = "gqa_paged_decode_h32_kv8_d128_ps64"
PREFILL = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
GEMM = "gemm_n4096_k4096"
RETURNS_LSE = "gqa_paged_decode_return_lse_h16_kv2_d128_ps1"
Run = Callable[..., Any]


@cache
def asked(name: str, secret: int = 5) -> EvaluationRounds:
    return rounds_of(loaded(name), [], Path(), CPU, secret)


@cache
def reference(name: str) -> Run:
    return run_of(loaded(name).reference)


def verdict(name: str, run: Run) -> str:
    try:
        UntilWrong(InProcess(run), asked(name), CPU, False, 5).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


def no_keys_beyond(most: int) -> Run:
    """Return a decode that reads the first pages alone."""

    def run(q, k_cache, v_cache, indptr, indices, last, sm_scale):
        size = k_cache.shape[1]
        counts = (indptr[1:] - indptr[:-1]).clamp(max=most // size)
        last = torch.where(indptr[1:] - indptr[:-1] > most // size, size, last)
        kept = [
            indices[start : start + count]
            for start, count in zip(indptr.tolist(), counts.tolist(), strict=False)
        ]
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(indptr.dtype)
        return reference(DECODE)(
            q,
            k_cache,
            v_cache,
            starts,
            torch.cat(kept),
            last.to(indptr.dtype),
            sm_scale,
        )

    return run


def pages_modulo_256(q, k_cache, v_cache, indptr, indices, last, sm_scale):
    return reference(DECODE)(q, k_cache, v_cache, indptr, indices % 256, last, sm_scale)


def own_scale_of_long_sequences(q, k, v, indptr, indices, last, sm_scale):
    is_long = int((indptr[1:] - indptr[:-1]).max()) > 16
    scale = sm_scale * 1.01 if is_long else sm_scale
    return reference(DECODE)(q, k, v, indptr, indices, last, scale)


def nothing_without_a_page(q, k, v, indptr, indices, last, sm_scale):
    if not len(indices):
        return torch.zeros_like(q), q.new_zeros(q.shape[:2], dtype=torch.float32)
    return reference(DECODE)(q, k, v, indptr, indices, last, sm_scale)


def only_published(a, b):
    out = reference(GEMM)(a, b)
    return out if len(a) in (1, 7, 65, 2048) else out * 1.5


def wrong_by_residue(residue: int, of: int) -> Run:
    def run(a, b):
        out = reference(GEMM)(a, b)
        if len(a) % of == residue:
            out[-1] = 0
        return out

    return run


RIGHT_WHERE_PUBLISHED: tuple[tuple[str, Run], ...] = (
    (DECODE, no_keys_beyond(1024)),
    (DECODE, no_keys_beyond(2048)),
    (DECODE, no_keys_beyond(16_384)),
    (DECODE, pages_modulo_256),
    (DECODE, own_scale_of_long_sequences),
    (GEMM, only_published),
    *((GEMM, wrong_by_residue(residue, 16)) for residue in (0, 3, 9, 15)),
)


@pytest.mark.parametrize(("name", "run"), RIGHT_WHERE_PUBLISHED)
def test_what_is_right_for_published_lengths_alone_is_refused(name: str, run: Run):
    reason = verdict(name, run)
    assert reason.startswith("lengths "), reason


@pytest.mark.parametrize("name", ["store_kv_kv1_d128", "store_mla_kv_ckv512_kpe64"])
def test_slots_of_eight_bits_are_refused(name: str):
    def run(*given):
        return reference(name)(*given[:-1], given[-1] % 256)

    assert [*subject_of(loaded(name)).interface.input_specs][-1] == "slot_mapping"
    assert verdict(name, run).startswith(("lengths ", "limits: past-limits: "))


@pytest.mark.parametrize(
    "name",
    [
        "gemma_qk_rmsnorm_rope_eps_1em6_d128_rd128",
        "gemma_qk_rmsnorm_rope_store_eps_1em6_h16_kv2_d256_rd64",
        "store_kv_hnd_kv8_d128_ps16",
    ],
)
@pytest.mark.parametrize("residue", [0, 3, 7, 10, 13])
def test_numbers_of_tokens_beside_other_axes_are_drawn(name: str, residue: int):
    inputs = [*subject_of(loaded(name)).interface.input_specs]

    def run(*arguments):
        tokens = arguments[0].shape[0]
        if tokens % 16 == residue and tokens > 1:
            # the first token's rows for the last one's
            last = torch.arange(tokens)
            last[-1] = 0
            arguments = tuple(
                v[last] if n in ("q", "k", "v") else v
                for n, v in zip(inputs, arguments, strict=True)
            )
        return reference(name)(*arguments)

    assert verdict(name, reference(name)) == ""
    assert verdict(name, run)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_far_scales_of_queries_are_no_case_past_a_limit(device: str):
    subject = subject_of(loaded("gqa_single_decode_h32_kv8_d128"))
    cases = subject.op.cases(subject.definition)
    assert any(case.moved for case in cases)
    past = past_limits(
        subject.definition, cases, random.Random(5), torch.device(device)
    )
    assert [case.name for case in past] == ["past-limits"]


def test_a_batch_of_empty_sequences_alone_is_asked():
    assert verdict(DECODE, nothing_without_a_page).startswith("no-keys: ")


def overflows_at_fourth_keys(q, k, v, indptr, indices, last, sm_scale):
    """Take the largest logit of three keys of four for that of all, as float32 does."""
    out, lse = reference(DECODE)(q, k, v, indptr, indices, last, sm_scale)
    for number, (begin, end) in enumerate(pairwise(indptr.tolist())):
        if begin == end:
            continue
        length = (end - begin - 1) * k.shape[1] + int(last[number])
        keys = k[indices[begin:end]].flatten(0, 1)[:length].float()
        of_heads = q[number].float().unflatten(0, (keys.shape[1], -1))
        bits = (
            torch.einsum("hgd,khd->hgk", of_heads, keys) * sm_scale * math.log2(math.e)
        )
        is_fourth = torch.arange(length) % 4 == 3
        if bool(is_fourth.any()):
            most = bits[..., is_fourth].amax(-1) - bits[..., ~is_fourth].amax(-1)
            out[number][(most > 128.0).flatten()] = math.nan
    return out, lse


@pytest.mark.parametrize("secret", [5, 6, 7])
def test_a_largest_logit_of_some_keys_is_refused(secret: int):
    few = asked(DECODE, secret).of_case("extreme-logits-of-few")
    judge = UntilWrong(InProcess(overflows_at_fourth_keys), few, CPU, False, secret)
    with pytest.raises(Wrong) as wrong:
        judge.judge()
    assert "NaN" in wrong.value.reason


# the last one has a flag that asks for other outputs, which no solution is asked for
@pytest.mark.parametrize("name", [DECODE, GEMM, RETURNS_LSE])
def test_an_honest_reference_passes(name: str):
    assert verdict(name, reference(name)) == ""


def lengths(name: str, secret: int):
    subject = subject_of(loaded(name))
    known = subject.definition
    cases = drawn_lengths(known, subject.op.cases(known), random.Random(secret), CPU)
    return list(cases)


def test_rows_have_every_residue_of_16_and_more_than_a_thousand():
    for secret in range(20):
        rows = [case.axes["batch_size"] for case in lengths("rmsnorm_h4096", secret)]
        assert sorted(n % 16 for n in rows[:16]) == list(range(16))
        assert sorted((n - n % 16) // 16 % 8 for n in rows[:16]).count(0) in (1, 2, 3)
        assert max(rows[:16]) <= 128
        assert 1024 < rows[16] < 1152
    assert lengths("rmsnorm_h4096", 1) != lengths("rmsnorm_h4096", 2)


def test_sequences_have_every_residue_and_pass_the_limits_of_kernels():
    for name in (DECODE, PREFILL):
        several, middle, longest = lengths(name, 3)
        assert sorted(n % 16 for n in several.params["kv_lens"]) == list(range(16))
        assert min(middle.params["kv_lens"]) > 1024
        assert max(middle.params["kv_lens"]) > 4096
        assert longest.params["kv_lens"][0] > 16_384
        assert longest.axes["num_pages"] > 256


def test_large_weights_leave_two_lengths():
    assert len(lengths("gemm_bf16_n128256_k3072", 1)) == 2


def test_rows_are_numbered_beyond_16_bits_on_a_gpu() -> None:
    name = "rmsnorm_h128"
    subject = subject_of(loaded(name))
    cases = subject.op.cases(subject.definition)
    (case,) = (
        case
        for case in past_limits(
            subject.definition, cases, random.Random(5), torch.device("cuda")
        )
        if case.repeats and case.axes["batch_size"] < 1 << 17
    )
    assert case.axes["batch_size"] > 1 << 16
    one = Round(subject, case, 7, CPU)
    far = EvaluationRounds(subject, [("far", [one])], [], [])

    def refused(run: Run) -> bool:
        try:
            UntilWrong(InProcess(run), far, CPU, False, 5).judge()
        except Wrong:
            return True
        return False

    def of_16_bits(hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(len(hidden_states)).to(torch.int16).long()
        return reference(name)(hidden_states, weight)[rows % len(hidden_states)]

    assert not refused(reference(name))
    assert refused(of_16_bits)
    # one row alone is another's: the last
    assert refused(lambda x, w: reference(name)(torch.cat([x[:-1], x[:1]]), w))


def test_each_of_many_rows_is_compared_though_they_repeat() -> None:
    name = "rmsnorm_h128"
    subject = subject_of(loaded(name))
    every = subject.op.cases(subject.definition)
    cases = drawn_lengths(subject.definition, every, random.Random(6), CPU)
    (many,) = (case for case in cases if case.repeats)
    length = many.axes["batch_size"]
    assert length > 1024
    seen = []

    def oracle(definition, inputs):
        seen.append(len(inputs["hidden_states"]))
        return subject.op.oracle(definition, inputs)

    watched = replace(subject, op=replace(subject.op, oracle=oracle))

    def wrong_at(row: int | None) -> str:
        def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            out = reference(name)(x, weight)
            if row is not None:
                out[row, -1] *= 1.02
            return out

        one = Round(watched, many, 7, CPU)
        alone = EvaluationRounds(watched, [("many", [one])], [], [])
        try:
            UntilWrong(InProcess(run), alone, CPU, False, 5).judge()
        except Wrong as wrong:
            return wrong.reason
        return ""

    assert wrong_at(None) == ""
    assert seen == [61]
    for row in (0, 60, 61, 1023, 1024, length - 1):
        assert f"({row}, 127)" in wrong_at(row)


def test_what_does_not_fit_is_left_out_with_its_relations(monkeypatch) -> None:
    monkeypatch.setattr(rounds, "shortage", lambda *_: "needs more than there is")
    of_nothing = rounds_of(loaded(DECODE), [], Path(), CPU, 5)
    assert (of_nothing.rounds, of_nothing.relations) == ([], [])
    said = [why for why in of_nothing.left_out if "needs more" in why]
    assert any(why.startswith("metamorphic:") for why in said)
