"""Recording ground truths: workers, one a rendered file, and what becomes of each."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.rendering.standalone import SUPPORT, is_standalone

RECORDED, CURRENT, UNUSABLE, FAILED = "recorded", "current", "unusable", "failed"
_WORKER = "testing.record_worker"
# where this package lies, for a worker that starts in another folder
_ROOT = str(Path(__file__).parents[2])
# so many definitions a worker: several share what a large op_type has
_SHARE = 12
_POLL_SECONDS = 0.2
_HEADER_LINE = re.compile(r"^([0-9a-f]{64})  (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class RecordOptions:
    """Hold what the user chose; `tests` is the folder of rendered tests.

    `logs` is a folder that keeps what the workers print, tracebacks among it.
    """

    dataset: Path
    tests: Path
    out: Path
    device: str = "cuda"
    providers: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ("small",)
    force: bool = False
    jobs: int = 4
    logs: Path | None = None


@dataclass(frozen=True)
class RecordingResult:
    """Tell what became of one definition; `remarks` are for a person.

    `agrees` says whether what a kernel returned agrees with the oracle.
    """

    definition: str
    status: str
    labels: tuple[str, ...] = ()
    bytes: int = 0
    remarks: tuple[str, ...] = ()
    agrees: bool = True

    @property
    def is_fine(self) -> bool:
        """Return whether there is a recording, and the oracle agrees with it."""
        return self.status in (RECORDED, CURRENT) and self.agrees


def record(
    files: Sequence[DatasetFile],
    options: RecordOptions,
    tell: Callable[[RecordingResult], None],
) -> list[RecordingResult]:
    """Record definitions in workers side by side; return and tell all results.

    A worker that a kernel takes down costs the definition that it was at; another one
    goes on with the next.
    """
    results: list[RecordingResult] = []

    lock = threading.Lock()

    def take(result: RecordingResult) -> None:
        with lock:
            results.append(result)
            tell(result)

    shares: list[tuple[Path, list[DatasetFile]]] = []
    for op_type in sorted({file.op_type for file in files}):
        test_file = options.tests / f"test_{op_type}.py"
        fit = []
        for file in (f for f in files if f.op_type == op_type):
            obstacle = not_rendered(file, options.dataset, test_file)
            if obstacle:
                take(RecordingResult(file.name, FAILED, remarks=(obstacle,)))
            else:
                fit.append(file)
        shares += [(test_file, fit[i : i + _SHARE]) for i in range(0, len(fit), _SHARE)]
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        work = [
            pool.submit(_record_share, *share, options, take, stop) for share in shares
        ]
        try:
            for done in work:
                done.result()
        except BaseException:
            # no worker is started any more; those at work are ended
            stop.set()
            raise
    return results


def not_rendered(file: DatasetFile, dataset: Path, test_file: Path) -> str:
    """Return why a rendered file does not test a definition as it is now, or nothing."""
    advice = f"gen-tests --op-type {file.op_type}"
    try:
        header = test_file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return f"there is no {test_file}: {advice}"
    held = {name: digest for digest, name in _HEADER_LINE.findall(header)}
    now = hashlib.sha256((dataset / file.path).read_bytes()).hexdigest()
    if held.get(file.name) != now:
        return f"{test_file} was not rendered from {file.path} as it is: {advice}"
    return ""


def _record_share(
    test_file: Path,
    files: Sequence[DatasetFile],
    options: RecordOptions,
    take: Callable[[RecordingResult], None],
    stop: threading.Event,
) -> None:
    left = {file.name: _symbols(options.dataset / file.path) for file in files}
    while left and not stop.is_set():
        job = {
            "file": str(test_file.resolve()),
            "out": str(options.out.resolve()),
            "symbols": left,
            "device": options.device,
            "providers": options.providers,
            "sizes": options.sizes,
            "force": options.force,
        }
        under_way, ended, broken = "", 0, None
        for event in _worker(job, options, stop):
            if event["event"] == "start":
                under_way = event["definition"]
            elif event["event"] == "end":
                left.pop(event["definition"])
                under_way, ended = "", ended + 1
                take(_result(event))
            else:
                broken = event["why"]
        if broken is None:
            return
        # between two definitions a worker may end and leave the rest to another; before
        # the first one, it is the file that can't be worked with
        gone = list(left) if not ended else []
        gone = [under_way] if under_way else gone
        for name in gone:
            left.pop(name)
            take(RecordingResult(name, FAILED, remarks=(broken,)))


def _worker(
    job: dict[str, Any], options: RecordOptions, stop: threading.Event
) -> Iterator[dict[str, Any]]:
    """Yield a worker's events as they come, and one more where it did not end well."""
    path = os.pathsep.join(
        filter(
            None, (str(options.tests.resolve()), _ROOT, os.environ.get("PYTHONPATH"))
        )
    )
    with tempfile.TemporaryDirectory(prefix="trace-dataset-") as folder:
        report, log = Path(folder, "report"), Path(folder, "log")
        report.touch()
        if options.logs is not None:
            options.logs.mkdir(parents=True, exist_ok=True)
            log = options.logs / f"{next(iter(job['symbols']))}.log"
        package = SUPPORT if is_standalone(options.tests) else "generator"
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [sys.executable, "-m", f"{package}.{_WORKER}"],
                cwd=options.tests,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        try:
            assert worker.stdin is not None
            # one that is gone already tells why in its log
            with suppress(BrokenPipeError), worker.stdin as stdin:
                stdin.write(json.dumps({**job, "report": str(report)}).encode())
            with report.open(encoding="utf-8") as events:
                running = True
                while running and not stop.is_set():
                    running = worker.poll() is None
                    yield from map(json.loads, _whole_lines(events))
                    if running:
                        time.sleep(_POLL_SECONDS)
        finally:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        if worker.returncode and not stop.is_set():
            last = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
            why = f"the worker ended with status {worker.returncode}: {' '.join(last)}"
            yield {"event": "broken", "why": why}


def _whole_lines(events: Any) -> Iterator[str]:
    while True:
        place = events.tell()
        line = events.readline()
        if not line.endswith("\n"):
            events.seek(place)
            return
        yield line


def _result(event: dict[str, Any]) -> RecordingResult:
    return RecordingResult(
        event["definition"],
        event["status"],
        tuple(event["labels"]),
        event["bytes"],
        tuple(event["remarks"]),
        event["agrees"],
    )


def _symbols(path: Path) -> list[str]:
    """Return the symbols that a definition's fi_api tags name, none if unreadable."""
    try:
        tags = json.loads(path.read_text("utf-8")).get("tags") or []
        named = [tag for tag in tags if tag.startswith("fi_api:")]
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [tag.removeprefix("fi_api:") for tag in named]
