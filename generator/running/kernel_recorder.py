"""Call the kernels of one definition on all its cases, and keep what they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from generator.running.free_memory import shortage
from generator.running.machine import RecordingMachine
from generator.running.recorded_outputs import Storing
from generator.running.source_hash import source_hash
from kernel_judge.checks.available import source_name
from kernel_judge.checks.sources import answer
from kernel_judge.definition import Backend, Case
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.trial import PROVIDER_SEED, Trial, as_tuple
from kernel_judge.recording.fingerprint import (
    case_value,
    interface_hash,
    recorded_hashes,
)
from kernel_judge.recording.recording_file import Recording, Tensors
from kernel_judge.skipping import Skip
from kernel_judge.subject import Subject

# inputs up to this size are made once for all backends; larger ones would fill a machine
KEPT_BYTES = 2**30


@dataclass(frozen=True)
class RecordJob:
    """A worker's task of recording; `symbols` are the names of its fi_api tags."""

    out: str
    symbols: Sequence[str] = ()
    device: str = "cuda"
    providers: Sequence[str] = ()
    sizes: Sequence[str] = ("small",)
    force: bool = False


class KernelRecorder:
    """The outputs of one definition's kernels, collected for a recording.

    `agrees` says whether all of it agrees with the oracle.
    """

    def __init__(
        self,
        subject: Subject,
        job: RecordJob,
        machine: RecordingMachine,
        old: Recording | None,
    ) -> None:
        self.subject, self.job, self.machine, self._old = subject, job, machine, old
        self.device = torch.device(job.device)
        self.labels: list[str] = []
        self.agrees = True
        self._recordings: dict[str, Any] = {}
        self._tensors: Tensors = {}
        self._cases: dict[str, Any] = {}
        self._trials: dict[str, Trial] = {}
        self._oracles: dict[str, tuple[Any, ...] | None] = {}

    def add(self, provider: str, backend: Backend, remarks: list[str]) -> bool:
        """Call a kernel on all cases; keep its outputs, all of them or none."""
        label = self.machine.label(provider, backend)
        source = source_name(provider, backend)
        outputs: dict[str, Any] = {}
        tensors: Tensors = {}
        for case in self.subject.cases(self.job.sizes):
            trial = self._trial(case)
            free_cached_memory(self.device)
            reason = shortage(
                trial.definition, trial.case, self.device, self.subject.op.peak_bytes
            )
            if reason is not None:
                remarks.append(f"{trial.case.name} left out: {reason}")
                continue
            try:
                returned = answer(self.subject, trial, provider, backend)
            except Skip as skipped:
                remarks.append(f"{trial.case.name} left out: {skipped}")
                continue
            storing = Storing(self.subject, trial, source, label, remarks)
            of_case = storing.outputs(returned, self._oracle(trial))
            self.agrees &= storing.agrees
            outputs[trial.case.name] = of_case
            tensors |= storing.tensors
            self._describe(trial)
        if not outputs:
            return False
        about = self.machine.about(provider, backend)
        adapter = self.subject.kernels[provider].call
        symbol = [s for s in self.job.symbols if s.split(".")[0] == provider]
        lacking = {"not_given": list(backend.lacks)} if backend.lacks else {}
        self._recordings[label] = {
            **about,
            **lacking,
            "symbol": backend.symbol
            or ", ".join(symbol)
            or f"{adapter.__module__}.{adapter.__name__}",
            "route": (adapter.__doc__ or "").strip().partition("\n")[0],
            "make_inputs": source_hash(self.subject.op.make_inputs),
            "seed": PROVIDER_SEED,
            "cases": outputs,
        }
        self._tensors |= tensors
        self.labels.append(label)
        return True

    def makes_inputs_of(self, recording: Recording) -> bool:
        """Return whether the cases have the inputs that are recorded, bit for bit.

        False where memory is too short to tell.
        """
        recorded = recording.body["cases"]
        for case in self.subject.cases(self.job.sizes):
            trial = self._trial(case)
            if shortage(
                trial.definition, case, self.device, self.subject.op.peak_bytes
            ):
                return False
            if recorded.get(case.name) != _described(trial):
                return False
        return True

    def recording(self) -> Recording:
        """Return the new recordings beside those of old that are of the same inputs."""
        recordings, tensors, cases = self._recordings, self._tensors, self._cases
        if self._old is not None:
            known = {c.name: c for c in self.subject.op.cases(self.subject.definition)}
            values = {name: case_value(case) for name, case in known.items()}
            same = _of_same_inputs(self._old, {**values, **cases}, self.labels)
            cases = {**same[0], **cases}
            recordings = {**same[1], **recordings}
            tensors = {**same[2], **tensors}
        body = {
            "definition": self.subject.name,
            "op_type": self.subject.op_type,
            "interface": interface_hash(self.subject.definition),
            "cases": dict(sorted(cases.items())),
            "recordings": dict(sorted(recordings.items())),
        }
        return Recording(body, tensors)

    def _trial(self, case: Case) -> Trial:
        """Return a trial; the inputs of a small one are kept for the next backend."""
        if case.name in self._trials:
            return self._trials[case.name]
        trial = self.subject.trial(case, self.device, run=_never_run)
        if tensor_bytes(self.subject.definition, case) <= KEPT_BYTES:
            self._trials[case.name] = trial
        return trial

    def _describe(self, trial: Trial) -> None:
        if trial.case.name not in self._cases:
            self._cases[trial.case.name] = _described(trial)

    def _oracle(self, trial: Trial) -> tuple[Any, ...] | None:
        """Return the oracle's outputs for a case, None where there is no oracle."""
        name = trial.case.name
        if name not in self._oracles:
            oracle = self.subject.op.oracle
            self._oracles[name] = (
                None
                if oracle is None
                else as_tuple(oracle(trial.definition, trial.fresh_inputs()))
            )
        return self._oracles[name]


def _described(trial: Trial) -> dict[str, Any]:
    """Return what a recording says of a case: what it is, and its inputs' hashes."""
    return {
        **case_value(trial.case),
        "stream": [trial.definition.name, trial.case.name],
        "inputs": recorded_hashes(trial.inputs),
    }


def _of_same_inputs(
    old: Recording, cases: Mapping[str, Any], replaced: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any], Tensors]:
    """Return the cases, recordings and tensors of a file that stay beside new ones.

    A case goes with all that was recorded of it where it is not among `cases`, or is
    another now: the replay would find that stale.
    """
    stay = {
        name: value
        for name, value in old.body["cases"].items()
        if name in cases and all(value[k] == v for k, v in cases[name].items())
    }
    recordings = {}
    for label, about in old.body["recordings"].items():
        of_cases = {n: outputs for n, outputs in about["cases"].items() if n in stay}
        if label not in replaced and of_cases:
            recordings[label] = {**about, "cases": of_cases}
    used = {name for about in recordings.values() for name in about["cases"]}
    tensors = {
        name: tensor
        for name, tensor in old.tensors.items()
        if any(
            name.startswith(f"{case}/{label}/")
            for label, about in recordings.items()
            for case in about["cases"]
        )
    }
    return {n: v for n, v in stay.items() if n in used}, recordings, tensors


def free_cached_memory(device: torch.device) -> None:
    """Give back what PyTorch keeps of a GPU's memory and others may need."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _never_run(*inputs: Any) -> Any:
    raise AssertionError("recording never calls the reference")
