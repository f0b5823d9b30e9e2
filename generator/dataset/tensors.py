"""Read a safetensors file without trusting it: the header, and small integer tensors.

safetensors judges the header. Neither numpy nor torch is needed. Everything is bounded
before it is allocated: a header may claim any size, a shape any product.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from safetensors import SafetensorError, deserialize

from generator.dataset.file_reading import LastFolder, opened, read_at_most
from generator.dataset.json_file import parse
from generator.problems.messages import plural, quote

MAX_HEADER = 8 * 1024 * 1024
"""Bytes of the longest header that is read; one tensor takes about 100."""

MAX_WHOLE = 1024 * 1024
"""Bytes of the largest file that is read whole; the workloads' have some KiB."""

MAX_TENSOR = 64 * 1024 * 1024
"""Bytes of the largest tensor whose values are looked at."""

_SMALL_HEADER = 4096
"""Bytes of the longest header whose entries are kept for the next file."""

_MAX_RANK = 16
_CODES: Mapping[str, str] = {
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U8": "B",
    "BOOL": "B",
}


class BadTensorFile(Exception):
    """Raised for a file that is not safetensors; the text ends a sentence: `has ...`."""


@dataclass(frozen=True)
class TensorEntry:
    """The header's entry of one tensor; offsets count from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass
class TensorFile:
    """The beginning of a file: its header, or all of a small file.

    `tensors` is empty until the header was read.
    """

    root: Path
    path: str
    size: int
    digest: str
    head: bytes
    tensors: Mapping[str, TensorEntry] = field(default_factory=dict)
    _read: dict[str, Sequence[int]] = field(default_factory=dict)

    def read_header(self) -> None:
        """Put the header's entries into `tensors`; raises BadTensorFile."""
        start = _header_end(self.head, self.size)
        header = self.head[:start]
        read = _entries if start <= _SMALL_HEADER else _entries.__wrapped__
        self.tensors = read(header, self.size)

    def integers(self, key: str) -> Sequence[int] | None:
        """Return a tensor's values in row-major order.

        None for a tensor that is not of integers, too large to look at, or cut short.
        """
        if key not in self._read:
            entry = self.tensors[key]
            size = entry.end - entry.begin
            if entry.dtype not in _CODES or size > MAX_TENSOR:
                return None
            data = self.head[entry.begin : entry.end]
            if len(self.head) != self.size:
                try:
                    with opened(self.root, self.path) as file:
                        data = os.pread(file, size, entry.begin)
                except OSError:
                    return None
            if len(data) != size:
                return None
            values = array(_CODES[entry.dtype])
            values.frombytes(data)
            if sys.byteorder == "big":
                values.byteswap()
            # a list makes the numbers once, an array at each access
            self._read[key] = values.tolist() if size <= MAX_WHOLE else values
        return self._read[key]


def open_tensor_file(folder: LastFolder, path: str) -> TensorFile:
    """Read the beginning of a file, or all of a small one; judge neither.

    Raises OSError: NotRead for a link, and for what is not a regular file.
    """
    root = folder.root
    with folder.opened(path) as file:
        status = os.fstat(file)
        if status.st_size <= MAX_WHOLE:
            data = read_at_most(file, MAX_WHOLE + 1)
            digest = sha256(data).hexdigest()
            return TensorFile(root, path, len(data), digest, data)
        length = _header_length(os.pread(file, 8, 0))
        head = read_at_most(file, 8 + (length if length <= MAX_HEADER else 0))
        digest = f"{status.st_size}@{status.st_mtime_ns}"
        return TensorFile(root, path, status.st_size, digest, head)


def _header_length(head: bytes) -> int:
    return int.from_bytes(head[:8], "little")


@cache
def _without_tensors() -> str:
    """Return what safetensors says of a valid header without its tensors."""
    text = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    try:
        deserialize(len(text).to_bytes(8, "little") + text)
    except SafetensorError as error:
        return str(error)
    return ""


def _header_end(head: bytes, size: int) -> int:
    """Return the offset where a file's header ends. Raises BadTensorFile."""
    if size < 8:
        raise BadTensorFile(f"has {plural(size, 'byte')}, too few for a header")
    length = _header_length(head)
    if 8 + length > size:
        raise BadTensorFile(f"says that its header has {length} bytes; it has {size}")
    if length > MAX_HEADER:
        raise BadTensorFile(f"has a header of {length} bytes, more than is read")
    return 8 + length


# the blobs of a definition's workloads have few different headers
@lru_cache(maxsize=512)
def _entries(header: bytes, size: int) -> dict[str, TensorEntry]:
    """Return the tensors of a file of `size` bytes. Raises BadTensorFile."""
    start = len(header)
    try:
        deserialize(header)
    except SafetensorError as error:
        # it looks for the tensors last
        if str(error) != _without_tensors():
            reason = str(error).removeprefix("Error while deserializing: ")
            raise BadTensorFile(f"is refused by safetensors: {reason}") from None
    # safetensors takes a key twice, and an array for an entry
    parsed = parse(header[8:], "")
    if parsed.problems:
        why = parsed.problems[0].message.rstrip(".")
        raise BadTensorFile(f"has a header that can't be used: {why}")
    entries = {}
    for key, value in parsed.value.items():
        if key == "__metadata__":
            continue
        if not isinstance(value, dict):
            raise BadTensorFile(f"describes the tensor {quote(key)} by something else")
        if len(value["shape"]) > _MAX_RANK:
            raise BadTensorFile(f"gives the tensor {quote(key)} an impossible shape")
        begin, end = value["data_offsets"]
        shape = tuple(value["shape"])
        entries[key] = TensorEntry(value["dtype"], shape, start + begin, start + end)
    covered = max((entry.end for entry in entries.values()), default=start)
    if covered != size:
        short = covered > size
        what = "ends before its tensors do" if short else "has bytes to spare"
        raise BadTensorFile(what)
    return entries
