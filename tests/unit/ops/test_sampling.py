"""sampling: faults planted in the references, the power of the cases, the adapters."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from generator.ops.op_types.sampling import op as sampling
from generator.ops.op_types.sampling.law import distinct_rows
from kernel_judge.comparison.policy import Question
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)

KINDS = ("top_k", "top_p", "top_k_top_p")
# what is drawn depends on the case alone; a small vocabulary makes it cheap
DEFINITIONS = {
    kind: sized(f"{kind}_sampling_from_probs_v128256", vocab_size=2048)
    for kind in KINDS
}
REFERENCES = {
    kind: loaded(f"{kind}_sampling_from_probs_v128256").reference for kind in KINDS
}
K, P, BOTH = KINDS
MASKED = "weights.masked_fill(~kept, 0.0)"
SHORT = "weights = weights.masked_fill(rank >= k.unsqueeze(1), 0.0)"
ENOUGH = "bool((values.sum(dim=1) >= top_p).all())"
RETURN = "return tokens.gather(1, drawn).squeeze(1)"
# fault: the kind of the reference, the text and what replaces it
FAULTS = {
    "k ignored": (
        K,
        SHORT,
        "weights, tokens = probs, torch.arange(vocab_size).expand_as(probs)",
    ),
    "k = 0 as argmax": (K, "where(top_k > 0, top_k, vocab_size)", "clamp(top_k, 1)"),
    "uniform over the k": (K, "nomial(weights, 1)", "nomial(weights.sign(), 1)"),
    "impossible tokens": (K, "nomial(weights, 1)", "nomial(weights + 0.01, 1)"),
    "k in int32": (K, RETURN, "return tokens.gather(1, drawn).squeeze(1).int()"),
    "p reached and not crossed": (P, "before < top_p", "before <= top_p"),
    "unsorted": (
        P,
        "most_probable(probs.float(), top_p)",
        "probs, torch.arange(probs.shape[1]).expand_as(probs)",
    ),
    "p <= 0 ignored": (P, "before < top_p.", "before < top_p.where(top_p > 0, 1.0)."),
    "uniform over the nucleus": (P, MASKED, f"{MASKED}.sign()"),
    "argmax of the nucleus": (
        P,
        f"torch.multinomial({MASKED}, 1)",
        "weights.argmax(1, True)",
    ),
    "p in int32": (P, RETURN, "return tokens.gather(1, drawn).squeeze(1).int()"),
    "p before k": (
        BOTH,
        SHORT,
        "top_p = (top_p * weights.sum(dim=1)) / weights[:, :1].sum(dim=1).clamp(min=1)",
    ),
    "k forgotten": (BOTH, SHORT, "pass"),
    "both uniform": (BOTH, MASKED, f"{MASKED}.sign()"),
    "both p <= 0 ignored": (
        BOTH,
        "before < top_p.",
        "before < top_p.where(top_p > 0, 1.0).",
    ),
    "k of bfloat16": (K, "probs.float()", "probs.bfloat16().float()"),
    "k of float16": (K, "probs.float()", "probs.half().float()"),
    "p of bfloat16": (P, "(probs.float()", "(probs.bfloat16().float()"),
    "both of bfloat16": (BOTH, "probs.float()", "probs.bfloat16().float()"),
    "both: p reached and not crossed": (BOTH, "before < top_p", "before <= top_p"),
    "both: the kept in bfloat16": (
        BOTH,
        "weights.sum(dim=1, keepdim=True)",
        "weights.sum(dim=1, keepdim=True).bfloat16()",
    ),
    "both: sums in bfloat16": (
        BOTH,
        "weights.cumsum(dim=1)",
        "weights.cumsum(dim=1).bfloat16()",
    ),
    "as many candidates as rows": (P, "probs.shape[1]", "probs.shape[0]"),
    "256 candidates": (P, f"count == vocab_size or {ENOUGH}", "True"),
    "256 candidates of more": (P, "count == vocab", "count != vocab"),
    "candidates for some rows": (P, "top_p).all()", "top_p).any()"),
}
# faults that no other cases are about
ALONE = {
    "k = 0 as argmax": ["k-keeps-all", "k-not-positive"],
    "p reached and not crossed": ["p-is-a-sum"],
    "p <= 0 ignored": ["argmax"],
    "both p <= 0 ignored": ["argmax"],
    "k of bfloat16": ["near-ties"],
    "k of float16": ["near-ties"],
    "p of bfloat16": ["near-ties"],
    "both of bfloat16": ["near-ties"],
    "both: p reached and not crossed": ["p-is-a-sum"],
    "both: the kept in bfloat16": ["p-near-a-sum"],
    "both: sums in bfloat16": ["p-is-a-sum", "p-near-a-sum"],
    "256 candidates": ["wide-and-narrow"],
    "candidates for some rows": ["wide-and-narrow"],
}


def rendered(kind, run=None):
    run = run_of(REFERENCES[kind]) if run is None else run
    return class_of(sampling, DEFINITIONS[kind], run)


def case_of(cls, name):
    (case,) = [c for c in cls.op.cases(cls.definition()) if c.name == name]
    return case


def judged(cls, name):
    """Return the record of a case against the oracle; AssertionError where it fails."""
    records = []
    cls().test_matches_oracle(
        trial_of(cls, case_of(cls, name)),
        lambda key, value: records.append(json.loads(value)),
    )
    return records[0]


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_sampler_passes_every_case(kind):
    sizes = ("small", "medium", "large")
    assert oracle_failures(rendered(kind), sizes) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_small_cases(name):
    kind, old, new = FAULTS[name]
    cls = rendered(kind, run_of(replaced(REFERENCES[kind], old, new)))
    failed = oracle_failures(cls, ("small",))
    assert failed
    if name in ALONE:
        assert failed == ALONE[name]


def test_candidates_counted_in_bfloat16_are_seen_in_many_draws():
    wrong = replaced(
        REFERENCES[P], "values.sum(dim=1)", "values.sum(dim=1).bfloat16().float()"
    )
    cls = rendered(P, run_of(wrong))
    assert oracle_failures(cls) == ["beyond-256"]
    with pytest.raises(
        AssertionError, match=r"of 6400 draws token \d+ was never drawn"
    ):
        judged(cls, "beyond-256")


def test_the_whole_vocabulary_is_enough_where_it_falls_short_of_p():
    # for ever becomes nine times, after which there are no candidates
    text = replaced(REFERENCES[P], "while True:", "for _ in range(9):")
    run = run_of(replaced(text, "vocab_size or bool", "vocab_size and bool"))
    assert judged(rendered(P, run_of(text)), "sum-below-one")["draws"] == 20
    assert judged(rendered(P, run), "whole-vocabulary")["draws"] == 25
    with pytest.raises(TypeError, match="unpack"):
        judged(rendered(P, run), "sum-below-one")


def moving(run, share, law, ranks):
    """Return a run that moves a share of a law's mass from one rank to another.

    `law` is the greatest probability of its rows.
    """

    def wrong(probs, *rest):
        samples = run(probs, *rest)
        values, tokens = probs.topk(32)
        own = values[:, 0] == law
        # of rows of the law all of what is kept lies above the even tail
        kept = values.where(values > 1e-3, 0).sum(dim=1)
        chance = share * kept / values[:, ranks[0]]
        moved = own & (samples == tokens[:, ranks[0]])
        moved &= torch.rand(len(samples)) < chance
        return torch.where(moved, tokens[:, ranks[1]], samples)

    return wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [(0, 1), (1, 0)])
def test_two_percent_are_seen_between_two_halves(kind, ranks):
    run = moving(run_of(REFERENCES[kind]), 0.02, 481 / 1024, ranks)
    with pytest.raises(AssertionError, match="of 49152 draws token"):
        judged(rendered(kind, run), "two-percent")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [(0, 1), (31, 30), (0, 31), (31, 0)])
def test_two_percent_are_seen_between_any_of_32_tokens(kind, ranks):
    run = moving(run_of(REFERENCES[kind]), 0.02, 38 / 1024, ranks)
    with pytest.raises(AssertionError, match="of 6272 draws token"):
        judged(rendered(kind, run), "batch")


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_that_moves_nothing_passes(kind):
    run = moving(run_of(REFERENCES[kind]), 0.0, 481 / 1024, (0, 1))
    assert judged(rendered(kind, run), "two-percent")["draws"] == 64 * 1536


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_tests_of_a_definition_are_green(kind):
    cls = rendered(kind)
    for case in cases_of(cls):
        test, trial = cls(), trial_of(cls, case)
        test.test_contract(trial)
        test.test_output_shape(trial)
        test.test_output_dtype(trial)
        test.test_determinism(trial)
        test.test_inputs_unmodified(trial)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab_size", [128256, 262208])
def test_probabilities_add_up_to_one(kind, vocab_size):
    definition = known(f"{kind}_sampling_from_probs_v{vocab_size}")
    for case in sampling.cases(definition):
        if case.size == "large":
            continue
        probs = sampling.make_inputs(definition, case, Stream(case.name))["probs"]
        sums = probs[:: len(probs) // 8 + 1].double().sum(dim=1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_each_token_at_a_boundary_weighs_enough_for_small_cases(kind):
    cls = rendered(kind)
    name = {K: "k-per-row", P: "p-per-row", BOTH: "p-of-the-kept"}[kind]
    trial = trial_of(cls, case_of(cls, name))
    laws = cls.op.oracle(trial.definition, trial.inputs)
    for number, law in enumerate(laws.laws):
        assert not len(law.free)
        draws = int((laws.row_law == number).sum()) * trial.case.params["calls"]
        last = float(law.weights[-1] / law.weights.sum())
        # a χ² of 45 has a p-value below 1e-6 / 12 at up to 6 degrees of freedom
        assert draws * last / (1 - last + 1e-9) > 45


def flashinfer(calls):
    """Return a stand-in for FlashInfer: int32, all of a tie, nothing for k, p <= 0."""

    def sample(name, probs, k, p, options):
        calls.append((name, options))
        kept = probs.clone()
        rising = probs.sort(dim=1).values
        if k is not None:
            # how many are not more probable
            rank = torch.searchsorted(rising, probs, right=True)
            kept = kept.where(probs.shape[1] - rank < k[:, None], 0)
            kept = kept / kept.sum(1, keepdim=True)
        if p is not None:
            rising = kept.sort(dim=1).values
            rank = torch.searchsorted(rising, kept, right=True)
            sums = torch.nn.functional.pad(rising.double().cumsum(1), (1, 0))
            ahead = sums[:, -1:] - sums.gather(1, rank)
            kept = kept.where(ahead < p[:, None], 0)
        empty = kept.nan_to_num(0).sum(1) == 0
        kept = kept.where(~empty[:, None], 1.0)
        drawn = torch.multinomial(kept, 1).squeeze(1)
        return drawn.where(~empty, 0).int()

    module = ModuleType("flashinfer.sampling")
    module.top_k_sampling_from_probs = lambda probs, k, **options: sample(
        K, probs, k, None, options
    )
    module.top_p_sampling_from_probs = lambda probs, p, **options: sample(
        P, probs, None, p, options
    )
    module.top_k_top_p_sampling_from_probs = lambda probs, k, p, **options: sample(
        BOTH, probs, k, p, options
    )
    return module


@pytest.mark.parametrize("kind", KINDS)
def test_a_sampler_that_keeps_all_of_a_tie_agrees(kind, monkeypatch):
    calls = []
    module = flashinfer(calls)
    parent = SimpleNamespace(sampling=module)
    monkeypatch.setitem(sys.modules, "flashinfer", parent)
    monkeypatch.setitem(sys.modules, "flashinfer.sampling", module)
    monkeypatch.setattr(
        "kernel_judge.checks.sources.backend_obstacle", lambda *arguments: None
    )
    definition = sized(f"{kind}_sampling_from_probs_v128256", vocab_size=1024)
    cls = class_of(sampling, definition, run_of(REFERENCES[kind]))
    backend = cls.subject().op.kernels["flashinfer"].backends(definition)[0]
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        cls().test_matches_flashinfer(trial, backend, ignore_property)
        order = {"filter_apply_order": "top_k_first"} if kind == BOTH else {}
        assert (
            calls == [(kind, {"deterministic": True, **order})] * case.params["calls"]
        )
        calls.clear()


def test_rows_that_flashinfer_does_not_filter_are_left_out():
    cls = rendered(BOTH)
    trial = trial_of(cls, case_of(cls, "argmax"))
    rows = sampling._no_filter_of_flashinfer(trial.inputs)
    assert rows.tolist() == (trial.inputs["top_p"] <= 0).tolist()
    assert 0 < int(rows.sum()) < len(rows)


def sampler_of_sglang(probs, ks, ps, min_ps, need_min_p, seed, positions, **options):
    """Stand in for SGLang's sampler: p of the whole mass, kept where it is reached."""
    assert options == {"return_filtered_probs": True}
    assert not need_min_p
    assert seed is None
    weights, tokens = probs.sort(dim=-1, descending=True)
    sums = weights.cumsum(-1)
    weights[torch.arange(weights.shape[1]) >= ks.view(-1, 1)] = 0.0
    weights[(sums - weights) > ps.view(-1, 1)] = 0.0
    return None, weights, tokens.int(), None


