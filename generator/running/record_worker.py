"""Record what production kernels return: one file a definition, whole or not at all.

`trace-dataset record` calls `record_definition` in worker processes.
"""

from __future__ import annotations

import base64
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from generator.dataset.atomic_write import write_atomically
from generator.running.kernel_recorder import KernelRecorder, RecordJob
from generator.running.machine import RecordingMachine, this_machine
from generator.running.packing import pack
from generator.running.recorded_outputs import Unstorable
from generator.running.rendered import load_rendered
from generator.running.source_hash import source_hash
from kernel_judge.checks.available import source_name
from kernel_judge.definition import Backend
from kernel_judge.provider import providers as known_providers
from kernel_judge.providers import backend_obstacle
from kernel_judge.recording.fingerprint import case_value, interface_hash
from kernel_judge.recording.recording_file import (
    Damaged,
    Recording,
    read,
    recording_path,
)
from kernel_judge.subject import Subject

RECORDED, CURRENT, UNUSABLE, FAILED = "recorded", "current", "unusable", "failed"
Sources = list[tuple[str, Backend]]


@dataclass
class WorkerResult:
    """The outcome for one definition; `remarks` are for a person.

    `agrees` says whether all that was called agrees with the oracle.
    """

    definition: str
    status: str
    labels: tuple[str, ...] = ()
    bytes: int = 0
    agrees: bool = True
    remarks: list[str] = field(default_factory=list)


def write(path: Path, recording: Recording) -> int:
    """Write a recording whole or not at all; return its bytes. Raises OSError."""
    content = pack(recording)
    write_atomically(path, content)
    return len(content)


def record(
    subject: Subject,
    job: RecordJob,
    machine: RecordingMachine,
    keep: Callable[[Path, Recording], int] = write,
) -> WorkerResult:
    """Record one definition's cases from its kernels, beside what its file has.

    `keep` takes the recording and returns its bytes. What was recorded of other inputs
    or another interface is dropped. Raises nothing but KeyboardInterrupt: what went
    wrong is in the result.
    """
    result = WorkerResult(subject.name, FAILED)
    device = torch.device(job.device)
    sources = _sources(subject, job.providers, device, result.remarks)
    if not sources:
        result.status = UNUSABLE
        return result
    path = recording_path(Path(job.out), subject.op_type, subject.name)
    try:
        old = _kept(subject, path, result.remarks)
        wanted = [machine.label(*source) for source in sources]
        taken = KernelRecorder(subject, job, machine, old)
        if not job.force and old is not None and _is_current(taken, old, wanted):
            result.status, result.labels = CURRENT, tuple(wanted)
            return result
        recording = _first_that_records(taken, sources, result.remarks)
        result.agrees = taken.agrees
        if recording is None:
            return result
        result.bytes = keep(path, recording)
        result.labels = tuple(taken.labels)
        result.status = RECORDED
    except (OSError, Unstorable) as error:
        result.remarks.append(str(error))
    return result


def _sources(
    subject: Subject,
    providers: Sequence[str],
    device: torch.device,
    remarks: list[str],
) -> Sources:
    """Return the usable sources, those of the preferred provider first."""
    if subject.unresolved is not None:
        remarks.append(f"UNRESOLVED: {subject.unresolved}")
        return []
    usable, reasons = [], []
    for provider in providers or known_providers():
        backends = subject.backends(provider)
        if not backends:
            reasons.append(f"{provider}: no adapter")
        for backend in backends:
            obstacle = backend_obstacle(provider, backend, device)
            if obstacle is None:
                usable.append((provider, backend))
            else:
                reasons.append(f"{source_name(provider, backend)}: {obstacle}")
    if not usable:
        remarks.append(f"no provider is usable: {'; '.join(dict.fromkeys(reasons))}")
    return usable


def _kept(subject: Subject, path: Path, remarks: list[str]) -> Recording | None:
    """Return what a definition's file has, unless it is of another interface."""
    try:
        old = read(path)
    except FileNotFoundError:
        return None
    except Damaged as error:
        remarks.append(f"replaced: {error}")
        return None
    if old.body["interface"] != interface_hash(subject.definition):
        remarks.append("dropped what was recorded of another interface")
        return None
    return old


def _is_current(taken: KernelRecorder, old: Recording, wanted: Sequence[str]) -> bool:
    """Return whether a file has all the first provider's labels, of the same inputs.

    The hash of the source of the inputs stands for their bytes, which take longer and
    are compared where the source is another one.
    """
    subject = taken.subject
    cases = {c.name: case_value(c) for c in subject.cases(taken.job.sizes)}
    recorded = old.body["cases"]
    if not set(recorded) <= {
        case.name for case in subject.op.cases(subject.definition)
    }:
        return False
    if any(
        name not in recorded or any(recorded[name][k] != v for k, v in value.items())
        for name, value in cases.items()
    ):
        return False
    present = old.body["recordings"]
    of_first = [label for label in wanted if _provider(label) == _provider(wanted[0])]
    if not all(label in present for label in of_first):
        return False
    source = source_hash(subject.op.make_inputs)
    same_source = all(present[label]["make_inputs"] == source for label in of_first)
    return same_source or taken.makes_inputs_of(old)


def _provider(label: str) -> str:
    return label.partition("@")[0].partition("/")[0]


def _first_that_records(
    taken: KernelRecorder, sources: Sources, remarks: list[str]
) -> Recording | None:
    """Return the recording by the first provider of which a backend can be recorded.

    With providers named by the user, by all of them.
    """
    done: set[str] = set()
    for provider, backend in sources:
        if done and provider not in done and not taken.job.providers:
            break
        try:
            if taken.add(provider, backend, remarks):
                done.add(provider)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            text = " ".join(str(error).split())[:300]
            name = source_name(provider, backend)
            remarks.append(f"{name} failed: {type(error).__name__}: {text}")
            traceback.print_exc()
            if not can_go_on(taken.device):
                break
    return taken.recording() if done else None


def can_go_on(device: torch.device) -> bool:
    """Return whether no kernel has broken the process's CUDA context yet."""
    try:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except Exception:  # noqa: BLE001 - whatever it is, nothing can be computed
        return False
    return True


def record_definition(task: Mapping[str, Any], link: object) -> dict[str, Any]:
    """Record a definition; return its WorkerResult and the new file's bytes, base64.

    What the kernels print goes to the task's `log`.
    """
    _print_to(Path(task["log"]))
    subjects = _subjects(Path(task["tests"], task["file"]))
    name = task["name"]
    if name not in subjects:
        missing = [f"{task['file']} does not test it"]
        return {**vars(WorkerResult(name, FAILED, remarks=missing)), "content": ""}
    choice = ("out", "symbols", "device", "providers", "sizes", "force")
    job = RecordJob(**{option: task[option] for option in choice})
    packed: list[bytes] = []

    def keep(path: Path, recording: Recording) -> int:
        packed.append(pack(recording))
        return len(packed[0])

    machine = this_machine(torch.device(job.device))
    result = record(subjects[name], job, machine, keep)
    content = base64.b64encode(packed[0]).decode() if packed else ""
    return {**vars(result), "content": content}


def _print_to(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("wb") as output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)


@cache
def _subjects(file: Path) -> dict[str, Subject]:
    return {subject.name: subject for subject in load_rendered(file)}
