"""The audit of many definitions: workers side by side, results as they come."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generator.audit.kept import find, keep, key_of
from generator.audit.result import DefinitionResult, MutantResult
from generator.discover import DatasetFile

RECORDINGS = Path("blob") / "ground_truth"
_WORKER = [sys.executable, "-m", "generator.audit.worker"]
# of the caller's environment; the rest is none of a dataset's business
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
Tell = Callable[[DefinitionResult, bool], None]


@dataclass(frozen=True)
class Options:
    """Hold what the user chose; results are kept in `state`, None keeps none.

    `fresh` audits what is kept as well.
    """

    dataset: Path
    state: Path | None
    jobs: int = 1
    fresh: bool = False
    tolerance: float | None = None


def audit(
    files: Sequence[DatasetFile], options: Options, tell: Tell
) -> list[DefinitionResult]:
    """Audit definitions in worker processes; return the results in the files' order.

    `tell` gets each result as it comes, and whether it was kept from an earlier audit.
    Interrupted, the workers are ended; what was told is kept.
    """
    results: dict[str, DefinitionResult] = {}
    waiting: queue.SimpleQueue[tuple[DatasetFile, str]] = queue.SimpleQueue()
    count = 0
    for file in files:
        key = key_of(
            options.dataset / file.path,
            options.dataset / RECORDINGS / file.op_type / f"{file.name}.safetensors",
            options.tolerance,
        )
        known = None
        if options.state is not None and not options.fresh:
            known = find(options.state, key)
        if known is not None:
            results[file.path] = known
            tell(known, True)
        else:
            waiting.put((file, key))
            count += 1
    done: queue.SimpleQueue[tuple[str, DefinitionResult]] = queue.SimpleQueue()
    slots = [_Slot(options, waiting, done) for _ in range(min(options.jobs, count))]
    try:
        for slot in slots:
            slot.start()
        for _ in range(count):
            path, result = _next(done)
            results[path] = result
            if options.state is not None and not result.error:
                keep(options.state, result)
            tell(result, False)
    finally:
        for slot in slots:
            slot.stop()
    return [results[file.path] for file in files]


def _next(
    done: queue.SimpleQueue[tuple[str, DefinitionResult]],
) -> tuple[str, DefinitionResult]:
    while True:
        # with a timeout, so that Ctrl-C is seen on every system
        with suppress(queue.Empty):
            return done.get(timeout=0.5)


class _Slot(threading.Thread):
    """Give one worker a definition after another, and a new one where it is gone."""

    def __init__(
        self,
        options: Options,
        waiting: queue.SimpleQueue[tuple[DatasetFile, str]],
        done: queue.SimpleQueue[tuple[str, DefinitionResult]],
    ) -> None:
        super().__init__(daemon=True)
        self._options = options
        self._waiting = waiting
        self._done = done
        self._worker: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> None:
        """Work until nothing is waiting any more."""
        while not self._stopped:
            try:
                file, key = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                result = self._audited(file, key)
            except (OSError, ValueError) as error:
                result = _broken(file, key, str(error))
            if not self._stopped:
                self._done.put((file.path, result))

    def stop(self) -> None:
        """End the worker, whatever it does; its children end with it."""
        self._stopped = True
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.wait()

    def _audited(self, file: DatasetFile, key: str) -> DefinitionResult:
        if self._worker is None:
            self._worker = _started()
        worker = self._worker
        assert worker.stdin is not None
        assert worker.stdout is not None
        task = {
            "root": str(self._options.dataset.resolve()),
            "file": asdict(file),
            "recordings": str((self._options.dataset / RECORDINGS).resolve()),
            "tolerance": self._options.tolerance,
        }
        mutants: list[MutantResult] = []
        ready: dict[str, Any] = {}
        try:
            worker.stdin.write(json.dumps(task) + "\n")
            worker.stdin.flush()
            for line in worker.stdout:
                event = json.loads(line)
                if event["event"] == "ready":
                    ready = event
                elif event["event"] == "mutant":
                    mutants.append(MutantResult(**event["result"]))
                elif event["event"] == "broken":
                    return _broken(file, key, event["why"])
                elif event["event"] == "done":
                    return DefinitionResult(
                        file.name,
                        file.op_type,
                        key,
                        tuple(mutants),
                        ready["reduced"],
                        tuple(ready["left_out"]),
                        ready["recorded_cases"],
                        event["seconds"],
                    )
        except BrokenPipeError:
            pass
        self._worker = None
        status = worker.wait()
        return _broken(file, key, f"the worker ended with status {status}")


def _broken(file: DatasetFile, key: str, why: str) -> DefinitionResult:
    return DefinitionResult(file.name, file.op_type, key, error=why)


def _started() -> subprocess.Popen[str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.Popen(
        _WORKER,
        env={
            **passed,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONHASHSEED": "0",
            # a process a core: threads would only be in each other's way, and a forked
            # child can't use those of its parent
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Ctrl-C is for the command: it ends the workers
        start_new_session=True,
    )
