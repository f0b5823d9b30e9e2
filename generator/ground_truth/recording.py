"""Recording ground truths: a task a definition, and what becomes of each."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import file_below, read_text
from generator.dataset.paths import DatasetFile
from generator.execution.cluster import RayExecutor
from generator.execution.local import LocalExecutor
from generator.execution.outcome import DONE, Folder, Outcome, Task
from generator.rendering.read_back import rendered_definitions
from generator.rendering.standalone import SUPPORT, is_standalone
from generator.rules.basis import basis_in
from kernel_judge.recording.recording_file import recording_path

RECORDED, CURRENT, UNUSABLE, FAILED = "recorded", "current", "unusable", "failed"
# definitions that one worker records; a large op_type is shared by several workers
_PER_WORKER = 12
# seconds for one definition: its kernels may be compiled first
_TIMEOUT = 3600.0


@dataclass(frozen=True)
class RecordOptions:
    """Options of `record`; `tests` is the folder of rendered tests.

    `logs` is a folder that keeps what the workers print, tracebacks among it.
    """

    dataset: Path
    tests: Path
    out: Path
    device: str = "cuda"
    providers: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ("small",)
    force: bool = False
    logs: Path | None = None


@dataclass(frozen=True)
class RecordingResult:
    """The outcome for one definition; `remarks` are for a person.

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
    executor: LocalExecutor | RayExecutor,
    tell: Callable[[RecordingResult], None],
) -> list[RecordingResult]:
    """Record definitions in workers; write the recordings, return and tell all results.

    A worker that a kernel takes down costs the definition that it was at; another one
    goes on with the next.
    """
    results: list[RecordingResult] = []

    def take(result: RecordingResult) -> None:
        results.append(result)
        tell(result)

    fit: list[DatasetFile] = []
    for file in sorted(files, key=lambda file: file.op_type):
        test_file = options.tests / f"test_{file.op_type}.py"
        obstacle = not_rendered(file, options.dataset, test_file)
        if obstacle:
            take(RecordingResult(file.name, FAILED, remarks=(obstacle,)))
        else:
            fit.append(file)
    package = SUPPORT if is_standalone(options.tests) else "generator"
    folders = {"tests": Folder(options.tests), "out": Folder(options.out)}
    with tempfile.TemporaryDirectory(prefix="trace-dataset-") as temporary:
        logs = Path(temporary) if options.logs is None else options.logs.resolve()
        tasks = [
            Task(
                f"{package}.running.record_worker:record_definition",
                {
                    "file": f"test_{file.op_type}.py",
                    "name": file.name,
                    "symbols": _symbols(options.dataset, file.path),
                    "device": options.device,
                    "providers": options.providers,
                    "sizes": options.sizes,
                    "force": options.force,
                    "log": str(logs / f"{file.name}.log"),
                },
            )
            for file in fit
        ]
        outcomes = executor.run(
            tasks, folders, timeout=_TIMEOUT, per_worker=_PER_WORKER
        )
        for place, outcome in outcomes:
            file = fit[place]
            path = recording_path(options.out, file.op_type, file.name)
            where = file_below(options.dataset, path)
            take(_result(file.name, where, outcome, logs / f"{file.name}.log"))
    return results


def _result(
    name: str, where: tuple[Path, str], outcome: Outcome, log: Path
) -> RecordingResult:
    """Return what became of a definition; write its recording, if it has one."""
    try:
        if outcome.status != DONE:
            last = ""
            with suppress(OSError):
                last = log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
            why = ": ".join(filter(None, (outcome.why, last)))
            return RecordingResult(name, FAILED, remarks=(why,))
        value = dict(outcome.value)
        content = value.pop("content")
        if content:
            write_below(*where, base64.b64decode(content))
        return RecordingResult(
            **{**value, **{n: tuple(value[n]) for n in ("labels", "remarks")}}
        )
    except OSError as error:
        return RecordingResult(name, FAILED, remarks=(str(error),))


def not_rendered(file: DatasetFile, dataset: Path, test_file: Path) -> str:
    """Return why a rendered file does not test a definition as it is now, or nothing."""
    advice = f"gen-tests --op-type {file.op_type}"
    try:
        held = rendered_definitions(read_text(*file_below(dataset, test_file)))
    except OSError:
        return f"there is no {test_file}: {advice}"
    now = basis_in(dataset, file.path)
    if held.get(file.name) != now:
        return f"{test_file} was not rendered from {file.path} as it is: {advice}"
    return ""


def _symbols(dataset: Path, path: str) -> list[str]:
    """Return the symbols that a definition's fi_api tags name, none if unreadable."""
    try:
        tags = json.loads(read_text(dataset, path)).get("tags") or []
        named = [tag for tag in tags if tag.startswith("fi_api:")]
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [tag.removeprefix("fi_api:") for tag in named]
