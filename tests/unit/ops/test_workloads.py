"""The workload lines and their blobs, as a reader of the files finds them."""

from __future__ import annotations

import json
import math
import uuid
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.numpy import load_file

from generator.ops.family import every_spec
from generator.ops.workloads.captured import captured_lines
from generator.ops.workloads.choose import keys
from generator.ops.workloads.traffic import CHUNK
from kernel_judge.constraints import FUNCTIONS

ROOT = Path(__file__).resolve().parents[3]
SPECS = every_spec()
OWN = [spec for spec in SPECS if spec.captured_from == spec.name]
EVERY = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


def traces(spec):
    path = ROOT / "workloads" / spec.op_type / f"{spec.name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tensors_of(workload):
    """Return the structural tensors; they all lie in one file of the definition's."""
    declared = workload["inputs"].items()
    stored = {n: i for n, i in declared if i["type"] == "safetensors"}
    if not stored:
        return {}
    (path,) = {value["path"] for value in stored.values()}
    assert path.startswith("./blob/workloads/")
    assert path.endswith(f"_{workload['uuid'].replace('-', '')}.safetensors")
    # a query's list of chosen tokens takes 8 KiB
    limit = 260 if "sparse_indices" in stored else 64
    tensors = load_file(ROOT / path)
    if workload["axes"].get("seq_len") == CHUNK and "topk_ids" in stored:
        # a chunk of prefill: each expert of a token is a number and a weight of 4 bytes
        limit = 1 + 8 * CHUNK * tensors["topk_ids"].shape[1] // 1024
    assert (ROOT / path).stat().st_size <= limit * 1024
    assert list(stored) == [stored[name]["tensor_key"] for name in stored]
    assert set(stored) == set(tensors)
    return tensors


@EVERY
def test_lines_are_traces_without_solution(spec):
    lines = traces(spec)
    # two captured batches of a convolution are too long for its blobs; attention has up to
    # five of traffic
    assert 5 <= len(lines) <= 13
    assert len({line["workload"]["uuid"] for line in lines}) == len(lines)
    var_axes = [name for name, axis in spec.axes.items() if axis.value is None]
    for line in lines:
        assert list(line) == ["definition", "solution", "workload", "evaluation"]
        assert line["definition"] == spec.name
        assert line["solution"] is None
        assert line["evaluation"] is None
        workload = line["workload"]
        # Captured ones are kept as they were: some are written without dashes.
        assert uuid.UUID(workload["uuid"]).hex == workload["uuid"].replace("-", "")
        assert list(workload["axes"]) == var_axes
        assert all(type(value) is int for value in workload["axes"].values())
        assert list(workload["inputs"]) == list(spec.inputs)


# floats that random ones can't stand for: probabilities, weights and positive scales
MADE = (
    *("top_p", "min_p", "temperature", "topk_weights"),
    *("q_scale", "k_scale", "v_scale"),
)
# words of packed codes, megabytes of them: any bits are codes, and none is an index
PACKED = ("qweight", "qzeros", "bitmask")
# counts, masks, and numbers of which those outside a range mean that there is none
ANY_NUMBER = {
    ("logits", "prompt_counts"),
    ("logits", "output_counts"),
    ("moe_align", "topk_ids"),
    ("moe_exchange", "topk_ids"),
    ("moe_exchange", "sources"),
    ("linear_cross_entropy", "labels"),
    ("lora", "slots"),
    ("masked_attention", "mask"),
}


@EVERY
def test_inputs_are_given_as_their_kind_asks(spec):
    for line in traces(spec):
        for name, given in line["workload"]["inputs"].items():
            declared = spec.inputs[name]
            if declared.shape is None:
                assert given["type"] == "scalar"
                if name in ("sm_scale", "scale"):
                    assert math.isclose(given["value"], spec.sm_scale, rel_tol=1e-6)
            elif name in PACKED or (spec.op_type, name) in ANY_NUMBER:
                assert given == {"type": "random"}
            elif declared.dtype in ("int32", "int64", "bool") or name in MADE:
                lacks = (
                    f"{name} is drawn: make it, or list it in ANY_NUMBER if any will do"
                )
                assert given["type"] == "safetensors", lacks
            else:
                assert given == {"type": "random"}


@EVERY
def test_batches_are_no_uniform_sweep(spec):
    sizes = []
    for line in traces(spec):
        axes = line["workload"]["axes"]
        if "masked_m" in spec.inputs:
            # max_m is of places, in whole blocks: rows are counted in a tensor
            sizes.append(int(tensors_of(line["workload"])["masked_m"].sum()))
        else:
            sizes.append(sum(axes.values()))
    steps = {b - a for a, b in pairwise(sorted(sizes))}
    assert len(steps) > 1


@EVERY
def test_shapes_and_constraints_hold(spec):
    for line in traces(spec):
        tensors = tensors_of(line["workload"])
        axes = {name: axis.value for name, axis in spec.axes.items()}
        axes |= line["workload"]["axes"]
        for name, tensor in tensors.items():
            assert str(tensor.dtype) == spec.inputs[name].dtype
            assert list(tensor.shape) == [axes[a] for a in spec.inputs[name].shape]
        # what is random has the declared shape
        shaped = {
            name: SimpleNamespace(shape=[axes[a] for a in declared.shape or ()])
            for name, declared in spec.inputs.items()
        }
        scalars = {
            name: given["value"]
            for name, given in line["workload"]["inputs"].items()
            if given["type"] == "scalar"
        }
        made = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
        known = {**FUNCTIONS, **axes, **shaped, **scalars, **made}
        for constraint in spec.constraints:
            assert eval(constraint, {"__builtins__": {}, **known})


