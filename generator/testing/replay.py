"""The test against recorded outputs of production kernels: it runs on any machine."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from generator.testing import positions
from generator.testing.available import rewritten_by
from generator.testing.compare import FAILED, Comparison
from generator.testing.definition import Case
from generator.testing.fingerprint import case_value, input_hashes, interface_hash
from generator.testing.harness import RecordProperty, ReferenceTests
from generator.testing.obstacle import Kind
from generator.testing.policy import Question
from generator.testing.recording_file import (
    FOLDER,
    Recording,
    read,
    read_description,
    recording_path,
)
from generator.testing.rows import keep_rows, leading_axis
from generator.testing.skipping import skip
from generator.testing.tolerance import RECORDED
from generator.testing.trial import Trial

# beside the recordings: definition → why it has none
UNRECORDED = "unrecorded.json"


class MatchesRecorded(ReferenceTests):
    """Test against what production kernels returned on a GPU, once."""

    def test_matches_recorded(
        self, trial: Trial, recordings: Path, record_property: RecordProperty
    ) -> None:
        """The outputs agree with the recorded ones, where the kernel defines them."""
        if trial.shift is not None:
            skip(
                Kind.NOT_RECORDED,
                f"recorded: not of the inputs of --seed {trial.shift}",
            )
        path = recording_path(recordings, self.op_type, self.name)
        if not path.exists():
            skip(Kind.NOT_RECORDED, missing(type(self), recordings))
        recording = _read(path, path.stat().st_mtime_ns)
        stale = staleness(type(self), recording.body, trial)
        assert stale is None, (
            f"{path} is stale: {stale}. On a machine with a GPU: {command(self.name)}"
        )
        case = trial.case.name
        if case not in recording.body["cases"]:
            skip(
                Kind.NOT_RECORDED,
                f"recorded: not this case; it has {_known(recording)}",
            )
        labels = [
            label
            for label, of_label in recording.body["recordings"].items()
            if case in of_label["cases"]
        ]
        compared, failures = 0, []
        for label in labels:
            of_label, against = self._replay(trial, recording, label, record_property)
            compared += of_label
            failures += against
        assert not failures, "\n" + "\n".join(failures)
        if not compared:
            skip(Kind.NO_CASE, f"{', '.join(labels)}: define no row of this case")

    def _replay(
        self,
        trial: Trial,
        recording: Recording,
        label: str,
        record_property: RecordProperty,
    ) -> tuple[int, list[str]]:
        """Compare all outputs with those of one recording.

        Return how many were compared, and the failures.
        """
        about = recording.body["recordings"][label]
        source = f"{RECORDED}{about['source']}"
        rows = self._defined(trial)
        names, results = self._names(trial), self._results(trial)
        lacking = about.get("not_given", [])
        specs = {**self.interface.input_specs, **self.interface.output_specs}
        row_axis = leading_axis(specs[names[0]])
        outputs = about["cases"][trial.case.name]
        given = [name for name in names if name not in lacking]
        assert list(outputs) == given, f"{label} has {', '.join(outputs)}"
        assert len(results) == len(names), f"run() returned {len(results)} values"
        count, failures = 0, []
        for name, actual in zip(names, results, strict=True):
            if name in lacking:
                continue
            shared = rows if leading_axis(specs[name]) == row_axis else None
            result = self._held(trial, recording, label, name, actual, shared)
            if result is None:
                continue
            count += 1
            failures += self._tell(
                trial,
                name,
                source,
                result,
                record_property,
                rows_left_out=0 if shared is None else int((~shared).sum()),
                not_given=lacking,
                rewritten=rewritten_by(type(self), about["source"]),
                recording=provenance(label, about),
            )
        return count, failures

    def _defined(self, trial: Trial) -> torch.Tensor | None:
        """Return the rows that kernels define, None where that is all."""
        defined_rows = type(self).defined_rows
        if defined_rows is None:
            return None
        return defined_rows(trial.definition, trial.inputs).cpu()

    def _held(
        self,
        trial: Trial,
        recording: Recording,
        label: str,
        name: str,
        actual: Any,
        rows: torch.Tensor | None,
    ) -> Comparison | None:
        """Return the verdict on one output, None where the kernel defines none of it."""
        about = recording.body["recordings"][label]
        entry = about["cases"][trial.case.name][name]
        source, policy = about["source"], self.policies.get(name)
        if "parts" in entry:
            question = Question(trial.definition, trial.case, trial.inputs, source)
            judge = getattr(policy, "judge_recorded", None)
            assert judge is not None, f"no policy judges what {label} has of {name!r}"
            parts = recording.parts(label, trial.case.name, name)
            verdict: Comparison = judge(actual, parts, question)
            return verdict
        expected = recording.stored(label, trial.case.name, name)
        shape = tuple(entry["shape"])
        if policy is not None:
            # a policy may take an answer of another shape than the reference's
            actual, expected = on_cpu(actual), expected.reshape(shape)
            if rows is not None:
                actual, expected = keep_rows(actual, rows), keep_rows(expected, rows)
            return self._judge(trial, name, actual, expected, source, None)
        found = _misshapen(actual, entry)
        if found is not None:
            return Comparison(FAILED, (found,))
        kept = kept_positions(self.name, trial.case.name, name, entry)
        if rows is not None and shape and shape[0] == len(rows):
            defined = rows[kept // max(math.prod(shape[1:]), 1)]
            kept, expected = kept[defined], expected[defined]
            if not len(kept):
                return None
        picked = on_cpu(actual).reshape(-1)[kept]
        place = (kept, shape)
        result = self._judge(trial, name, picked, expected, source, None, place)
        return _placed(result, kept, shape)


def on_cpu(value: Any) -> Any:
    """Return a tensor on the CPU, anything else as it is."""
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def kept_positions(
    definition: str, case: str, output: str, entry: Mapping[str, Any]
) -> torch.Tensor:
    """Return the flat positions of what is stored: int64 [elements], sorted."""
    told = entry.get("positions")
    if told is None:
        return torch.arange(entry["elements"])
    itemsize = getattr(torch, entry["dtype"]).itemsize
    found = positions.stored_positions(
        tuple(entry["shape"]), itemsize, definition, case, output
    )
    assert found is not None, f"{output!r}: the recording has a part, all is expected"
    assert positions.digest(found) == told, (
        f"{output!r}: the recording is of other positions than are chosen now: "
        f"{command(definition)}"
    )
    return found


def staleness(
    cls: type[ReferenceTests], body: Mapping[str, Any], trial: Trial
) -> str | None:
    """Return what a recording was made of that is not so any more, None if nothing."""
    if body["interface"] != interface_hash(trial.definition):
        return "the definition's interface or constants have changed"
    known = {case.name for case in cls.cases(trial.definition)}
    gone = sorted(set(body["cases"]) - known)
    if gone:
        return f"there is no case {gone[0]!r} any more"
    recorded = body["cases"].get(trial.case.name)
    if recorded is None:
        return None
    if any(recorded[key] != value for key, value in case_value(trial.case).items()):
        return f"the case {trial.case.name!r} has changed"
    now = input_hashes(trial.inputs)
    changed = [name for name in now if recorded["inputs"].get(name) != now[name]]
    if changed or len(now) != len(recorded["inputs"]):
        return f"{trial.case.name}: the inputs {', '.join(changed)} have other bytes"
    return None


def command(definition: str) -> str:
    """Return the command that records a definition again."""
    return f"trace-dataset record --definition-name {definition}"


def missing(cls: type[ReferenceTests], recordings: Path) -> str:
    """Return why there is no recording to compare with, and how to make one."""
    reason = _reasons(recordings).get(cls.name)
    if reason is not None:
        return f"recorded: not yet: {reason}; to record: {command(cls.name)}"
    # within its folder: reasons are kept as evidence, which names no machine's paths
    where = recording_path(recordings, cls.op_type, cls.name).relative_to(recordings)
    return (
        f"recorded: no {where.as_posix()}; on a machine with a GPU: {command(cls.name)}"
    )


@lru_cache(maxsize=1)
def _reasons(recordings: Path) -> dict[str, str]:
    """Return why some definitions have no recording, as the dataset says."""
    try:
        value = json.loads((recordings / UNRECORDED).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def recorded_cases(
    cls: type[ReferenceTests], recordings: Path, cases: list[Case]
) -> list[Case]:
    """Return those of the cases that a definition's recording has.

    All of them where it can't be read: the test then says why.
    """
    try:
        body = read_description(recording_path(recordings, cls.op_type, cls.name))
    except Exception:  # noqa: BLE001
        return cases
    return [case for case in cases if case.name in body["cases"]]


def default_folder(tests: Path) -> Path:
    """Return a dataset's folder of recordings, seen from that of its tests."""
    return tests.parent.parent / FOLDER


