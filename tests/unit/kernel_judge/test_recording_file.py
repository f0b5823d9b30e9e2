"""Recording files: what is written is read again; what is not one is refused."""

from __future__ import annotations

import json
import os
import struct

import pytest
import torch

from generator.running.packing import pack
from generator.running.record_worker import write
from kernel_judge.recording import recording_file as recording
from kernel_judge.recording.recording_file import (
    Damaged,
    Recording,
    read,
    read_description,
    tensor_name,
)

LABEL = "flashinfer/fa2@0.6@H200"


def example():
    tensors = {
        tensor_name(LABEL, "one", "output"): torch.arange(6).to(torch.bfloat16),
        tensor_name(LABEL, "one", "lse"): torch.tensor([1.5, -torch.inf]),
        tensor_name(LABEL, "one", "samples", "counts"): torch.tensor([[1, 2], [3, 4]]),
        tensor_name(LABEL, "one", "empty"): torch.zeros(0, dtype=torch.float8_e4m3fn),
    }
    outputs = {
        "output": {"dtype": "bfloat16", "shape": [2, 3], "elements": 6},
        "lse": {"dtype": "float32", "shape": [2], "elements": 2},
        "samples": {"dtype": "int64", "shape": [9], "parts": ["counts"]},
        "empty": {"dtype": "float8_e4m3fn", "shape": [0, 4], "elements": 0},
    }
    body = {
        "definition": "d",
        "interface": "abc",
        "cases": {"one": {"inputs": {"x": "0" * 64}}},
        "recordings": {LABEL: {"source": "flashinfer/fa2", "cases": {"one": outputs}}},
    }
    return Recording(body, tensors)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "op" / "d.safetensors"
    write(path, example())
    return path


