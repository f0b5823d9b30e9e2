"""Recorded outputs of production kernels: where they lie, whether they are still true."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from kernel_judge.checked import Defect
from kernel_judge.inputs.trial import Trial
from kernel_judge.recording import positions
from kernel_judge.recording.fingerprint import (
    case_value,
    interface_hash,
    recorded_hashes,
)
from kernel_judge.recording.recording_file import Recording, read, recording_path
from kernel_judge.subject import Subject

# beside the recordings: definition → why it has none
UNRECORDED = "unrecorded.json"


def on_cpu(value: Any) -> Any:
    """Return a tensor on the CPU, anything else as it is."""
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def kept_positions(
    definition: str, case: str, output: str, entry: Mapping[str, Any]
) -> torch.Tensor:
    """Return the flat positions of what is stored: int64 [elements], sorted."""
    expected = entry.get("positions")
    if expected is None:
        return torch.arange(entry["elements"])
    itemsize = getattr(torch, entry["dtype"]).itemsize
    stored = positions.stored_positions(
        tuple(entry["shape"]), itemsize, definition, case, output
    )
    if stored is None:
        raise Defect(f"{output!r}: the recording has a part, all is expected")
    if positions.digest(stored) != expected:
        raise Defect(
            f"{output!r}: the recording is of other positions than are chosen now: "
            f"{command(definition)}"
        )
    return stored


def staleness(subject: Subject, body: Mapping[str, Any], trial: Trial) -> str | None:
    """Return what a recording was made of that is not so any more, None if nothing."""
    if body["interface"] != interface_hash(trial.definition):
        return "the definition's interface or constants have changed"
    known = {case.name for case in subject.op.cases(trial.definition)}
    gone = sorted(set(body["cases"]) - known)
    if gone:
        return f"there is no case {gone[0]!r} any more"
    recorded = body["cases"].get(trial.case.name)
    if recorded is None:
        return None
    if any(recorded[key] != value for key, value in case_value(trial.case).items()):
        return f"the case {trial.case.name!r} has changed"
    now = recorded_hashes(trial.inputs)
    changed = [name for name in now if recorded["inputs"].get(name) != now[name]]
    if changed or len(now) != len(recorded["inputs"]):
        return f"{trial.case.name}: the inputs {', '.join(changed)} have other bytes"
    return None


def command(definition: str) -> str:
    """Return the command that records a definition again."""
    return f"trace-dataset record --definition-name {definition}"


def missing(subject: Subject, recordings: Path) -> str:
    """Return why there is no recording to compare with, and how to make one."""
    reason = _reasons(recordings).get(subject.name)
    if reason is not None:
        return f"recorded: not yet: {reason}; to record: {command(subject.name)}"
    # within its folder: reasons are kept as evidence, which names no machine's paths
    where = recording_path(recordings, subject.op_type, subject.name).relative_to(
        recordings
    )
    return f"recorded: no {where.as_posix()}; on a machine with a GPU: {command(subject.name)}"


@lru_cache(maxsize=1)
def _reasons(recordings: Path) -> dict[str, str]:
    """Return why some definitions have no recording, as the dataset says."""
    try:
        value = json.loads((recordings / UNRECORDED).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def provenance(label: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reader of a verdict should know of the recording."""
    keys = ("symbol", "route", "versions", "gpu", "sm", "date")
    return {"label": label, **{key: about[key] for key in keys}}


def recording_of(path: Path) -> Recording:
    """Read a recording; the last few stay in memory until their files change."""
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> Recording:
    return read(path)
