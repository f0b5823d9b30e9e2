"""What the adapter of paged decode asks of FlashInfer's XQA, and where it may not."""

from __future__ import annotations

import sys
from itertools import pairwise
from types import ModuleType

import pytest
import torch

from generator.ops.attention import xqa
from generator.ops.op_types.gqa_paged import op as gqa_paged
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import same_bits
from tests.builders import known, sized

SMALL = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 16}
PLAIN = "gqa_paged_decode_h32_kv8_d128_ps64"


@pytest.fixture
def asked(monkeypatch):
    """Install a stand-in of the kernel; a list of what it is asked, by name."""
    calls = []

    def kernel(
        query, kv_cache, workspace_buffer, block_tables, seq_lens, *more, **named
    ):
        calls.append(
            {
                "q": query,
                "caches": kv_cache,
                "scratch": workspace_buffer,
                "pages": block_tables,
                "lengths": seq_lens,
                "longest": more,
                **named,
            }
        )
        return query

    module = ModuleType("flashinfer.decode")
    module.xqa_batch_decode_with_kv_cache = kernel
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.decode", module)
    monkeypatch.setattr(xqa, "_SCRATCH_BYTES", 64)
    xqa._scratch.cache_clear()
    yield calls
    xqa._scratch.cache_clear()


def ask(name, case_name="boundaries"):
    definition = sized(name, **SMALL)
    (case,) = (c for c in gqa_paged.cases(definition) if c.name == case_name)
    inputs = gqa_paged.make_inputs(definition, case, Stream(name))
    answer = gqa_paged.flashinfer_ground_truth(definition, dict(inputs), "xqa")
    return inputs, case, answer


@pytest.mark.parametrize("case_name", ["boundaries", "empty-sequence"])
def test_each_sequence_has_a_row_of_its_pages(asked, case_name):
    inputs, case, (output, lse) = ask(PLAIN, case_name)
    (given,) = asked
    assert lse is None
    assert same_bits(output, inputs["q"])
    lengths = case.params["kv_lens"]
    assert given["lengths"].dtype == given["pages"].dtype == torch.int32
    assert given["lengths"].tolist() == list(lengths)
    assert given["longest"] == (max(lengths),)
    starts, indices = inputs["kv_indptr"].tolist(), inputs["kv_indices"].tolist()
    for row, (start, end) in enumerate(pairwise(starts)):
        assert given["pages"][row, : end - start].tolist() == indices[start:end]
    assert same_bits(given["caches"][0], inputs["k_cache"])
    assert same_bits(given["caches"][1], inputs["v_cache"])
    assert given["scratch"].dtype == torch.uint8
    assert not given["scratch"].any()
    assert given["bmm1_scale"] == inputs["sm_scale"]
    options = [given[n] for n in ("bmm2_scale", "window_left", "sinks", "kv_layout")]
    assert options == [1.0, -1, None, "NHD"]


def test_a_window_and_sinks_are_passed_as_they_are(asked):
    inputs, _, _ = ask("gqa_paged_decode_sink_w127_h64_kv8_d64_ps64")
    (given,) = asked
    assert given["window_left"] == 127
    assert same_bits(given["sinks"], inputs["sinks"])


def test_pages_of_heads_stay_as_they_are(asked):
    inputs, _, _ = ask("gqa_paged_decode_hnd_h32_kv8_d128_ps64")
    (given,) = asked
    assert given["kv_layout"] == "HND"
    assert same_bits(given["caches"][0], inputs["k_cache"])


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        (PLAIN, ""),
        ("gqa_paged_decode_h32_kv4_d512_ps64", ""),
        (
            "gqa_paged_decode_h32_kv8_d128_ps1",
            "pages have 16, 32, 64 or 128 tokens, not 1",
        ),
        ("gqa_paged_decode_cap50_h16_kv8_d256_ps64", "logits have no cap"),
        ("gqa_paged_decode_alibi_h32_kv32_d128_ps64", "logits have no bias of ALiBi"),
        (
            "gqa_paged_decode_qe4m3_kve4m3_h32_kv8_d128_ps64",
            "queries are float16 or bfloat16, not float8_e4m3fn",
        ),
        (
            "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64",
            "beside keys of 8 bits it rounds queries to 8, which is another function",
        ),
    ],
)
def test_a_definition_without_a_kernel_is_told_the_limit(name, limit):
    found = {b.name: b for b in gqa_paged.flashinfer_backends(known(name))}["xqa"]
    assert (found.limit, found.lacks, found.min_sm) == (limit, ("lse",), 90)


@pytest.mark.parametrize(
    ("axes", "limit"),
    [
        ({"head_dim": 576}, "heads have a multiple of 16 up to 512 elements, not 576"),
        ({"head_dim": 40}, "heads have a multiple of 16 up to 512 elements, not 40"),
        (
            {"num_qo_heads": 66, "num_kv_heads": 2},
            "at most 32 query heads of 128 share a KV head, not 33",
        ),
        (
            {"num_qo_heads": 17, "num_kv_heads": 1, "head_dim": 512},
            "at most 16 query heads of 512 share a KV head, not 17",
        ),
    ],
)
def test_geometries_have_limits(axes, limit):
    assert xqa.xqa_backend(sized(PLAIN, **axes)).limit == limit


def test_prefill_has_no_such_kernel():
    names = [
        backend.name
        for backend in gqa_paged.flashinfer_backends(
            known("gqa_paged_prefill_causal_h32_kv8_d128_ps64")
        )
    ]
    assert "xqa" not in names