@EVERY
def test_structure_is_valid(spec):
    for line in traces(spec):
        tensors = tensors_of(line["workload"])
        if not tensors:
            continue
        axes = line["workload"]["axes"]
        for name in {"qo_indptr", "kv_indptr"} & set(tensors):
            values = tensors[name].tolist()
            assert values[0] == 0
            assert values == sorted(values)
        if "kv_indices" not in tensors:
            continue
        indices = tensors["kv_indices"].tolist()
        starts = tensors["kv_indptr"].tolist()
        rows = [indices[a:b] for a, b in pairwise(starts)]
        # all sequences begin with the pages of a shared prefix, and share no other
        again = len(indices) - len(set(indices))
        shared = again // max(len(rows) - 1, 1)
        assert all(row[:shared] == rows[0][:shared] for row in rows)
        assert again == shared * (len(rows) - 1)
        assert all(len({*row}) == len(row) for row in rows)
        assert all(0 <= index < axes["num_pages"] for index in indices)
        last = tensors.get("kv_last_page_len")
        if last is not None:
            assert last.min() >= 1
            page_size = axes.get("page_size") or spec.const("page_size")
            assert last.max() <= page_size


def test_positions_and_slots_are_within_what_they_index():
    padded = set()
    for spec in SPECS:
        for line in traces(spec):
            tensors, axes = tensors_of(line["workload"]), line["workload"]["axes"]
            if "positions" in tensors:
                assert tensors["positions"].min() >= 0
                if "max_seq_len" in axes:
                    assert tensors["positions"].max() < axes["max_seq_len"]
            if "state_batch_indices" in tensors:
                slots = tensors["state_batch_indices"]
                used = slots[slots != -1]
                assert len(set(used.tolist())) == len(used) > 0
                assert used.min() >= 0
                assert used.max() < axes["state_cache_size"]
                padded |= {spec.name} if len(used) < len(slots) else set()
    assert padded == {spec.name for spec in SPECS if spec.op_type == "mamba_ssu"}


def test_sparse_lists_and_block_tables_stay_within_the_cache():
    padded, left_out = set(), 0
    for spec in SPECS:
        if spec.op_type != "dsa_paged":
            continue
        for line in traces(spec):
            tensors, axes = tensors_of(line["workload"]), line["workload"]["axes"]
            page_size, topk = spec.const("page_size"), spec.const("topk")
            if "sparse_indices" in tensors:
                for row in tensors["sparse_indices"].tolist():
                    chosen = [n for n in row if n != -1]
                    assert 0 < len(chosen) == len(set(chosen))
                    assert all(0 <= n < axes["num_pages"] * page_size for n in chosen)
                    assert row[: len(chosen)] == chosen
                    padded |= {spec.name} if len(chosen) < topk else set()
                continue
            lens, table = tensors["seq_lens"].tolist(), tensors["block_table"]
            rows = zip(lens, table.tolist(), strict=True)
            pages = [p for n, row in rows for p in row[: -(-n // page_size)]]
            assert len(set(pages)) == len(pages)
            assert 0 <= table.min() <= table.max() < axes["num_pages"]
            assert 0 < min(lens) <= max(lens) <= axes["max_num_pages"] * page_size
            left_out += sum(n > topk for n in lens)
    assert len(padded) == 3
    assert left_out > 5


def test_pages_are_not_contiguous():
    (spec,) = [s for s in SPECS if s.name == "gqa_paged_decode_h32_kv8_d128_ps1"]
    blobs = [tensors_of(line["workload"]) for line in traces(spec)]
    longest = max((blob["kv_indices"].tolist() for blob in blobs), key=len)
    neighbours = sum(b == a + 1 for a, b in pairwise(longest))
    assert neighbours < len(longest) / 100


def test_every_query_of_a_paged_prefill_sees_a_key():
    for spec in SPECS:
        if "qo_indptr" not in spec.inputs or spec.op_type != "gqa_paged":
            continue
        for line in traces(spec):
            tensors = tensors_of(line["workload"])
            q_lens = tensors["qo_indptr"][1:] - tensors["qo_indptr"][:-1]
            pages = tensors["kv_indptr"][1:] - tensors["kv_indptr"][:-1]
            last = tensors.get("kv_last_page_len", 1)
            kv_lens = (pages - 1) * spec.const("page_size") + last
            least = 1 if "noncausal" in spec.name else q_lens
            assert bool(((kv_lens >= least) & (pages > 0)).all()), spec.name


@pytest.mark.parametrize("spec", OWN, ids=lambda spec: spec.name)
def test_captured_workloads_keep_axes_uuid_and_scale(spec):
    captured = {line.uuid: line for line in captured_lines(spec.op_type, spec.name)}
    for line in traces(spec):
        workload = line["workload"]
        original = captured.get(workload["uuid"])
        if original is None:
            # of the pass over a prefix: the keys of the queries are added
            assert "_prefill_causal_" in spec.name
            assert uuid.UUID(workload["uuid"]).version == 5
            continue
        assert original.axes.get("total_q", 0) <= keys(original.axes)
        kept = {name: workload["axes"].get(name) for name in original.axes}
        assert kept == dict(original.axes)
        if original.sm_scale is not None:
            assert workload["inputs"]["sm_scale"]["value"] == original.sm_scale


def test_blobs_together_are_small():
    sizes = [p.stat().st_size for p in (ROOT / "blob" / "workloads").glob("*/*/*")]
    # eleven of what was captured; page tables of long contexts and large batches; tokens
    # of embeddings, rows of experts, slots of caches; masks of drafts
    assert sum(sizes) <= 22 * 2**20