def rewritten(path, change):
    """Change the header of a file, as JSON, and leave its data."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    data = change(header) or content[8 + length :]
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def refusal(path):
    with pytest.raises(Damaged) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} ")
    return str(caught.value).removeprefix(f"{path} ")


def test_what_is_written_is_read(path):
    found = read(path)
    assert found.body == example().body == read_description(path)
    assert set(found.tensors) == set(example().tensors)
    for name, tensor in example().tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name].double(), tensor.double())
    assert found.stored(LABEL, "one", "lse").tolist() == [1.5, -torch.inf]
    assert list(found.parts(LABEL, "one", "samples")) == ["counts"]


def test_the_same_recording_has_the_same_bytes(path):
    assert pack(example()) == path.read_bytes() == pack(read(path))


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording.os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write(path, Recording({**example().body, "more": 1}, example().tensors))
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_every_truncated_file_is_refused(path):
    content = path.read_bytes()
    for length in (*range(20), 200, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert refusal(path).startswith("is damaged: ")
    path.write_bytes(content + b"\0")
    assert refusal(path).startswith("is damaged: ")


def test_every_flipped_bit_is_seen(path):
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 4
        path.write_bytes(changed)
        refusal(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
        {"dtype": "BF16", "shape": [6], "data_offsets": [0, 2**62]},
        {"dtype": "BF16", "shape": [-1], "data_offsets": [0, 12]},
        {"dtype": "BF16", "shape": [6.0], "data_offsets": [0, 12]},
        {"dtype": "BF16", "shape": [True], "data_offsets": [0, 2]},
        {"dtype": "BF16", "shape": [1] * 99, "data_offsets": [0, 2]},
        {"dtype": "BF16", "shape": [7], "data_offsets": [0, 12]},
        {"dtype": "PICKLE", "shape": [6], "data_offsets": [0, 12]},
        {"dtype": "BF16", "shape": [6], "data_offsets": [12]},
        {"dtype": "BF16", "shape": 6, "data_offsets": [0, 12]},
        {"dtype": [], "shape": [6], "data_offsets": [0, 12]},
        [],
        None,
    ],
)
def test_absurd_sizes_are_refused(path, entry):
    def change(header):
        header[tensor_name(LABEL, "one", "output")] = entry

    rewritten(path, change)
    assert refusal(path).startswith("is damaged: ")


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_an_absurd_header_is_refused_before_it_is_read(path, length):
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    assert refusal(path).startswith("is damaged: a header of ")


def test_a_huge_file_is_not_read(path, monkeypatch):
    monkeypatch.setattr(recording, "MAX_FILE_BYTES", 100)
    assert refusal(path).startswith("has ")


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff\xff", b"[]", b"{ ", b"7 "])
def test_a_header_that_is_no_json_object_is_refused(path, text):
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    assert refusal(path).startswith("is damaged: its header is not ")


def test_overlapping_tensors_are_refused(path):
    def change(header):
        names = [n for n in header if n != "__metadata__"]
        sized = [n for n in names if header[n]["shape"] != [0]]
        header[sized[1]] = dict(header[sized[0]])

    rewritten(path, change)
    assert "invalid offset" in refusal(path)


def test_foreign_and_missing_tensors_are_refused(path):
    value = example()
    value.tensors["foreign"] = torch.ones(3)
    path.write_bytes(pack(value))
    assert refusal(path) == "is damaged: it has foreign tensors: 'foreign'"
    value = example()
    del value.tensors[tensor_name(LABEL, "one", "lse")]
    path.write_bytes(pack(value))
    assert "it lacks tensors: 'one/flashinfer/fa2@0.6@H200/lse'" in refusal(path)
    value = example()
    value.tensors[tensor_name(LABEL, "one", "lse")] = torch.ones(3)
    path.write_bytes(pack(value))
    assert refusal(path).endswith("/lse' is not [2]")


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"ground_truth": 7}, {"ground_truth": "{"}, {"ground_truth": "{}"}],
)
def test_other_safetensors_files_are_no_recordings(path, metadata):
    def change(header):
        header["__metadata__"] = metadata

    rewritten(path, change)
    assert refusal(path) == "is no recording: it has no description"


def test_a_pointer_of_git_lfs_is_called_one(path):
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert refusal(path) == "is a Git LFS pointer, not the data: git lfs pull"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("reads", [read, read_description])
@pytest.mark.parametrize("what", ["pipe", "link to an endless file", "folder"])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, what, reads):
    path = tmp_path / "x.safetensors"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(Damaged, match="no regular file"):
        reads(path)


def twice():
    """Return a recording of two kernels that answered with the same bits."""
    one = example()
    other = LABEL.replace("fa2", "fa3")
    tensors = {n.replace(LABEL, other): t.clone() for n, t in one.tensors.items()}
    body = json.loads(json.dumps(one.body).replace(LABEL, other))
    recordings = {**one.body["recordings"], **body["recordings"]}
    return Recording({**one.body, "recordings": recordings}, {**one.tensors, **tensors})


def test_what_two_kernels_returned_alike_is_stored_once(tmp_path):
    once, path = tmp_path / "once", tmp_path / "twice"
    write(once, example())
    write(path, twice())
    data = [len(p.read_bytes()) - _header(p) for p in (once, path)]
    assert data[0] == data[1]
    found = read(path)
    assert found.body == twice().body
    for name, tensor in twice().tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name].double(), tensor.double())
    assert pack(found) == path.read_bytes()


def _header(path):
    return struct.unpack("<Q", path.read_bytes()[:8])[0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("fa3@0.6@H200/lse", "fa4@0.6@H200/lse", "lacks tensors"),
        ("fa2@0.6@H200/output", "fa2@0.6@H200/outpus", "lacks tensors"),
        (':\\"one', ':\\"two', "lacks tensors"),
    ],
)
def test_a_tensor_that_is_the_same_as_none_is_refused(tmp_path, old, new, why):
    path = tmp_path / "twice"
    write(path, twice())
    content = path.read_bytes()
    length = 8 + _header(path)
    begin = content.index(b'\\"same\\"')
    part = content[begin:length].decode()
    assert old in part
    body = content[8:begin].decode() + part.replace(old, new, 1)
    header = json.loads(body)
    text = json.loads(header["__metadata__"]["ground_truth"])
    inner = json.dumps(text["body"], separators=(",", ":"))
    digest = recording.content_digest(inner, content[length:])
    header["__metadata__"]["ground_truth"] = json.dumps(
        {"sha256": digest, "body": text["body"]}
    )
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[length:])
    assert why in refusal(path)
