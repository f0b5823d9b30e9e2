"""Writing integer vectors and matrices as a safetensors file, without numpy."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence

# of a dataset's dtype: the names that safetensors and struct have for it
_NAMES = {"int32": ("I32", "i"), "int64": ("I64", "q")}


def integer_file(
    tensors: Mapping[str, Sequence[int] | Sequence[Sequence[int]]],
    dtypes: Mapping[str, str],
) -> bytes:
    """Return the bytes of a safetensors file; the same tensors give the same bytes.

    `dtypes` gives the dtype of each tensor, int32 or int64.
    """
    header: dict[str, object] = {}
    data = b""
    for name, tensor in tensors.items():
        dtype, code = _NAMES[dtypes[name]]
        shape, values = _flat(tensor)
        part = struct.pack(f"<{len(values)}{code}", *values)
        offsets = [len(data), len(data) + len(part)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    # The data begins at a multiple of 8: the format pads its header with spaces.
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def _flat(
    tensor: Sequence[int] | Sequence[Sequence[int]],
) -> tuple[list[int], list[int]]:
    """Return the shape and the elements of a vector or of a list of rows."""
    rows = [row if isinstance(row, Sequence) else [row] for row in tensor]
    is_matrix = any(isinstance(row, Sequence) for row in tensor)
    shape = [len(rows), len(rows[0])] if is_matrix else [len(rows)]
    return shape, [value for row in rows for value in row]
