"""Run a task on many definitions: those with a result in the cache are not run again.

The cache has one file an outcome, named after all that the outcome depends on.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from generator.dataset.atomic_write import write_atomically
from generator.dataset.file_reading import entries, file_below, sha256_of
from generator.dataset.paths import RECORDINGS, DatasetFile
from generator.execution.cache_key import sources
from generator.execution.outcome import DONE, FORGED, Folder, Outcome, Task
from generator.problems import Failure
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
    the dataset's `root`, of which it reads the folders `parts`. `reads` are the files of
    the dataset that the result depends on beside the definition's, with `{op_type}` and
    `{name}` in their paths, and `*.json` for all of a folder; None caches nothing. It
    depends on `others` as well, which need not be the dataset's.
    `made` reads a result's fields, and raises KeyError, TypeError or ValueError for
    others; `failed` returns the result of an outcome without a value.
    """

    work: str
    timeout: float
    dataset: Path
    arguments: Mapping[str, Any]
    reads: Sequence[str] | None
    made: Callable[[Mapping[str, Any]], R]
    failed: Callable[[DatasetFile, Outcome], R]
    parts: Sequence[str] = ("definitions", str(RECORDINGS))
    others: Sequence[Path] = ()

    def key(self, file: DatasetFile) -> str:
        """Return the digest of all that the result depends on. Raises OSError."""
        if self.reads is None:
            return ""
        read = [path for pattern in self.reads for path in self._files(pattern, file)]
        what = f"{sources()}{self.work} {file.name} {sorted(self.arguments.items())}"
        digest = hashlib.sha256(what.encode())
        for path in [self.dataset / file.path, *read, *self.others]:
            where = file_below(self.dataset, path)
            digest.update(bytes.fromhex(sha256_of(*where)))
        return digest.hexdigest()[:32]

    def _files(self, pattern: str, file: DatasetFile) -> Iterator[Path]:
        """Yield the files that there are of a path with fields. Raises OSError."""
        path = pattern.format(op_type=file.op_type, name=file.name)
        folder, _, last = path.rpartition("/")
        if last != "*.json":
            if (self.dataset / path).exists():
                yield self.dataset / path
            return
        for entry in entries(self.dataset, folder):
            if entry.is_file and entry.name.endswith(".json"):
                yield self.dataset / folder / entry.name

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
            cached = json.loads((self.folder / f"{key}.json").read_text("utf-8"))
            is_its = cached["key"] == key
            outcome = Outcome(DONE, cached["value"], seconds=float(cached["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return outcome if is_its else None


def run_task(
    files: Sequence[DatasetFile],
    task: DefinitionTask[R],
    executor: LocalExecutor | RayExecutor,
    cache: OutcomeCache,
) -> Iterator[tuple[int, R, bool]]:
    """Run a task on definitions; yield the place of each with its result as it comes.

    The third value says whether the result was in the cache. Interrupted, it ends the
    work; results that came are in the cache. Raises Failure, before the work, where the
    cache can't be written to.
    """
    folder, is_full = cache.folder, False
    if folder is not None:
        _make(folder)
    keys = {file.path: task.key(file) for file in files}
    waiting: list[int] = []
    for at, file in enumerate(files):
        known = cache.load(keys[file.path])
        result = task.result(file, keys[file.path], known) if known else None
        if result is None or result.error:
            waiting.append(at)
        else:
            yield at, result, True
    tasks = [
        Task(task.work, {**task.arguments, "file": asdict(files[at])}) for at in waiting
    ]
    folders = {"root": Folder(task.dataset, task.parts)}
    for place, outcome in executor.run(tasks, folders, timeout=task.timeout):
        file = files[waiting[place]]
        key = keys[file.path]
        result = task.result(file, key, outcome)
        try:
            # else the worker may have read another text than the one that the key is of
            if folder is not None and not result.error and task.key(file) == key:
                cached = {
                    "key": key,
                    "value": outcome.value,
                    "seconds": outcome.seconds,
                }
                write_atomically(folder / f"{key}.json", json.dumps(cached).encode())
        except OSError as error:
            if not is_full:
                cache.warn(f"{folder}: results are not kept: {error.strerror}")
            is_full = True
        yield waiting[place], result, False


def _make(folder: Path) -> None:
    """Make the folder of the cache. Raises Failure where it can't be written to."""
    why = ""
    if folder.exists() and not folder.is_dir():
        why = "it is no folder"
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
    if not why and not os.access(folder, os.W_OK | os.X_OK):
        why = os.strerror(errno.EACCES)
    if why:
        raise Failure(
            f"{folder}: results can't be kept there: {why}. --resume DIR keeps them "
            "elsewhere."
        )