def provenance(label: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reader of a verdict should know of the recording."""
    keys = ("symbol", "route", "versions", "gpu", "sm", "date")
    return {"label": label, **{key: about[key] for key in keys}}


@lru_cache(maxsize=4)
def _read(path: Path, modified: int) -> Recording:
    return read(path)


def _known(recording: Recording) -> str:
    return ", ".join(recording.body["cases"])


def _misshapen(actual: Any, entry: Mapping[str, Any]) -> str | None:
    if not isinstance(actual, torch.Tensor):
        return f"a tensor is expected, got {type(actual).__name__}"
    if list(actual.shape) != entry["shape"]:
        return f"shape {list(actual.shape)}, recorded {entry['shape']}"
    dtype = str(actual.dtype).removeprefix("torch.")
    return (
        None if dtype == entry["dtype"] else f"dtype {dtype}, recorded {entry['dtype']}"
    )


def _placed(
    result: Comparison, kept: torch.Tensor, shape: tuple[int, ...]
) -> Comparison:
    """Return a verdict whose worst elements have their index in the whole output."""
    if result.metrics is None:
        return result
    worst = tuple(
        replace(w, index=_index(int(kept[w.index[0]]), shape))
        for w in result.metrics.worst
    )
    return replace(result, metrics=replace(result.metrics, worst=worst))


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for length in reversed(shape):
        flat, place = divmod(flat, length)
        index.append(place)
    return tuple(reversed(index))
