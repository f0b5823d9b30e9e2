"""The floors of many definitions: workers side by side, results as they come."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from generator.audit.mutants import RECORDINGS
from generator.discover import DatasetFile
from generator.precision.result import Floors
from generator.worker_process import start_worker

_WORKER = "generator.precision.worker"
Tell = Callable[[Floors], None]


def measure_all(
    files: Sequence[DatasetFile],
    dataset: Path,
    jobs: int,
    tolerance: float | None,
    tell: Tell,
) -> list[Floors]:
    """Measure definitions in worker processes; return the results in the files' order.

    `tell` gets each as it comes. Interrupted, the workers are ended.
    """
    results: dict[str, Floors] = {}
    about = {
        "root": str(dataset.resolve()),
        "recordings": str((dataset / RECORDINGS).resolve()),
        "tolerance": tolerance,
        "jobs": jobs,
    }
    workers = _Workers()
    threads = ThreadPoolExecutor(min(jobs, len(files)) or 1)
    try:
        asked = [
            threads.submit(_ask, workers, file, about | {"file": asdict(file)})
            for file in files
        ]
        for future in as_completed(asked):
            result = future.result()
            results[result.path] = result
            tell(result)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        workers.end()
    return [results[file.path] for file in files]


class _Workers:
    """Lend worker processes, a new one where none is free; end them all at last."""

    def __init__(self) -> None:
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._all: list[subprocess.Popen[str]] = []
        self._lock = threading.Lock()
        self._ended = False

    def take(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._ended:
                raise OSError("the workers were ended")
            if not self._free.empty():
                return self._free.get()
            worker = start_worker(_WORKER)
            self._all.append(worker)
            return worker

    def give(self, worker: subprocess.Popen[str]) -> None:
        self._free.put(worker)

    def end(self) -> None:
        """End the workers, whatever they do; their children end with them."""
        with self._lock:
            self._ended = True
            for worker in self._all:
                worker.kill()
            for worker in self._all:
                worker.wait()


def _ask(workers: _Workers, file: DatasetFile, task: dict[str, Any]) -> Floors:
    try:
        worker = workers.take()
    except OSError as error:
        return Floors(file.name, file.op_type, file.path, error=str(error))
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(json.dumps(task) + "\n")
        worker.stdin.flush()
        result = Floors.from_dict(json.loads(worker.stdout.readline()))
    except (OSError, ValueError):
        # not given back: the next one gets another
        status = worker.poll()
        why = f"the worker ended with status {status}"
        return Floors(file.name, file.op_type, file.path, error=why)
    workers.give(worker)
    return result
