"""Writing tensors of numbers as a safetensors file, without numpy."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence

# of a dataset's dtype: the names that safetensors and struct have for it
_NAMES = {
    "int32": ("I32", "i"),
    "int64": ("I64", "q"),
    "float32": ("F32", "f"),
    "bool": ("BOOL", "?"),
}


def vector_file(
    tensors: Mapping[str, Sequence[float]],
    dtypes: Mapping[str, str],
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> bytes:
    """Return the bytes of a safetensors file; the same tensors give the same bytes.

    `dtypes` gives the dtype of each tensor, int32, int64, float32 or bool, and `shapes`
    the shape of those that are no vectors.
    """
    header: dict[str, object] = {}
    data = b""
    for name, values in tensors.items():
        dtype, code = _NAMES[dtypes[name]]
        part = struct.pack(f"<{len(values)}{code}", *values)
        offsets = [len(data), len(data) + len(part)]
        shape = list((shapes or {}).get(name, [len(values)]))
        if math.prod(shape) != len(values):
            raise ValueError(f"{name}: {len(values)} values do not fill {shape}")
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    # The data begins at a multiple of 8: the format pads its header with spaces.
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
