"""Cases of a definition that have been recorded."""

from __future__ import annotations

from pathlib import Path

from kernel_judge.definition import Case
from kernel_judge.recording.recording_file import read_description, recording_path
from kernel_judge.subject import Subject


def recorded_cases(subject: Subject, recordings: Path, cases: list[Case]) -> list[Case]:
    """Return those of the cases that a definition's recording has.

    All of them where it can't be read: the test then says why.
    """
    try:
        body = read_description(
            recording_path(recordings, subject.op_type, subject.name)
        )
    except Exception:  # noqa: BLE001
        return cases
    return [case for case in cases if case.name in body["cases"]]
