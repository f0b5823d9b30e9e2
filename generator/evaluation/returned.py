"""Check what a call returned and left behind against what is declared."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch

from generator.evaluation.arena import Layout, Slot
from generator.evaluation.verdict import (
    INCORRECT_DTYPE,
    INCORRECT_SHAPE,
    REWARD_HACK,
    Refused,
)


def output_of(shared: Slot, place: Mapping[str, Any], told: Mapping[str, Any]) -> Any:
    """Return an output: what lies in its place, or the number that was returned."""
    value = told.get("value")
    if "at" not in place:
        return value
    if isinstance(value, (bool, int, float)):
        return torch.tensor(value, dtype=getattr(torch, place["dtype"]))
    return shared.taken(dict(place))


def check_returned(described: Any, layout: Layout, device: str) -> None:
    """Hold what was returned against what is declared. Raises Refused."""
    if not isinstance(described, list):
        raise Refused(REWARD_HACK, "it answered a call without outputs")
    if len(described) != len(layout.outputs):
        why = f"it returned {len(described)} values, {len(layout.outputs)} are declared"
        raise Refused(INCORRECT_SHAPE, why)
    for number, (found, place) in enumerate(
        zip(described, layout.outputs, strict=True)
    ):
        where = f"output {number}"
        if "at" not in place or ("value" in found and not place["shape"]):
            if "value" not in found:
                raise Refused(INCORRECT_DTYPE, f"{where} is no number")
            continue
        if found.get("type") != "torch.Tensor" or "dtype" not in found:
            kind = found.get("type", "number")
            is_tensor = "dtype" in found
            verdict = REWARD_HACK if is_tensor else INCORRECT_DTYPE
            raise Refused(verdict, f"{where} is a {kind}, no torch.Tensor")
        if found["shape"] != place["shape"]:
            why = f"{where} is {found['shape']}, declared {place['shape']}"
            raise Refused(INCORRECT_SHAPE, why)
        if found["dtype"] != place["dtype"]:
            why = f"{where} is {found['dtype']}, declared {place['dtype']}"
            raise Refused(INCORRECT_DTYPE, why)
        if found["layout"] != "torch.strided" or found["device"] != device:
            why = f"{where} is {found['layout']} on {found['device']}, not on {device}"
            raise Refused(REWARD_HACK, why)
        if found.get("aliases"):
            raise Refused(REWARD_HACK, f"{where} shares its memory with an input")


def living(pid: int, worker: int) -> tuple[int, set[int]]:
    """Return the threads of a process, and what else lives below it and its worker."""
    own = f"/proc/{pid}/task"
    try:
        threads = len(os.listdir(own))
    except OSError:
        return 1, set()
    found: set[int] = set()
    for task in (f"/proc/{worker}/task/{worker}", *(f"{own}/{t}" for t in _list(own))):
        with suppress(OSError), open(f"{task}/children") as children:
            found |= set(map(int, children.read().split()))
    return threads, {child for child in found - {pid} if not _is_dead(child)}


def _list(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []


def _is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True
