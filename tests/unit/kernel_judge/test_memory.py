"""The dtypes, shapes and bytes of a case."""

from __future__ import annotations

import pytest
import torch

from kernel_judge.definition import Case, Definition, Interface, TensorSpec
from kernel_judge.inputs import memory

DEFINITION = Definition(
    "d",
    "op",
    Interface(
        {"x": "bfloat16[rows, columns]", "scale": "float32", "ids": "int32[rows]"},
        {"y": "float32[rows, columns]", "total": "float64[]"},
    ),
    {"columns": 1024},
)


def case(rows: int) -> Case:
    return Case("c", "small", {"rows": rows})


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("bfloat16", torch.bfloat16),
        ("int64", torch.int64),
        ("bool", torch.bool),
        ("float8_e4m3fn", torch.float8_e4m3fn),
        ("float4_e2m1", torch.float4_e2m1fn_x2),
    ],
)
def test_a_dtype_has_the_name_that_the_dataset_gives_it(name, dtype):
    assert memory.dtype_of(name) == dtype


def test_a_dtype_that_torch_lacks_is_named_with_the_version():
    with pytest.raises(ValueError, match=r"torch \S+ has no dtype float3"):
        memory.dtype_of("float3")


def test_shapes_take_their_lengths_from_the_axes():
    spec = TensorSpec.parse("float32[a, b, a]")
    assert memory.shape_of(spec, {"a": 2, "b": 3}) == (2, 3, 2)
    assert memory.shape_of(TensorSpec.parse("float32[]"), {}) == ()


def test_the_bytes_are_those_of_inputs_and_outputs():
    # x: 2 bytes, y: 4 bytes an element; ids: 4 bytes a row; total: 8; scale: no tensor
    expected = 10 * 1024 * 2 + 10 * 4 + 10 * 1024 * 4 + 8
    assert memory.tensor_bytes(DEFINITION, case(10)) == expected
