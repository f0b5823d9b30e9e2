"""The check against recorded outputs of production kernels: it runs on any machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from kernel_judge.checked import Compared, Defect, check
from kernel_judge.checks.available import rewritten_by
from kernel_judge.checks.pairs import Pair, compared, keep_rows, output_names, results
from kernel_judge.comparison.compare import FAILED, Comparison
from kernel_judge.comparison.policy import Question
from kernel_judge.comparison.tolerance import RECORDED
from kernel_judge.inputs.trial import Trial
from kernel_judge.obstacle import Kind
from kernel_judge.recording.recording_file import Recording, recording_path
from kernel_judge.recording.replay import (
    command,
    kept_positions,
    missing,
    on_cpu,
    provenance,
    recording_of,
    staleness,
)
from kernel_judge.skipping import skip
from kernel_judge.subject import Subject


@check
def recorded(subject: Subject, trial: Trial, recordings: Path) -> Iterator[Compared]:
    """The outputs agree with the recorded ones, where the kernel defines them."""
    for pair in recorded_pairs(subject, trial, recordings):
        yield compared(subject, trial, pair)


def recorded_pairs(subject: Subject, trial: Trial, recordings: Path) -> Iterator[Pair]:
    """Yield each output beside each that was recorded of it in this case.

    `recordings` is the folder of recordings. Raises Skip where none is of this case,
    Defect where the recording is of other inputs.
    """
    if trial.shift is not None:
        reason = f"recorded: not of the inputs of --seed {trial.shift}"
        skip(Kind.NOT_RECORDED, reason)
    path = recording_path(recordings, subject.op_type, subject.name)
    if not path.exists():
        skip(Kind.NOT_RECORDED, missing(subject, recordings))
    recording = recording_of(path)
    stale = staleness(subject, recording.body, trial)
    if stale is not None:
        again = command(subject.name)
        raise Defect(f"{path} is stale: {stale}. On a machine with a GPU: {again}")
    case = trial.case.name
    if case not in recording.body["cases"]:
        known = ", ".join(recording.body["cases"])
        skip(Kind.NOT_RECORDED, f"recorded: not this case; it has {known}")
    labels = [
        label
        for label, of_label in recording.body["recordings"].items()
        if case in of_label["cases"]
    ]
    count = 0
    for label in labels:
        for pair in _of_label(subject, trial, recording, label):
            count += 1
            yield pair
    if not count:
        skip(Kind.NO_CASE, f"{', '.join(labels)}: define no row of this case")


def _of_label(
    subject: Subject, trial: Trial, recording: Recording, label: str
) -> Iterator[Pair]:
    """Yield all outputs beside those of one recording."""
    about = recording.body["recordings"][label]
    rows = _defined(subject, trial)
    names, values = output_names(subject, trial), results(subject, trial)
    lacking = about.get("not_given", [])
    specs = subject.specs
    row_axis = specs[names[0]].leading_axis
    outputs = about["cases"][trial.case.name]
    if list(outputs) != [name for name in names if name not in lacking]:
        raise Defect(f"{label} has {', '.join(outputs)}")
    if len(values) != len(names):
        raise Defect(f"run() returned {len(values)} values")
    for name, actual in zip(names, values, strict=True):
        if name in lacking:
            continue
        shared = rows if specs[name].leading_axis == row_axis else None
        more = {
            "rows_left_out": 0 if shared is None else int((~shared).sum()),
            "not_given": lacking,
            "rewritten": rewritten_by(subject, about["source"]),
            "recording": provenance(label, about),
        }
        pair = _pair(subject, trial, recording, label, name, actual, shared, more)
        if pair is not None:
            yield pair


def _defined(subject: Subject, trial: Trial) -> torch.Tensor | None:
    """Return the rows that kernels define, None where that is all."""
    defined_rows = subject.op.defined_rows
    if defined_rows is None:
        return None
    return defined_rows(trial.definition, trial.inputs).cpu()


def _pair(
    subject: Subject,
    trial: Trial,
    recording: Recording,
    label: str,
    name: str,
    actual: Any,
    rows: torch.Tensor | None,
    more: Mapping[str, Any],
) -> Pair | None:
    """Return one output beside the recorded one, None where the kernel defines none."""
    about = recording.body["recordings"][label]
    case = trial.case.name
    entry = about["cases"][case][name]
    source, policy = about["source"], subject.op.policies.get(name)

    def pair(actual: Any, expected: Any, **more_of_pair: Any) -> Pair:
        return Pair(
            name, actual, expected, f"{RECORDED}{source}", about=more, **more_of_pair
        )

    if "parts" in entry:
        question = Question(trial.definition, trial.case, trial.inputs, source)
        judge = getattr(policy, "judge_recorded", None)
        if judge is None:
            raise Defect(f"no policy judges what {label} has of {name!r}")
        parts = recording.parts(label, case, name)
        return pair(actual, parts, settled=judge(actual, parts, question))
    expected = recording.stored(label, case, name)
    shape = tuple(entry["shape"])
    if policy is not None:
        # a policy may take an answer of another shape than the reference's
        actual, expected = on_cpu(actual), expected.reshape(shape)
        if rows is not None:
            actual, expected = keep_rows(actual, rows), keep_rows(expected, rows)
        return pair(actual, expected)
    misshapen = _misshapen(actual, entry)
    if misshapen is not None:
        return pair(actual, expected, settled=Comparison(FAILED, (misshapen,)))
    places = kept_positions(subject.name, case, name, entry)
    if rows is not None and shape and shape[0] == len(rows):
        defined = rows[places // max(math.prod(shape[1:]), 1)]
        places, expected = places[defined], expected[defined]
        if not len(places):
            return None
    return pair(on_cpu(actual).reshape(-1)[places], expected, place=(places, shape))


def _misshapen(actual: Any, entry: Mapping[str, Any]) -> str | None:
    if not isinstance(actual, torch.Tensor):
        return f"a tensor is expected, got {type(actual).__name__}"
    if list(actual.shape) != entry["shape"]:
        return f"shape {list(actual.shape)}, recorded {entry['shape']}"
    dtype = str(actual.dtype).removeprefix("torch.")
    return (
        None if dtype == entry["dtype"] else f"dtype {dtype}, recorded {entry['dtype']}"
    )
