"""What `trace-dataset audit --record` keeps with the dataset."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

from generator.cli.output import Failure, say
from generator.dataset.atomic_write import write_atomically
from generator.dataset.paths import AUDIT, DatasetFile
from generator.problems.messages import one_line, plural
from generator.results.audit_file import BrokenAudit, as_text, read_audits
from generator.results.audit_result import DefinitionResult
from generator.results.audited import Audited, merge, of_result


def texts_of(dataset: Path, files: Sequence[DatasetFile]) -> list[str]:
    """Return the hash of each definition's file, empty where it can't be read.

    Stops the command where there is an audit.json that can't be added to, or none can
    be written.
    """
    _check_folder(dataset)
    _known(dataset)
    return [_sha256(dataset / file.path) for file in files]


def record(
    dataset: Path,
    files: Sequence[DatasetFile],
    results: Sequence[DefinitionResult],
    before: Sequence[str],
) -> None:
    """Add results to the dataset's audit.json; what could not be judged is taken out.

    `before` are the hashes of the files as they were when the audit began.
    """
    torch = metadata.version("torch")
    date = datetime.now(timezone.utc).date().isoformat()
    new, gone = {}, []
    for file, result, was in zip(files, results, before, strict=True):
        sha256 = _sha256(dataset / file.path)
        why = _why_not(result, changed=sha256 != was)
        if why:
            say(f"{one_line(file.name, 100)}: not recorded: {one_line(why)}")
            gone.append(file.name)
        else:
            new[file.name] = of_result(result, sha256, torch, date)
    old = _known(dataset)
    if old is None and not new:
        return
    try:
        text = as_text(merge(old or {}, new, gone))
    except ValueError as error:
        raise Failure(str(error)) from error
    write_atomically(dataset / AUDIT, text.encode("ascii"))
    say(f"{AUDIT}: {plural(len(new), 'definition')} recorded")


def _why_not(result: DefinitionResult, *, changed: bool) -> str:
    if result.error:
        return result.error
    if changed:
        return "its file changed during the audit"
    if result.left_out:
        return f"the reference itself does not pass {result.left_out[0]}"
    return ""


def _check_folder(dataset: Path) -> None:
    folder = (dataset / AUDIT).parent
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(dataset)):
        raise Failure(
            f"{AUDIT} can't be written: {folder.name} is a link that leads out of the "
            "dataset. Make it a folder."
        )
    if os.path.lexists(folder) and not folder.is_dir():
        raise Failure(
            f"{AUDIT} can't be written: {folder.name} is no folder. Move it away."
        )
    there = folder if folder.exists() else dataset
    if not os.access(there, os.W_OK | os.X_OK):
        raise Failure(f"{AUDIT} can't be written: {there}: Permission denied.")


def _known(dataset: Path) -> dict[str, Audited] | None:
    try:
        return read_audits(dataset)
    except BrokenAudit as error:
        raise Failure(str(error)) from error


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
