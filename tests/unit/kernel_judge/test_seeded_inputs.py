"""Streams: the same bits everywhere, independent children, sane values.

The hashes are of the streams as first released. One that changes changes every input of
every rendered test: then all recordings made before are worth nothing.
"""

from __future__ import annotations

import hashlib
import math

import pytest
import torch

from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import same_bits


def digest(value: torch.Tensor | list[int]) -> str:
    tensor = torch.tensor(value) if isinstance(value, list) else value
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(data).hexdigest()


DRAWS = {
    "values float32": lambda s: s.values((3, 5)),
    "values bfloat16": lambda s: s.values((2, 4), 0.25, torch.bfloat16),
    "values float16, many": lambda s: s.values((1000,), 40.0, torch.float16),
    "matrix": lambda s: s.matrix(5, 9, 0.5, torch.float32),
    "permutation": lambda s: s.permutation(100),
    "integers": lambda s: s.integers(-3, 500, 17),
    "child": lambda s: s.child("weight").values((7,)),
}
HASHES = {
    "values float32": "594d024697483c7ea199bb665e04df67977149f8061f03186b8812be61c84bae",
    "values bfloat16": "1ed02d80024d1a05d34a0baebe38b5e422a1e0a926a8f60222087a44a5ed9df1",
    "values float16, many": "f34f55c1473ad702ffddc34dac8d50a919b207900d1bea4a6ff80b8ec948472f",
    "matrix": "22b9993967254405429620fc3f1e3765b159d460d7517d6c5d4feb7d3f902de3",
    "permutation": "0f7811057b5add8fd5ef7aa9df03c36c67b1869ce16ef5dc1f4d36216f95d5a9",
    "integers": "b51d3a9ecc648a555d3661a8480211ce2668ea39e02ecb78fde1423d287302f9",
    "child": "88cbbeb0d05b4026a1541407eb49c5dc0c4538671b41b4d309e024ed2f063b71",
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_bits_are_those_of_the_first_release(name):
    assert digest(DRAWS[name](Stream("definition", "case"))) == HASHES[name]


def test_the_first_values_can_be_worked_out_from_philox():
    # 16-bit halves of Philox's first words, keyed by 16 bytes of the key's SHA-256
    import numpy as np

    key = hashlib.sha256(b"a\0b").digest()[:16]
    raw = np.random.Philox(key=int.from_bytes(key, "little")).random_raw(1)
    low, high = np.array(raw, ndmin=1).view(np.int16)[:2].astype(np.int64)
    expected = np.float32(low + high) * np.float32(2.0 * math.sqrt(6.0) / 65536.0)
    assert Stream("a", "b").values((1,), 2.0).item() == expected


@pytest.mark.parametrize("name", DRAWS)
def test_equal_keys_draw_equal_values_and_others_do_not(name):
    first, again, other = Stream("a"), Stream("a"), Stream("b")
    draw = DRAWS[name]
    assert digest(draw(first)) == digest(draw(again))
    assert digest(draw(first)) != digest(draw(other))


def test_a_key_of_two_words_is_not_their_concatenation():
    streams = [Stream("ab", "c"), Stream("a", "bc"), Stream("abc")]
    assert len({digest(s.values((8,))) for s in streams}) == 3


def test_a_child_does_not_depend_on_what_was_drawn_from_its_parent():
    fresh, used = Stream("a"), Stream("a")
    used.values((1000,))
    used.child("other").values((3,))
    assert same_bits(fresh.child("c").values((9,)), used.child("c").values((9,)))
    assert not same_bits(fresh.child("c").values((9,)), fresh.child("d").values((9,)))
    assert same_bits(Stream("a").child("c").values((9,)), Stream("a", "c").values((9,)))


def test_a_stream_goes_on_where_it_stopped():
    stream = Stream("a")
    first, second = stream.values((8,)), stream.values((8,))
    assert not same_bits(first, second)


@pytest.mark.parametrize("std", [0.25, 1.0, 40.0])
def test_mean_and_deviation_are_the_stated_ones(std):
    values = Stream("moments").values((200_000,), std).double()
    assert abs(values.mean()) < 0.01 * std
    assert values.std() == pytest.approx(std, rel=0.01)
    assert values.abs().max() <= math.sqrt(6.0) * std * (1.0 + 1e-6)
    # bell-shaped, not flat: two thirds lie within one deviation
    assert (values.abs() < std).double().mean() == pytest.approx(0.65, abs=0.01)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5), (1,), (3,), (3, 3), ()])
def test_any_shape_can_be_drawn(shape):
    values = Stream("shape").values(shape)
    assert tuple(values.shape) == shape
    assert bool(torch.isfinite(values).all())


def test_an_odd_count_is_the_beginning_of_the_even_one():
    odd, even = Stream("a").values((7,)), Stream("a").values((8,))
    assert same_bits(odd, even[:7])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_another_dtype_is_one_rounding_of_the_float32_values(dtype):
    rounded = Stream("a").values((64,), dtype=dtype)
    assert rounded.dtype == dtype
    assert same_bits(rounded, Stream("a").values((64,)).to(dtype))


def test_a_matrix_has_windows_of_one_stream_as_rows():
    made = Stream("a").matrix(4, 10, 0.5, torch.float16)
    base = Stream("a").values((7 * 3 + 10,), 0.5, torch.float16)
    assert made.shape == (4, 10)
    assert made.is_contiguous()
    for row in range(4):
        assert same_bits(made[row], base[7 * row : 7 * row + 10])
    assert len({digest(row) for row in made}) == 4


def test_a_permutation_has_every_number_once_and_is_shuffled():
    drawn = Stream("a").permutation(50)
    assert drawn.dtype == torch.int64
    assert sorted(drawn.tolist()) == list(range(50))
    assert drawn.tolist() != list(range(50))
    assert Stream("a").permutation(0).tolist() == []


def test_integers_stay_in_their_range_and_reach_its_ends():
    drawn = Stream("a").integers(3, 7, 500)
    assert set(drawn) == {3, 4, 5, 6}
    assert Stream("a").integers(0, 10, 0) == []
    assert len(Stream("a").integers(0, 10, 1)) == 1


def test_a_tensor_of_integers_has_the_same_ones():
    for low, high, count in ((-5, 9, 40), (0, 2**40, 3), (2, 3, 1), (0, 10, 0)):
        drawn = Stream("a").integer_tensor(low, high, count)
        assert drawn.dtype == torch.int64
        assert drawn.tolist() == Stream("a").integers(low, high, count)


@pytest.mark.parametrize("before", [0, 3, 8])
def test_many_values_are_those_that_few_at_a_time_are(before):
    # some begin within a block of Philox, where no thread draws
    at_once, in_turn = Stream("a"), Stream("a")
    for stream in (at_once, in_turn):
        stream.integers(0, 9, before)
    for count in ((40 << 15) + 6, 35 << 15, 40 << 15):
        few = [in_turn.values((n,)) for n in [2000] * (count // 2000) + [count % 2000]]
        assert same_bits(at_once.values((count,)), torch.cat(few))
    assert at_once.integers(0, 99, 7) == in_turn.integers(0, 99, 7)


def test_beyond_many_values_the_first_repeat_and_no_two_rows_are_alike():
    drawn = Stream("a", period=1_021).values((64, 128), dtype=torch.bfloat16)
    first = Stream("a").values((1_021,), dtype=torch.bfloat16)
    assert drawn.is_contiguous()
    assert same_bits(drawn.flatten(), first.repeat(9)[: 64 * 128])
    assert len({digest(row) for row in drawn}) == 64
