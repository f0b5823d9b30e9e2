"""Write a recording as the bytes of its file; `recording_file` reads it."""

from __future__ import annotations

import hashlib
import json

from kernel_judge.recording.recording_file import (
    METADATA_KEY,
    Recording,
    Tensors,
    content_digest,
)


def pack(recording: Recording) -> bytes:
    """Return the bytes of a recording's file; the same recording gives the same."""
    from safetensors.torch import save

    tensors, same = _distinct(recording.tensors)
    whole = {**recording.body, **({"same": same} if same else {})}
    body = json.dumps(whole, separators=(",", ":"))
    bare = save(tensors)
    data = bare[8 + int.from_bytes(bare[:8], "little") :]
    # the data is the same with metadata before it
    text = f'{{"sha256":"{content_digest(body, data)}","body":{body}}}'
    packed: bytes = save(tensors, {METADATA_KEY: text})
    return packed


def _distinct(tensors: Tensors) -> tuple[Tensors, dict[str, str]]:
    """Return tensors without those that others equal, and which these others are."""
    import torch

    stored: Tensors = {}
    same: dict[str, str] = {}
    first: dict[tuple[object, ...], str] = {}
    for name, tensor in sorted(tensors.items()):
        row = tensor.contiguous()
        data = row.reshape(-1).view(torch.uint8).numpy().tobytes()
        key = (row.dtype, row.shape, hashlib.sha256(data).digest())
        if first.setdefault(key, name) == name:
            stored[name] = row
        else:
            same[name] = first[key]
    return stored, same