@pytest.mark.parametrize("kind", KINDS)
def test_sglang_is_asked_for_one_filter_at_a_time(kind, monkeypatch):
    layers = ModuleType("sglang.srt.layers")
    layers.sampler = SimpleNamespace(
        top_k_top_p_min_p_sampling_from_probs_torch=sampler_of_sglang
    )
    for name in ("sglang", "sglang.srt"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "sglang.srt.layers", layers)
    cls = rendered(kind)
    (backend,) = cls.subject().op.kernels["sglang"].backends(cls.definition())
    assert not backend.needs_cuda
    for case in cases_of(cls, ("small", "medium")):
        trial = trial_of(cls, case)
        given = trial.fresh_inputs()
        found = (
            cls.subject()
            .op.kernels["sglang"]
            .call(trial.definition, given, backend.name)
        )
        assert found.shape == given["probs"].shape
        question = Question(trial.definition, case, trial.inputs, "sglang/native")
        policy = cls.op.policies["samples"]
        # probabilities are asked for once, draws as often as the case says
        assert policy.calls(found, case) == 1
        assert policy.calls(trial.outputs[0], case) == case.params["calls"]
        result = policy.judge(trial.outputs[0], found, question)
        assert result.passed, result.findings


def test_equal_rows_are_of_one_kind():
    probs = torch.tensor([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    top_k = torch.tensor([1, 1, 1, 2], dtype=torch.int32)
    first, kinds = distinct_rows({"probs": probs, "top_k": top_k})
    assert first == [0, 2, 3]
    assert kinds.tolist() == [0, 0, 1, 2]
