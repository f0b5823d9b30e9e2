"""Keep the results of an audit in a dataset's audit.json or limits.json."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

from generator import __version__
from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import mode_of
from generator.dataset.lock import locked
from generator.dataset.paths import AUDIT, VERIFICATION, DatasetFile
from generator.mutation.mutants_result import DefinitionResult
from generator.problems import Failure
from generator.problems.messages import one_line, plural
from generator.results.audits import (
    Audited,
    as_text,
    read_audits,
    read_entry,
)
from generator.rules.basis import basis_in


def of_result(result: DefinitionResult, sha256: str, torch: str, date: str) -> Audited:
    """Return what is kept of an audit that was just made."""
    survivors = [vars(mutant) for mutant in result.survivors]
    counted = {
        "counts": result.counts,
        "reduced": result.reduced,
        "survivors": survivors,
    }
    origin = {"sha256": sha256, "gen_tests": __version__, "torch": torch, "date": date}
    return read_entry({**counted, **origin})


def merge(
    old: Mapping[str, Audited], new: Mapping[str, Audited], gone: Iterable[str] = ()
) -> dict[str, Audited]:
    """Return what is kept of `old` and `new` results together.

    Definitions that are only among the old stay, those that are `gone` do not. A result
    that is what it was keeps its day, so that a diff has only what changed.
    """
    merged = {**old, **new}
    for name, entry in new.items():
        known = old.get(name)
        if known is not None and replace(entry, date=known.date) == known:
            merged[name] = known
    return {name: entry for name, entry in merged.items() if name not in {*gone}}


class Recorder:
    """A dataset's audit.json, or another `path`, which gets the results of an audit.

    Made before the audit: raises Failure where there is such a file that can't be
    added to, or where none can be written, and remembers what the files were.
    """

    def __init__(
        self, dataset: Path, files: Sequence[DatasetFile], path: str = AUDIT
    ) -> None:
        mode, why = mode_of(dataset, VERIFICATION), ""
        there = dataset if mode is None else dataset / VERIFICATION
        if mode is not None and not stat.S_ISDIR(mode):
            kind = "a link" if stat.S_ISLNK(mode) else "no folder"
            why = f"{VERIFICATION} is {kind}."
        elif not os.access(there, os.W_OK | os.X_OK):
            why = f"{there} is not writable."
        if why:
            advice = f"Make {VERIFICATION} a folder that can be written to."
            raise Failure(f"{path} can't be written: {why} {advice}")
        read_audits(dataset, path)
        self._dataset, self._path = dataset, path
        self._before = {file: self._basis(file) for file in files}

    def record(self, results: Iterable[DefinitionResult]) -> Iterator[str]:
        """Write the results, in the files' order; yield a line on each remark.

        What could not be judged is taken out. Raises Failure and OSError.
        """
        date = datetime.now(timezone.utc).date().isoformat()
        new, gone = {}, []
        for (file, was), result in zip(self._before.items(), results, strict=True):
            sha256 = self._basis(file)
            why = result.error
            if not why and sha256 != was:
                why = "its file changed during the audit"
            if not why and result.left_out:
                why = f"the reference itself does not pass {result.left_out[0]}"
            if why:
                yield f"{one_line(file.name, 100)}: not recorded: {one_line(why)}"
                gone.append(file.name)
            else:
                torch = metadata.version("torch")
                new[file.name] = of_result(result, sha256, torch, date)
        with locked(self._dataset):
            old = read_audits(self._dataset, self._path)
            is_written = old is not None or bool(new)
            if is_written:
                text = as_text(merge(old or {}, new, gone), self._path)
                write_below(self._dataset, self._path, text.encode("ascii"))
        if is_written:
            yield f"{self._path}: {plural(len(new), 'definition')} recorded"

    def _basis(self, file: DatasetFile) -> str:
        """Return the hash of what a run depends on, empty where the file can't be read."""
        try:
            return basis_in(self._dataset, file.path)
        except OSError:
            return ""
