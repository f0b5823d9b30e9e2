"""The header of a tensor file: ours takes what safetensors takes, and bounds it."""

from __future__ import annotations

import copy
import json
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from generator.dataset.file_reading import LastFolder
from generator.dataset.tensors import BadTensorFile, TensorFile, open_tensor_file

SIZES = {"I32": 32, "U8": 8, "BOOL": 8, "F16": 16, "F4": 4, "C64": 64}
MIB = 1 << 20
ODD = st.sampled_from(
    [-1, 1, 1 << 62, 1 << 64, 2.0, None, True, "I32", [], [0, 8]]
).map(copy.deepcopy)
FIELDS = ("dtype", "shape", "data_offsets")


def file_of(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def read(path: Path) -> TensorFile:
    with closing(LastFolder(path.parent)) as folder:
        opened = open_tensor_file(folder, path.name)
    opened.read_header()
    return opened


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@st.composite
def tensor_files(draw: st.DrawFn) -> bytes:
    """Draw a file of some tensors, with up to two places of it wrong."""
    header: dict[str, Any] = {}
    end = 0
    for number in range(draw(st.integers(0, 3))):
        dtype = draw(st.sampled_from(sorted(SIZES)))
        shape = draw(st.lists(st.sampled_from([0, 1, 2, 8]), max_size=3))
        count = 1
        for size in shape:
            count *= size
        begin, end = end, end + count * SIZES[dtype] // 8
        header[f"t{number}"] = entry(shape, begin, end, dtype)
    for _ in range(draw(st.integers(0, 2)) if header else 0):
        chosen = header[draw(st.sampled_from(sorted(header)))]
        field = draw(st.sampled_from(FIELDS))
        part = chosen.get(field)
        if isinstance(part, list) and part:
            part[draw(st.integers(0, len(part) - 1))] = draw(ODD | st.integers(0, 64))
        else:
            chosen[field] = draw(ODD)
    return file_of(header, bytes(max(0, end + draw(st.sampled_from([0, 0, -1, 1])))))


@settings(max_examples=300, deadline=None)
@given(data=tensor_files())
def test_safetensors_agrees(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tensors") / "x.safetensors"
    path.write_bytes(data)
    wanted = None
    with suppress(SafetensorError):
        wanted = {
            name: (part["dtype"], tuple(part["shape"]), bytes(part["data"]))
            for name, part in deserialize(data)
        }
    if wanted is None:
        with pytest.raises(BadTensorFile):
            read(path)
    else:
        found = {
            name: (part.dtype, part.shape, data[part.begin : part.end])
            for name, part in read(path).tensors.items()
        }
        assert found == wanted


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b'{"a":{}, "a":{}}', "is refused by safetensors"),
        (
            b'{"a":%b, "a":%b}' % ((json.dumps(entry([0], 0, 0)).encode(),) * 2),
            "has a header that can't be used: The key 'a' appears 2 times",
        ),
        (b'{"a":["U8",[0],[0,0]]}', "describes the tensor 'a' by something else"),
        ({"a": entry([0] * 17, 0, 0)}, "gives the tensor 'a' an impossible shape"),
    ],
)
def test_what_safetensors_takes_and_nothing_writes_is_refused(
    tmp_path: Path, header: Any, said: str
) -> None:
    (tmp_path / "x").write_bytes(file_of(header))
    with pytest.raises(BadTensorFile, match=said):
        read(tmp_path / "x")


@pytest.mark.parametrize(
    ("header", "size", "said"),
    [
        ({"a": entry([MIB], 0, 4 * MIB)}, 4 * MIB - 1, "ends before its tensors do"),
        ({"a": entry([MIB], 0, 4 * MIB)}, 4 * MIB + 1, "has bytes to spare"),
        ({"a": entry([MIB], 1, 4 * MIB + 1)}, 4 * MIB + 1, "invalid offset"),
        (b"{" * (9 * MIB), 0, "has a header of 9437184 bytes, more than is read"),
    ],
)
def test_a_large_file_is_judged_by_its_header(
    tmp_path: Path, header: Any, size: int, said: str
) -> None:
    with (tmp_path / "x").open("wb") as stream:
        stream.write(file_of(header))
        stream.truncate(stream.tell() + size)
    with pytest.raises(BadTensorFile, match=said):
        read(tmp_path / "x")
