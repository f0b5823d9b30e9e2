"""Run a task on many definitions: those with a result in the cache are not run again.

The cache has one file an outcome, named after all that the outcome depends on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from generator.dataset.atomic_write import write_atomically
from generator.dataset.file_reading import file_below, sha256_of
from generator.dataset.paths import RECORDINGS, DatasetFile
from generator.execution.cache_key import sources
from generator.execution.outcome import DONE, FORGED, Folder, Outcome, Task
from generator.problems.messages import one_line

if TYPE_CHECKING:
    from generator.execution.cluster import RayExecutor
    from generator.execution.local import LocalExecutor


class Result(Protocol):
    """The result of a task on a definition; `error` says why there is none."""

    @property
    def error(self) -> str:
        """Return an empty string where there is no error."""


R = TypeVar("R", bound=Result)


@dataclass(frozen=True)
class DefinitionTask(Generic[R]):
    """Define the work on a definition, and how its outcome becomes a result.

    `work` names the function. Its arguments are `arguments`, the definition's `file` and
    the dataset's `root`, of which it reads the folders `parts`. `reads` returns the
    files that the result depends on beside the definition's; None caches nothing.
    `made` reads a result's fields, and raises KeyError, TypeError or ValueError for
    others; `failed` returns the result of an outcome without a value.
    """

    work: str
    timeout: float
    dataset: Path
    arguments: Mapping[str, Any]
    reads: Callable[[DatasetFile], Sequence[Path]] | None
    made: Callable[[Mapping[str, Any]], R]
    failed: Callable[[DatasetFile, Outcome], R]
    parts: Sequence[str] = ("definitions", str(RECORDINGS))

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the result depends on. Raises OSError."""
        if self.reads is None:
            return ""
        what = f"{sources()}{self.work} {file.name} {sorted(self.arguments.items())}"
        digest = hashlib.sha256(what.encode())
        for path in [self.dataset / file.path, *self.reads(file)]:
            where = file_below(self.dataset, path)
            digest.update(bytes.fromhex(sha256_of(*where)))
        return digest.hexdigest()[:32]

    def result(self, file: DatasetFile, key: str, outcome: Outcome) -> R:
        """Return the result of an outcome."""
        if outcome.status != DONE:
            return self.failed(file, outcome)
        named = {"definition": file.name, "op_type": file.op_type, "path": file.path}
        more = {**named, "key": key, "seconds": outcome.seconds}
        try:
            return self.made({"error": "", **outcome.value, **more})
        except (KeyError, TypeError, ValueError) as error:
            # other code may have written it
            why = f"the worker's answer is none: {type(error).__name__}: {error}"
            return self.failed(file, Outcome(FORGED, why=one_line(why)))


@dataclass(frozen=True)
class OutcomeCache:
    """The cache of outcomes: `folder` is the cache, None caches nothing.

    `fresh` ignores what is in the cache. `warn` gets one line on the first outcome that
    can't be kept.
    """

    folder: Path | None
    fresh: bool = False
    warn: Callable[[str], None] = lambda text: None

    def load(self, key: str) -> Outcome | None:
        """Return the cached outcome of a key; None where there is none."""
        if self.folder is None or self.fresh:
            return None
        try:
            kept = json.loads((self.folder / f"{key}.json").read_text("utf-8"))
            is_its = kept["key"] == key
            outcome = Outcome(DONE, kept["value"], seconds=float(kept["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return outcome if is_its else None


def run_task(
    files: Sequence[DatasetFile],
    task: DefinitionTask[R],
    executor: LocalExecutor | RayExecutor,
    cache: OutcomeCache,
    progress: Callable[[R, bool], None],
) -> list[R]:
    """Run a task on definitions; return results in the files' order.

    `progress` gets each result as it comes, and whether it was in the cache.
    Interrupted, it ends the work; results that came are in the cache. Raises OSError,
    before the work, where the cache can't be written to.
    """
    folder, is_full = cache.folder, False
    if folder is not None:
        _make(folder)
    keys = {file.path: task.key(file) for file in files}
    results: dict[str, R] = {}
    for file in files:
        key = keys[file.path]
        if (known := cache.load(key)) is None:
            continue
        if not (result := task.result(file, key, known)).error:
            results[file.path] = result
            progress(result, True)
    waiting = [file for file in files if file.path not in results]
    tasks = [Task(task.work, {**task.arguments, "file": asdict(f)}) for f in waiting]
    folders = {"root": Folder(task.dataset, task.parts)}
    for place, outcome in executor.run(tasks, folders, timeout=task.timeout):
        file, key = waiting[place], keys[waiting[place].path]
        result = results[file.path] = task.result(file, key, outcome)
        try:
            # else the worker may have read another text than the one that the key is of
            if folder is not None and not result.error and task.key(file) == key:
                kept = {"key": key, "value": outcome.value, "seconds": outcome.seconds}
                write_atomically(folder / f"{key}.json", json.dumps(kept).encode())
        except OSError as error:
            if not is_full:
                cache.warn(f"{folder}: results are not kept: {error.strerror}")
            is_full = True
        progress(result, False)
    return [results[file.path] for file in files]


def _make(folder: Path) -> None:
    """Make the folder of the cache. Raises OSError where it can't be written to."""
    if folder.exists() and not folder.is_dir():
        what = "the cache is a folder, and this is none"
        raise NotADirectoryError(errno.ENOTDIR, what, str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
