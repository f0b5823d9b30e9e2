"""Recorded outputs of a kernel, and their distances from the oracle."""

from __future__ import annotations

from typing import Any

import torch

from kernel_judge.checks.pairs import ORACLE, Pair, judge, keep_rows, output_names
from kernel_judge.comparison.compare import Comparison, compare
from kernel_judge.comparison.policy import Question
from kernel_judge.inputs.trial import Trial
from kernel_judge.recording.positions import digest, stored_positions
from kernel_judge.recording.recording_file import Tensors, tensor_name
from kernel_judge.subject import Subject

# a policy that stores nothing of its own judges an output as a whole: all of it is kept
POLICY_BYTES = 256 * 2**10


class Unstorable(Exception):
    """Raised where an output can't be recorded."""


class Storing:
    """The outputs of one source in one case, taken for a file; `remarks` are for a person.

    `agrees` says whether all outputs so far agree with the oracle's.
    """

    def __init__(
        self,
        subject: Subject,
        trial: Trial,
        source: str,
        label: str,
        remarks: list[str],
    ) -> None:
        self._subject, self._trial = subject, trial
        self._source, self._label = source, label
        self._remarks = remarks
        self.tensors: Tensors = {}
        self.agrees = True

    def outputs(
        self, returned: tuple[Any, ...], oracle: tuple[Any, ...] | None
    ) -> dict[str, Any]:
        """Return the description of a case's outputs; keep their tensors.

        What disagrees with the oracle is kept as it is, and a remark says so. Raises
        Unstorable.
        """
        specs = self._subject.specs
        names = output_names(self._subject, self._trial)
        if len(returned) != len(names):
            raise Unstorable(f"{self._source} gave {len(returned)} values")
        rows = None
        defined_rows = self._subject.op.defined_rows
        if defined_rows is not None:
            rows = defined_rows(self._trial.definition, self._trial.inputs)
        row_axis = specs[names[0]].leading_axis
        entries = {}
        for position, (name, value) in enumerate(zip(names, returned, strict=True)):
            if value is None:
                # the recording says that the kernel gives none
                continue
            if not isinstance(value, torch.Tensor):
                kind = type(value).__name__
                raise Unstorable(f"{self._source} gave a {kind} as {name!r}")
            entry = self._kept(name, value.detach().cpu())
            if oracle is not None:
                expected = oracle[position]
                if rows is not None and specs[name].leading_axis == row_axis:
                    value, expected = keep_rows(value, rows), keep_rows(expected, rows)
                entry["oracle"] = self._distance(name, value, expected)
            entries[name] = entry
        return entries

    def _kept(self, name: str, value: torch.Tensor) -> dict[str, Any]:
        """Return the description of one output; keep what is stored of it."""
        case = self._trial.case.name
        entry: dict[str, Any] = {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
        }
        policy = self._subject.op.policies.get(name)
        record = getattr(policy, "record", None)
        if record is not None:
            parts = record(value, self._question())
            for part, tensor in parts.items():
                key = tensor_name(self._label, case, name, part)
                self.tensors[key] = tensor.detach().cpu()
            return {**entry, "parts": list(parts)}
        flat = value.reshape(-1)
        if policy is None:
            chosen = stored_positions(
                tuple(value.shape), value.itemsize, self._subject.name, case, name
            )
            if chosen is not None:
                flat = flat[chosen]
                entry["positions"] = digest(chosen)
        elif value.nbytes > POLICY_BYTES:
            raise Unstorable(f"{name!r} of {case} takes {value.nbytes} bytes")
        self.tensors[tensor_name(self._label, case, name)] = flat.clone()
        return {**entry, "elements": flat.numel()}

    def _distance(self, name: str, value: torch.Tensor, expected: Any) -> Any:
        """Return how far an output is from the oracle's, where that can be said."""
        result = self._judge(name, value, expected)
        if not result.passed:
            self.agrees = False
            case = self._trial.case.name
            findings = "; ".join(result.findings)
            self._remarks.append(
                f"{self._source} disagrees with the oracle in {case}, {name!r}: {findings}"
            )
        metrics = result.metrics
        if metrics is None:
            return {"verdict": result.verdict}
        figures = {"nmse": metrics.nmse, "max_abs": metrics.max_abs}
        return {"verdict": result.verdict, **figures}

    def _judge(self, name: str, value: torch.Tensor, expected: Any) -> Comparison:
        """Return the verdict on a source's output held against the oracle's.

        It agrees where it is as close as a reference has to be to the oracle, or to
        this source.
        """
        policy, trial = self._subject.op.policies.get(name), self._trial
        if policy is None:
            bounds = [
                self._subject.tolerance(name, source, trial.case)
                for source in ("oracle", self._source)
            ]
            verdicts = [compare(value, expected, b, same_dtype=False) for b in bounds]
        else:
            pair = Pair(name, value, expected, ORACLE, self._source)
            verdicts = [
                judge(self._subject, trial, pair),
                # a policy may know undefined rows by the source's name alone
                policy.judge(value, expected, self._question()),
            ]
        return next((v for v in verdicts if v.passed), verdicts[-1])

    def _question(self) -> Question:
        trial = self._trial
        return Question(trial.definition, trial.case, trial.inputs, self._source)
