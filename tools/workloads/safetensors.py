"""Writing int32 vectors as a safetensors file, without numpy."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence


def int32_file(tensors: Mapping[str, Sequence[int]]) -> bytes:
    """Return the bytes of a safetensors file; the same tensors give the same bytes."""
    header: dict[str, object] = {}
    data = b""
    for name, values in tensors.items():
        part = struct.pack(f"<{len(values)}i", *values)
        offsets = [len(data), len(data) + len(part)]
        header[name] = {"dtype": "I32", "shape": [len(values)], "data_offsets": offsets}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    # The data begins at a multiple of 8: the format pads its header with spaces.
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
