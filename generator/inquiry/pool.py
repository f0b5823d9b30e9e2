"""Workers side by side that are asked about many definitions, results as they come."""

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

from generator.discover import DatasetFile
from generator.inquiry.child import by_status
from generator.inquiry.inquiry import Event, Inquiry
from generator.inquiry.kept import R, find, keep, make_folder
from generator.wording import one_line
from generator.worker_process import start_worker

_WORKER = "generator.inquiry.worker"
_LEAVING_SECONDS = 10.0
Tell = Callable[[R, bool], None]


@dataclass(frozen=True)
class Options:
    """Hold what the user chose; results are kept in `state`, None keeps none.

    `jobs` are the processes that work at a time; `fresh` asks about what is kept as
    well.
    """

    dataset: Path
    state: Path | None
    jobs: int = 1
    fresh: bool = False


def ask(
    files: Sequence[DatasetFile], inquiry: Inquiry[R], options: Options, tell: Tell[R]
) -> list[R]:
    """Ask worker processes about definitions; return the results in the files' order.

    Where there are fewer definitions than jobs, each may use as many processes as are
    left to it. `tell` gets each result as it comes, and whether it was kept from an
    earlier time. Interrupted, the workers are ended; what was told is kept. Raises
    OSError, before the work, where results can't be kept.
    """
    if options.state is not None:
        make_folder(options.state)
    results: dict[str, R] = {}
    waiting: queue.SimpleQueue[tuple[DatasetFile, str]] = queue.SimpleQueue()
    count = 0
    for file in files:
        key = inquiry.key(file)
        known = None
        if options.state is not None and not options.fresh:
            known = find(options.state, key, inquiry.kind)
        if known is not None:
            results[file.path] = known
            tell(known, True)
        else:
            waiting.put((file, key))
            count += 1
    done: queue.SimpleQueue[tuple[DatasetFile, R]] = queue.SimpleQueue()
    about = {
        "root": str(options.dataset.resolve()),
        "work": inquiry.work,
        "patience": inquiry.patience,
        "lanes": max(options.jobs // max(count, 1), 1),
    }
    slots = [
        _Slot(inquiry, about, waiting, done) for _ in range(min(options.jobs, count))
    ]
    try:
        for slot in slots:
            slot.start()
        for _ in range(count):
            file, result = _next(done)
            results[file.path] = result
            is_sound = not result.error and _is_of(result, file, inquiry)
            if options.state is not None and is_sound:
                keep(options.state, result)
            tell(result, False)
    finally:
        for slot in slots:
            slot.stop()
        for slot in slots:
            if slot.is_alive():
                slot.join(_LEAVING_SECONDS)
    return [results[file.path] for file in files]


def _is_of(result: R, file: DatasetFile, inquiry: Inquiry[R]) -> bool:
    """Return whether what the result depends on is what it was before the work.

    Else the worker may have read another text than the one that the key is of.
    """
    try:
        return inquiry.key(file) == result.key
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
        inquiry: Inquiry[R],
        about: Mapping[str, Any],
        waiting: queue.SimpleQueue[tuple[DatasetFile, str]],
        done: queue.SimpleQueue[tuple[DatasetFile, R]],
    ) -> None:
        super().__init__(daemon=True)
        self._inquiry = inquiry
        self._about = about
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
                result = self._inquiry.read(file, key, self._events(file))
            except Exception as error:  # noqa: BLE001
                # what this worker says next may be of this definition still
                self._end_worker()
                result = self._inquiry.broken(file, key, _why(error))
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
            # what was not sent yet can't be any more
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        worker.wait()

    def _events(self, file: DatasetFile) -> Iterator[Event]:
        """Yield what the worker tells of a definition, last `done` or `broken`."""
        if self._worker is None:
            self._worker = start_worker(_WORKER)
        worker = self._worker
        if self._stopped:
            # meanwhile: nobody else is going to end it
            worker.kill()
        assert worker.stdin is not None
        assert worker.stdout is not None
        task: Mapping[str, Any] = {
            **self._about,
            "file": asdict(file),
            **self._inquiry.task(file),
        }
        try:
            worker.stdin.write(json.dumps(task) + "\n")
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
    """Return why there is no result: something else than the work may have answered."""
    if isinstance(error, OSError) or type(error) is ValueError:
        return str(error)
    return one_line(f"the worker's answer is none: {type(error).__name__}: {error}")
