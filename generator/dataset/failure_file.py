"""The files of a failure: what is known of it as JSON, and its values as safetensors.

torch is imported where it is used: those who read a failure need the names alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FAILURE, TENSORS = "failure.json", "failure.safetensors"
"""The files of a failure: what is known of it, and its values."""

FORMAT = 1
"""Of the JSON file, which has it."""

MOST_BYTES = 1 << 30
"""Of values that are kept; a larger one is left out, and its shape stands in the JSON."""


def write_failure(
    folder: Path,
    about: Mapping[str, Any],
    values: Mapping[str, Any],
    most_bytes: int = MOST_BYTES,
) -> Path:
    """Write both files of a failure; return the path of the JSON file.

    `about` is plain values; `values` are tensors, or what else a `run()` takes and returns,
    by name, of which `most_bytes` are kept. Raises OSError.
    """
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tensors, left_out, room = {}, {}, most_bytes
    for name, value in values.items():
        if not isinstance(value, torch.Tensor):
            continue
        room -= value.nbytes
        if room < 0:
            left_out[name] = [*value.shape]
            continue
        tensors[name] = value.detach().cpu().contiguous().clone()
    save_file(tensors, folder / TENSORS)
    numbers = {
        name: value
        for name, value in values.items()
        if value is None or isinstance(value, (bool, int, float))
    }
    more = {"left_out": left_out} if left_out else {}
    whole = {"format": FORMAT, **about, "numbers": numbers, **more}
    path = folder / FAILURE
    text = json.dumps(finite(whole), indent=1, allow_nan=False)
    path.write_text(f"{text}\n", "utf-8")
    return path


def finite(value: Any) -> Any:
    """Return a value whose numbers JSON has: NaN and infinities as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
