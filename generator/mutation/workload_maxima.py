"""The largest sizes that a definition's workloads have, for mutants of limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.dataset.workload_files import workloads_of
from generator.ops.limit_mutants import SEGMENTS, Maxima


def workload_maxima(root: Path, file: DatasetFile) -> Maxima:
    """Return the maxima of a definition's workloads; empty without any.

    Tensors that can't be read count as none: rules report those.
    """
    axes: dict[str, int] = {}
    values: dict[str, int] = {}
    segments: dict[str, int] = {}
    for workload in workloads_of(root, file.op_type, file.name):
        _raise(axes, workload["axes"])
        for name, source in workload["inputs"].items():
            tensor = _tensor(root, source)
            if tensor is None or tensor.is_floating_point() or not tensor.numel():
                continue
            _raise(values, {name: int(tensor.max())})
            if name.endswith(SEGMENTS) and len(tensor) > 1:
                _raise(segments, {name: int(tensor.diff().max())})
    return Maxima(axes, values, segments)


def _raise(known: dict[str, int], sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        known[name] = max(size, known.get(name, 0))


def _tensor(root: Path, source: Mapping[str, Any]) -> torch.Tensor | None:
    from safetensors import safe_open

    if source["type"] != "safetensors":
        return None
    try:
        with safe_open(str(root / source["path"]), "pt") as file:
            tensor: torch.Tensor = file.get_tensor(source["tensor_key"])
    except Exception:  # noqa: BLE001 - whatever the dataset's files hold
        return None
    return tensor
