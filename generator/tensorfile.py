"""Read a safetensors file without trusting it: the header, and small integer tensors.

Neither numpy nor torch is needed. Everything is bounded before it is allocated: a
header may claim any size, a shape any product.
"""

from __future__ import annotations

import math
import os
import stat
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeGuard

from generator.jsonparse import parse
from generator.lfs import LFS_MAGIC
from generator.reading import opened, read_at_most
from generator.wording import plural, quote

MAX_HEADER = 8 * 1024 * 1024
"""Bytes of the longest header that is read; one tensor takes about 100."""

MAX_WHOLE = 1024 * 1024
"""Bytes of the largest file that is read whole; the workloads' have some KiB."""

MAX_TENSOR = 64 * 1024 * 1024
"""Bytes of the largest tensor whose values are looked at."""

_MAX_RANK = 16
_BITS: Mapping[str, int] = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
_CODES: Mapping[str, str] = {
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U8": "B",
    "BOOL": "B",
}


class BadTensorFile(Exception):
    """Say in a few words why a file is not safetensors: `has ...`, `is ...`."""


class LfsPointer(Exception):
    """Say that the file is a Git LFS pointer, not the data."""


@dataclass(frozen=True)
class Entry:
    """Hold what the header says of one tensor; offsets count from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass
class TensorFile:
    """Hold a file's header, and its bytes where the file is small."""

    path: str | Path
    tensors: Mapping[str, Entry]
    digest: str
    data: bytes | None = None
    _read: dict[str, Sequence[int]] = field(default_factory=dict)

    def integers(self, key: str) -> Sequence[int] | None:
        """Return a tensor's values in row-major order.

        None for a tensor that is not of integers or too large to look at. Raises
        OSError.
        """
        if key not in self._read:
            entry = self.tensors[key]
            size = entry.end - entry.begin
            if entry.dtype not in _CODES or size > MAX_TENSOR:
                return None
            values = array(_CODES[entry.dtype])
            values.frombytes(self._bytes(entry))
            if sys.byteorder == "big":
                values.byteswap()
            # a list makes the numbers once, an array at each look at them
            self._read[key] = values.tolist() if size <= MAX_WHOLE else values
        return self._read[key]

    def _bytes(self, entry: Entry) -> bytes:
        if self.data is not None:
            return self.data[entry.begin : entry.end]
        with open(self.path, "rb") as stream:
            stream.seek(entry.begin)
            found = stream.read(entry.end - entry.begin)
        if len(found) != entry.end - entry.begin:
            raise OSError(None, "the file became shorter while it was read")
        return found


def open_tensor_file(path: str | Path) -> TensorFile:
    """Read a file's header, and all of a small file.

    Raises BadTensorFile, LfsPointer or OSError.
    """
    with opened(path) as file:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BadTensorFile("is not a regular file")
        size = status.st_size
        if size <= MAX_WHOLE:
            data = read_at_most(file, MAX_WHOLE + 1)
            size = len(data)
            digest, head = digest_of(data), data
        else:
            digest = digest_of_large(status)
            head, data = _read_head(file), b""
    if head.startswith(LFS_MAGIC):
        raise LfsPointer
    tensors = _entries(head, size)
    return TensorFile(path, tensors, digest, data or None)


def digest_of(data: bytes) -> str:
    """Return the digest by which a small file's content is known."""
    return blake2b(data, digest_size=16).hexdigest()


def digest_of_large(status: os.stat_result) -> str:
    """Return what a file too large to be read whole is known by: size and time."""
    return f"{status.st_size}@{status.st_mtime_ns}"


def _read_head(file: int) -> bytes:
    length = int.from_bytes(os.pread(file, 8, 0), "little")
    # the caller judges a length that is out of bounds, without the bytes
    return read_at_most(file, 8 + (length if length <= MAX_HEADER else 0))


def _entries(head: bytes, size: int) -> dict[str, Entry]:
    if size < 8:
        raise BadTensorFile(f"has {plural(size, 'byte')}, too few for a header")
    length = int.from_bytes(head[:8], "little")
    if length > size - 8:
        raise BadTensorFile(f"says that its header has {length} bytes; it has {size}")
    if length > MAX_HEADER:
        raise BadTensorFile(f"has a header of {length} bytes, more than is read")
    try:
        text = head[8 : 8 + length].decode("utf-8")
    except UnicodeDecodeError:
        raise BadTensorFile("has a header that is not UTF-8") from None
    parsed = parse(text, "")
    if parsed.problems or not isinstance(parsed.value, dict):
        why = parsed.problems[0].message if parsed.problems else "not an object"
        raise BadTensorFile(f"has a header that can't be used: {why.rstrip('.')}")
    start = 8 + length
    entries = {
        key: _entry(key, value, start)
        for key, value in parsed.value.items()
        if key != "__metadata__"
    }
    _check_cover(entries, start, size)
    return entries


def _entry(key: str, value: Any, start: int) -> Entry:
    shown = quote(key)
    if not isinstance(value, dict):
        raise BadTensorFile(f"describes the tensor {shown} by something else")
    dtype, shape = value.get("dtype"), value.get("shape")
    offsets = value.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise BadTensorFile(f"gives the tensor {shown} an unknown dtype")
    if not _are_sizes(shape) or len(shape) > _MAX_RANK:
        raise BadTensorFile(f"gives the tensor {shown} an impossible shape")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise BadTensorFile(f"gives the tensor {shown} impossible offsets")
    bits = math.prod(shape) * _BITS[dtype]
    if bits != 8 * (offsets[1] - offsets[0]):
        raise BadTensorFile(f"has offsets of {shown} that don't fit its shape")
    return Entry(dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _are_sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)


def _check_cover(entries: Mapping[str, Entry], start: int, size: int) -> None:
    """Demand what the format does: no overlap, no gap, nothing past the end."""
    position = start
    for entry in sorted(entries.values(), key=lambda e: (e.begin, e.end)):
        if entry.begin != position:
            what = "overlap" if entry.begin < position else "leave a gap"
            raise BadTensorFile(f"has tensors that {what}")
        position = entry.end
    if position != size:
        what = "ends before its tensors do" if position > size else "has bytes to spare"
        raise BadTensorFile(what)
