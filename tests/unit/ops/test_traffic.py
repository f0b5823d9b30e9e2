"""Steps of a server under load: lengths, what fits, and what the dataset has of it."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from generator.ops.attention import workloads
from generator.ops.family import every_spec
from generator.ops.workloads.lines import workload_lines
from generator.ops.workloads.structure import BLOB_LIMIT, MEMORY_LIMIT
from generator.ops.workloads.traffic import (
    AGENT,
    CHAT,
    CHUNK,
    CONTEXT,
    CONVERSATION,
    LONG,
    Step,
    _log_normal,
    decode_steps,
    prefill_steps,
)
from generator.results.evidence import (
    DefinitionEvidence,
    Run,
    SourceEvidence,
    record,
)
from tests.builders import ROOT
from tools import workload_lengths

SPECS = {spec.name: spec for spec in every_spec()}
DECODE = "gqa_paged_decode_h32_kv8_d128_ps64"
PREFILL = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"


def steps(name: str) -> dict[str, Step]:
    """Return the steps of a definition by their names."""
    return {one.uuid: one for one in workloads.traffic(SPECS[name])}


def test_the_same_seed_gives_the_same_steps() -> None:
    assert [*decode_steps("a", 10**6)] == [*decode_steps("a", 10**6)]
    assert [*decode_steps("a", 10**6)] != [*decode_steps("b", 10**6)]
    assert [*prefill_steps("a", 32)] == [*prefill_steps("a", 32)]


def test_decode_has_a_long_context_and_large_batches() -> None:
    found = steps(DECODE)
    assert found["one long context"].kv_lens == (CONTEXT,)
    assert {len(one.kv_lens) for one in found.values()} >= {1, 64, 128, 512}
    assert all(max(one.kv_lens) <= CONTEXT for one in found.values())
    assert all(min(one.kv_lens) >= 1 for one in found.values())


def test_lengths_have_the_published_means() -> None:
    import random

    rng = random.Random("means")
    for requests in (CONVERSATION, AGENT, CHAT):
        drawn = [_log_normal(rng, requests.prompt) for _ in range(40_000)]
        assert fmean(drawn) == pytest.approx(requests.prompt, rel=0.05)


@pytest.mark.parametrize("heads", [1, 5, 32, 128])
def test_prefill_is_a_chunk_whose_logits_fit(heads: int) -> None:
    found = {one.uuid: one for one in prefill_steps("some", heads)}
    assert sum(found["a chunk of agents"].q_lens) == CHUNK
    assert found["a long prompt's end"].kv_lens == (LONG,)
    for one in found.values():
        for q, kv in zip(one.q_lens, one.kv_lens, strict=True):
            assert 1 <= q <= min(kv, CHUNK)
            assert 4 * max(heads, 32) * q * kv <= MEMORY_LIMIT


def test_agents_share_the_pages_of_their_prefix() -> None:
    import random

    spec, step = SPECS[DECODE], steps(DECODE)["agents"]
    made = workloads.paged(spec, step, random.Random(0))
    starts, pages = made.tensors["kv_indptr"], made.tensors["kv_indices"]
    shared = step.shared // 64
    first = pages[:shared]
    assert shared > 70
    for start in map(int, starts[:-1]):
        assert pages[start : start + shared] == first
    own = [n for a in map(int, starts[:-1]) for n in pages[a + shared : a + shared + 1]]
    assert len({*own}) == len(own)


def test_blobs_stay_small_and_no_workload_of_traffic_is_called_captured() -> None:
    for name in (DECODE, PREFILL, "gqa_ragged_prefill_causal_h32_kv8_d128"):
        captured = {line["uuid"] for line in captured_lines(name)}
        lines = workload_lines(SPECS[name])
        identities = [json.loads(line.text)["workload"]["uuid"] for line in lines]
        assert len({*identities}) == len(lines) > 8
        assert all(len(line.blob) <= BLOB_LIMIT for line in lines)
        assert not {*identities[8:]} & captured


def captured_lines(name: str) -> list[dict[str, str]]:
    """Return the captured workloads of a definition that has some."""
    op_type = SPECS[name].op_type
    folder = ROOT / "generator/ops/op_types" / op_type / "captured.json"
    table = json.loads(folder.read_text("utf-8")).get(name, {"lines": []})
    return [
        dict(zip(table["columns"], line, strict=True))
        for line in table.get("lines", ())
    ]


def test_the_dataset_has_long_workloads_and_queries_that_see_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert workload_lengths.main([]) == 0
    long, live = capsys.readouterr().out.splitlines()[-2:]
    assert long.startswith("ok: ")
    assert live.startswith("ok: ")


def test_every_op_type_of_attention_is_measured() -> None:
    attention = {
        spec.op_type
        for spec in SPECS.values()
        # gradients are of training, which has no cache
        if "sm_scale" in spec.inputs and not spec.op_type.endswith("_backward")
    }
    assert attention == {*workload_lengths.OP_TYPES}


def test_a_dataset_without_them_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, suffix, text in (
        ("definitions", "json", '{"axes": {}}'),
        ("workloads", "jsonl", '{"workload": {"axes": {"kv_len": 7}, "inputs": {}}}\n'),
    ):
        path = tmp_path / folder / "gqa_single" / f"one.{suffix}"
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
    assert workload_lengths.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "FAILED: 0 of 1 definitions (0%)" in said
    assert "FAILED: 0 of 1 (0%) ran live at such a workload" in said


@pytest.mark.parametrize(
    ("source", "verdict", "is_counted"),
    [
        ("flashinfer/fa2", "PASSED", True),
        ("flashinfer/fa2", "FAILED", False),
        ("recorded:flashinfer/fa2", "PASSED", False),
        ("oracle", "PASSED", False),
    ],
)
def test_only_a_live_kernel_that_agreed_ran_live(
    source: str, verdict: str, is_counted: bool, tmp_path: Path
) -> None:
    evidence = SourceEvidence(verdict, compared={"workload": ("w",), "small": ("s",)})
    entry = DefinitionEvidence("0" * 64, {source: evidence})
    record(tmp_path, [Run("2026-11-27", {"device": "cuda"}, {"name": entry})])
    expected = {("name", "0" * 64): {"w"}} if is_counted else {}
    assert workload_lengths.ran_live(tmp_path) == expected
