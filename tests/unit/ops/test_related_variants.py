"""The relations of windows, caps, sinks, masks and layouts hold, and break for faults."""

from __future__ import annotations

import pytest

from generator.ops.domain_mutants import domain_mutants
from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.gqa_ragged import op as gqa_ragged
from generator.ops.op_types.page_append import op as page_append
from tests.builders import sized
from tests.unit.ops.related import red, run_named, verdicts

SMALL = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 16}
FEWER = {**SMALL, "num_qo_heads": 2}
PAGED = {**SMALL, "page_size": 8}
WINDOW = "gqa_paged_decode_w1023_h32_kv16_d128_ps64"
PLAIN = "gqa_paged_decode_h32_kv8_d128_ps64"
PREFILL = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
ALL_KEYS = "gqa_paged_prefill_noncausal_h32_kv8_d128_ps64"
MASK = "gqa_paged_prefill_custom_mask_h32_kv8_d128_ps64"
HND = "gqa_paged_decode_hnd_h32_kv8_d128_ps64"
CODES = "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64"
SINKS = "gqa_ragged_prefill_causal_sink_h64_kv8_d64"
SINKS_IN_WINDOW = "gqa_ragged_prefill_causal_sink_w127_h64_kv8_d64"
CAP = "gqa_ragged_prefill_causal_cap50_h32_kv16_d128"
CAP_IN_WINDOW = "gqa_ragged_prefill_causal_cap50_w4095_h32_kv16_d128"
RAGGED = "gqa_ragged_prefill_causal_h32_kv8_d64"


def op_of(name):
    if name.startswith("append"):
        return page_append
    return gqa_ragged if "ragged" in name else gqa_paged


def small(name, axes=SMALL):
    paged = PAGED if axes is SMALL else {**axes, "page_size": 8}
    return sized(name, **(axes if op_of(name) is gqa_ragged else paged))


def broken(name, peer, fault=""):
    """Return the relations that a reference breaks, with a fault of the audit's list.

    `peer` is a name, or a name and its axes.
    """
    definition, run = small(name), run_named(name)
    if fault:
        (mutant,) = (m for m in domain_mutants(definition) if m.name == fault)
        run = mutant.wrap(run)
    of = peer if isinstance(peer, tuple) else (peer,)
    other = (small(*of), run_named(of[0]))
    return red(op_of(name), definition, run, other=other)


@pytest.mark.parametrize(
    ("name", "fault", "relation", "peer"),
    [
        (WINDOW, "window one key too wide", "window-is-all-that-counts", PLAIN),
        (WINDOW, "scale doubled", "long-window-is-none", PLAIN),
        (SINKS_IN_WINDOW, "sinks missing", "long-window-is-none", SINKS),
        (CAP, "soft cap before the scale", "cap-of-small-logits", RAGGED),
        (SINKS, "sinks missing in the LSE", "sink-takes-its-share", RAGGED),
        (SINKS, "sinks in base 2", "sink-takes-its-share", RAGGED),
        (SINKS, "sinks of the next head", "sinks-of-one-head", RAGGED),
        (SINKS, "scale missing", "no-sink-is-plain", (RAGGED, FEWER)),
        (SINKS, "K taken for V", "no-sink-is-plain", (RAGGED, FEWER)),
        (MASK, "mask of the queries in reverse", "tril-is-causal", PREFILL),
        (MASK, "mask inverted", "ones-is-no-mask", ALL_KEYS),
        (HND, "pages read in layout NHD", "hnd-is-nhd", PLAIN),
        (CODES, "v_scale inverted", "dequantised-cache", PLAIN),
        (CODES, "k_scale applied twice", "scales-doubled", PLAIN),
    ],
)
def test_a_fault_breaks_the_relation_that_is_about_it(name, fault, relation, peer):
    assert broken(name, peer) == set()
    assert relation in broken(name, peer, fault)


def test_a_window_is_compared_with_the_same_attention_without_one():
    run = run_named(SINKS_IN_WINDOW)
    plain = (small(RAGGED), run_named(RAGGED))
    found = verdicts(gqa_ragged, small(SINKS_IN_WINDOW), run, peers={"plain": plain})
    assert "long-window-is-none" not in found
    found = verdicts(gqa_ragged, small(CAP), run_named(CAP), peers={"plain": plain})
    assert "cap-of-small-logits" in found
    capped = (small(CAP), run_named(CAP))
    listed = gqa_ragged.OP.relations(small(CAP_IN_WINDOW))
    (relation,) = (r for r in listed if r.name == "long-window-is-none")
    assert relation.peer(capped[0])
    assert not relation.peer(plain[0])


def test_a_sink_of_minus_infinity_is_not_compared_with_more_heads():
    more = (small(RAGGED, {**SMALL, "num_qo_heads": 8}), run_named(RAGGED))
    found = verdicts(gqa_ragged, small(SINKS), run_named(SINKS), peers={"more": more})
    assert "no-sink-is-plain" not in found


def test_a_sink_that_always_counts_breaks_what_knows_no_sink():
    run, place = run_named(SINKS), list(small(SINKS).interface.inputs).index("sinks")

    def clamped(*given):
        sinks = given[place].clamp(min=-1.0)
        return run(*given[:place], sinks, *given[place + 1 :])

    plain = (small(RAGGED, FEWER), run_named(RAGGED))
    assert "no-sink-is-plain" in red(gqa_ragged, small(SINKS), clamped, plain=plain)


APPEND = "append_paged_kv_cache_kv8_d128_ps64"
APPEND_HND = "append_paged_kv_cache_hnd_kv8_d128_ps64"
APPEND_AXES = {"num_kv_heads": 2, "head_dim": 16}


@pytest.mark.parametrize(
    ("name", "fault", "relation"),
    [
        (APPEND, "one slot too near", "append-then-attend"),
        (APPEND, "last row not written", "append-then-attend"),
        (APPEND_HND, "pages in the other layout", "transposed-is-nhd"),
    ],
)
def test_a_fault_of_appending_breaks_what_reads_the_cache(name, fault, relation):
    definition, run = sized(name, **APPEND_AXES), run_named(name)
    nhd = (sized(APPEND, **APPEND_AXES), run_named(APPEND))
    assert red(page_append, definition, run, nhd=nhd) == set()
    (mutant,) = (m for m in domain_mutants(definition) if m.name == fault)
    assert relation in red(page_append, definition, mutant.wrap(run), nhd=nhd)
