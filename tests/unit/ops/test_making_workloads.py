"""How workloads are chosen and their structure is made up."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from generator.ops.attention.workloads import paged_structure, ragged_structure
from generator.ops.op_types.dsa_paged.workloads import chosen_structure, table_structure
from generator.ops.op_types.gdn.workloads import delta_structure, state_bytes
from generator.ops.op_types.mamba_ssu.workloads import pool_structure
from generator.ops.op_types.rope.workloads import rope_structure
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.choose import choose
from generator.ops.workloads.safetensors import vector_file
from generator.ops.workloads.structure import distinct, split


@given(
    parts=st.integers(1, 50),
    least=st.integers(0, 3),
    free=st.integers(0, 500),
    seed=st.integers(0, 9),
)
def test_split_keeps_the_total_and_the_least(parts, least, free, seed):
    lengths = split(parts * least + free, parts, least, random.Random(seed))
    assert len(lengths) == parts
    assert min(lengths) >= least
    assert sum(lengths) == parts * least + free


def test_split_of_too_little_is_an_error():
    with pytest.raises(ValueError, match="too small"):
        split(2, 3, 1, random.Random(0))


@given(limit=st.integers(1, 200), seed=st.integers(0, 9), data=st.data())
def test_distinct_numbers_are_distinct_and_below_the_limit(limit, seed, data):
    count = data.draw(st.integers(0, limit))
    drawn = distinct(count, limit, random.Random(seed))
    assert len(set(drawn)) == count
    assert all(0 <= number < limit for number in drawn)


def test_larger_pages_hold_the_same_tokens():
    axes = {"len_indptr": 5, "num_kv_indices": 1000, "num_pages": 1100}
    made = paged_structure(axes, 64, random.Random(1))
    indptr, last = made.tensors["kv_indptr"], made.tensors["kv_last_page_len"]
    pages = [b - a for a, b in pairwise(indptr)]
    tokens = sum((n - 1) * 64 + m for n, m in zip(pages, last, strict=True))
    assert tokens == 1000
    assert made.axes["num_kv_indices"] == sum(pages) <= made.axes["num_pages"]


def test_sequences_without_keys_have_no_pages_and_a_last_length_in_range():
    axes = {"len_indptr": 9, "num_kv_indices": 2, "num_pages": 9, "total_q": 40}
    made = paged_structure(axes, 64, random.Random(1), causal=False)
    indptr, last = made.tensors["kv_indptr"], made.tensors["kv_last_page_len"]
    pages = [b - a for a, b in pairwise(indptr)]
    assert 0 in pages
    assert {m for n, m in zip(pages, last, strict=True) if n == 0} == {1}


def test_a_causal_pass_behind_a_prefix_sees_prefix_and_queries():
    axes = {"len_indptr": 9, "num_kv_indices": 20, "num_pages": 9, "total_q": 40}
    made = paged_structure(axes, 1, random.Random(1))
    qo, kv = made.tensors["qo_indptr"], made.tensors["kv_indptr"]
    assert all(kv[b + 1] - kv[b] >= qo[b + 1] - qo[b] >= 1 for b in range(8))
    assert made.axes["num_kv_indices"] == 60 <= made.axes["num_pages"]


def test_a_pass_over_a_prefix_has_a_key_for_every_query():
    axes = {"len_indptr": 9, "num_kv_indices": 20, "num_pages": 30, "total_q": 40}
    made = paged_structure(axes, 1, random.Random(1), causal=False)
    kv = made.tensors["kv_indptr"]
    assert kv[-1] == 20
    assert all(b > a for a, b in pairwise(kv))


def test_a_cache_with_room_for_the_queries_holds_them():
    axes = {"len_indptr": 9, "num_kv_indices": 60, "num_pages": 99, "total_q": 40}
    made = paged_structure(axes, 1, random.Random(1))
    qo, kv = made.tensors["qo_indptr"], made.tensors["kv_indptr"]
    assert all(kv[b + 1] - kv[b] >= qo[b + 1] - qo[b] >= 1 for b in range(len(qo) - 1))


def test_ragged_sequences_keep_the_totals():
    axes = {"len_indptr": 9, "total_q": 40, "total_kv": 60}
    made = ragged_structure(axes, random.Random(1))
    assert made.axes == axes
    qo, kv = made.tensors["qo_indptr"], made.tensors["kv_indptr"]
    assert (qo[0], qo[-1], kv[0], kv[-1]) == (0, 40, 0, 60)
    assert all(kv[b + 1] - kv[b] >= qo[b + 1] - qo[b] >= 1 for b in range(8))


def test_pages_of_one_token_are_ragged_keys():
    cached = {"len_indptr": 3, "total_q": 5, "num_kv_indices": 9, "num_pages": 99}
    made = ragged_structure(cached, random.Random(1))
    assert made.axes == {"len_indptr": 3, "total_q": 5, "total_kv": 9}


@given(num_tokens=st.integers(1, 2000), seed=st.integers(0, 99))
def test_positions_are_chunks_within_the_cache(num_tokens, seed):
    made = rope_structure(num_tokens, random.Random(seed), [(48, 8), (6, 1)], 4096)
    positions = made.tensors["positions"]
    assert len(positions) == num_tokens == made.axes["num_tokens"]
    assert 0 <= min(positions) <= max(positions) < made.axes["max_seq_len"]


@given(batch_size=st.integers(1, 200), seed=st.integers(0, 99))
def test_slots_are_distinct_and_padding_comes_last(batch_size, seed):
    made = pool_structure(batch_size, random.Random(seed))
    slots = made.tensors["state_batch_indices"]
    assert len(slots) == batch_size < made.axes["state_cache_size"]
    used = [slot for slot in slots if slot != -1]
    assert 0 < len(used) == len(set(used))
    assert all(0 <= slot < made.axes["state_cache_size"] for slot in used)
    assert slots[: len(used)] == used


def lines(sizes):
    return [CapturedWorkload(f"{size}", {"M": size}) for size in sizes]


def test_smallest_and_largest_are_chosen():
    chosen = choose(lines([300, 5, 7, 9000, *range(8, 264, 8)]), "seed")
    assert len(chosen) == 8
    assert {"5", "9000"} <= {line.uuid for line in chosen}


def test_a_sweep_does_not_crowd_out_the_rest():
    odd = [1, 3, 17, 1200, 5000]
    chosen = choose(lines([*range(136, 256, 8), *odd]), "seed")
    assert set(map(str, odd)) <= {line.uuid for line in chosen}


def test_few_lines_are_all_chosen_in_their_order():
    few = lines([6, 1, 34])
    assert choose(few, "seed") == few


def test_the_choice_depends_on_the_seed_alone():
    many = lines(range(1, 200))
    assert choose(many, "a") == choose(many, "a") != choose(many, "b")


def test_the_file_is_what_safetensors_reads(tmp_path):
    tensors = {"kv_indptr": [0, 2, 2], "kv_indices": [7, -1], "none": []}
    path = tmp_path / "x.safetensors"
    path.write_bytes(vector_file(tensors, dict.fromkeys(tensors, "int32")))
    with safe_open(path, framework="np") as file:
        assert set(file.keys()) == set(tensors)
        read = {name: file.get_tensor(name) for name in tensors}
    assert {name: tensor.tolist() for name, tensor in read.items()} == tensors
    assert {str(tensor.dtype) for tensor in read.values()} == {"int32"}


def test_each_tensor_has_its_dtype(tmp_path):
    tensors = {"positions": [2**40, -2], "indptr": [3]}
    path = tmp_path / "x.safetensors"
    path.write_bytes(vector_file(tensors, {"positions": "int64", "indptr": "int32"}))
    with safe_open(path, framework="np") as file:
        read = {name: file.get_tensor(name) for name in tensors}
    assert {name: tensor.tolist() for name, tensor in read.items()} == tensors
    assert str(read["positions"].dtype) == "int64"
    assert str(read["indptr"].dtype) == "int32"


def test_the_data_begins_at_a_multiple_of_eight():
    content = vector_file({"x": [1]}, {"x": "int32"})
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    assert json.loads(content[8 : 8 + length])["x"]["data_offsets"] == [0, 4]


@given(num_tokens=st.integers(1, 4), page=st.sampled_from([1, 64]), seed=st.integers(0))
@settings(deadline=None)
def test_chosen_tokens_are_distinct_and_padding_comes_last(num_tokens, page, seed):
    made = chosen_structure(num_tokens, page, 256, random.Random(seed))
    indices = made.tensors["sparse_indices"]
    assert len(indices) == 256 * num_tokens
    chosen = [n for n in indices if n != -1]
    assert len(set(chosen)) == len(chosen)
    assert all(0 <= n < made.axes["num_pages"] * page for n in chosen)


def test_block_tables_hold_every_sequence_and_the_top_k():
    axes = {"len_indptr": 5, "num_kv_indices": 1000, "num_pages": 1100}
    made = table_structure(axes, 64, 2048, random.Random(1))
    lens, table = made.tensors["seq_lens"], made.tensors["block_table"]
    assert sum(lens) == 1000
    assert made.axes["max_num_pages"] == 32
    assert len(table) == 4 * 32


def test_a_shape_that_the_values_do_not_fill_is_an_error():
    with pytest.raises(ValueError, match="do not fill"):
        vector_file({"x": [1, 2, 3]}, {"x": "int32"}, {"x": [2, 2]})


@given(batch=st.integers(1, 60), seed=st.integers(0, 9))
def test_drafts_have_distinct_slots_of_a_larger_pool(batch, seed):
    made = delta_structure({"batch_size": batch}, random.Random(seed))
    slots = made.tensors["initial_state_indices"]
    assert len(set(slots)) == len(slots) == batch
    assert all(0 <= slot < made.axes["pool_size"] for slot in slots)
    assert batch < made.axes["pool_size"]
    assert made.axes["seq_len"] > 1
    assert state_bytes({"batch_size": batch}, 1, drafts=True) >= (
        made.axes["pool_size"] * made.axes["seq_len"]
    )


@given(count=st.integers(1, 60), more=st.integers(0, 500), seed=st.integers(0, 9))
def test_prefilled_sequences_have_tokens(count, more, seed):
    axes = {"len_indptr": count + 1, "total_q": count + more}
    made = delta_structure(axes, random.Random(seed))
    ends = made.tensors["cu_seqlens"]
    assert all(a < b for a, b in pairwise(ends))
    assert (ends[0], ends[-1], len(ends)) == (0, count + more, count + 1)
    assert made.axes["num_seqs"] == count
    assert state_bytes(axes, 3, drafts=False) == 3 * count
