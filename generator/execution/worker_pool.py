"""Run a task on many definitions in worker processes, side by side."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic

from generator.dataset.paths import DatasetFile
from generator.execution.child import by_status
from generator.execution.task import Event, Task
from generator.execution.task_cache import R, load, make_folder, store
from generator.execution.worker_process import start_worker
from generator.problems.messages import one_line

_WORKER = "generator.execution.worker"
_LEAVING_SECONDS = 10.0
Progress = Callable[[R, bool], None]


@dataclass(frozen=True)
class PoolOptions:
    """Hold what the user chose; `state` is the folder of the cache, None caches nothing.

    `jobs` are the processes that work at a time; `fresh` ignores results in the cache.
    """

    dataset: Path
    state: Path | None
    jobs: int = 1
    fresh: bool = False


def run_task(
    files: Sequence[DatasetFile],
    task: Task[R],
    options: PoolOptions,
    progress: Progress[R],
) -> list[R]:
    """Run a task on definitions in worker processes; return results in the files' order.

    Where there are fewer definitions than jobs, each may use as many processes as are
    left to it. `progress` gets each result as it comes, and whether it was in the cache.
    Interrupted, it ends the workers; results that came are in the cache. Raises OSError,
    before the work, where the cache can't be written to.
    """
    if options.state is not None:
        make_folder(options.state)
    results: dict[str, R] = {}
    waiting: queue.SimpleQueue[tuple[DatasetFile, str]] = queue.SimpleQueue()
    count = 0
    for file in files:
        key = task.key(file)
        known = None
        if options.state is not None and not options.fresh:
            known = load(options.state, key, task.kind)
        if known is not None:
            results[file.path] = known
            progress(known, True)
        else:
            waiting.put((file, key))
            count += 1
    done: queue.SimpleQueue[tuple[DatasetFile, R]] = queue.SimpleQueue()
    common = {
        "root": str(options.dataset.resolve()),
        "work": task.work,
        "timeout": task.timeout,
        "lanes": max(options.jobs // max(count, 1), 1),
    }
    slots = [
        _Slot(task, common, waiting, done) for _ in range(min(options.jobs, count))
    ]
    try:
        for slot in slots:
            slot.start()
        for _ in range(count):
            file, result = _next(done)
            results[file.path] = result
            is_sound = not result.error and _is_of(result, file, task)
            if options.state is not None and is_sound:
                store(options.state, result)
            progress(result, False)
    finally:
        for slot in slots:
            slot.stop()
        for slot in slots:
            if slot.is_alive():
                slot.join(_LEAVING_SECONDS)
    return [results[file.path] for file in files]


def _is_of(result: R, file: DatasetFile, task: Task[R]) -> bool:
    """Return whether what the result depends on is what it was before the work.

    Else the worker may have read another text than the one that the key is of.
    """
    try:
        return task.key(file) == result.key
    except OSError:
        return False


def _next(
    done: queue.SimpleQueue[tuple[DatasetFile, R]],
) -> tuple[DatasetFile, R]:
    while True:
        # with a timeout, so that Ctrl-C is seen on every system
        with suppress(queue.Empty):
            return done.get(timeout=0.5)


class _Slot(threading.Thread, Generic[R]):
    """Give one worker a definition after another, and a new one where it is gone."""

    def __init__(
        self,
        task: Task[R],
        common: Mapping[str, Any],
        waiting: queue.SimpleQueue[tuple[DatasetFile, str]],
        done: queue.SimpleQueue[tuple[DatasetFile, R]],
    ) -> None:
        super().__init__(daemon=True)
        self._task = task
        self._common = common
        self._waiting = waiting
        self._done = done
        self._worker: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> None:
        """Work until nothing is waiting any more."""
        try:
            self._work()
        finally:
            self._end_worker()

    def _work(self) -> None:
        while not self._stopped:
            try:
                file, key = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                result = self._task.read(file, key, self._events(file))
            except Exception as error:  # noqa: BLE001
                # the next events of this worker may be about this definition still
                self._end_worker()
                result = self._task.broken(file, key, _why(error))
            if not self._stopped:
                self._done.put((file, result))

    def stop(self) -> None:
        """End the worker, whatever it does; its children, and this thread, follow."""
        self._stopped = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def _end_worker(self) -> None:
        """End the worker and let its pipes go."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.kill()
        for pipe in (worker.stdin, worker.stdout):
            # buffered text can't be sent any more
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        worker.wait()

    def _events(self, file: DatasetFile) -> Iterator[Event]:
        """Yield the worker's events on a definition, last `done` or `broken`."""
        if self._worker is None:
            self._worker = start_worker(_WORKER)
        worker = self._worker
        if self._stopped:
            # meanwhile: nobody else is going to end it
            worker.kill()
        assert worker.stdin is not None
        assert worker.stdout is not None
        arguments: Mapping[str, Any] = {
            **self._common,
            "file": asdict(file),
            **self._task.task(file),
        }
        try:
            worker.stdin.write(json.dumps(arguments) + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                event = json.loads(line)
                yield event
                if event["event"] in ("broken", "done"):
                    return
        except BrokenPipeError:
            pass
        # it is about to be gone, or was killed: before it is ended here
        with suppress(subprocess.TimeoutExpired):
            worker.wait(_LEAVING_SECONDS)
        self._end_worker()
        yield {"event": "broken", "why": f"the worker ended {by_status(worker.wait())}"}


def _why(error: Exception) -> str:
    """Return why there is no result: other code may have written the events."""
    if isinstance(error, OSError) or type(error) is ValueError:
        return str(error)
    return one_line(f"the worker's answer is none: {type(error).__name__}: {error}")
