"""Evaluate the solutions that a change adds, and hold its traces against that run.

Solutions run in the sandbox of an evaluation. What judges them executes no reference
that the change itself brings: where such a definition has no oracle, nobody can judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.dataset.artifacts import Key as ArtifactKey
from generator.dataset.json_file import read_json_lines
from generator.dataset.paths import DatasetFile
from generator.dataset.schema import read_checked
from generator.evaluation.solution import Solution
from generator.evaluation.verdict import PASSED, SKIPPED, SolutionVerdict
from generator.problems.messages import one_line
from generator.review.change import Change
from generator.review.sources import Sources

if TYPE_CHECKING:
    from generator.evaluation.against import Key, Time

OTHER_TIMES = "OTHER TIMES"
"""What is found of a claim whose values are right and whose times are not."""

NO_TIMES = "RIGHT, TIMES UNKNOWN"
"""What is found of a claim whose values are right, of times that this run has not."""

_UNKNOWN = "the change has no such solution"
_LONG = 300


@dataclass(frozen=True)
class TraceClaim:
    """The claim of a new trace for a solution on a workload, and a run's answer to it.

    `found` is the run's verdict, `why` what it rests on: a case, or what was missing.
    """

    file: str
    line: int
    solution: str
    workload: str
    status: str
    found: str
    why: str = ""

    @property
    def is_false(self) -> bool:
        """Return whether a run refused what the trace says has passed."""
        is_open = self.found in (PASSED, SKIPPED, NO_TIMES)
        return self.status == PASSED and not is_open

    @property
    def is_contrary(self) -> bool:
        """Return whether a run passed what the trace says has failed."""
        return self.status != PASSED and self.found in (PASSED, NO_TIMES)

    def __str__(self) -> str:
        return one_line(
            f"{self.file} line {self.line}: {self.solution} claims {self.status}, "
            f"is {self.found}{f' {self.why}' if self.why else ''}",
            _LONG,
        )


@dataclass(frozen=True)
class EvaluatedChange:
    """The verdicts on the solutions of a change, and its traces beside them.

    `elsewhere` are the paths of those that are made for other devices than this one.
    """

    device: str
    verdicts: Sequence[SolutionVerdict] = ()
    claims: Sequence[TraceClaim] = ()
    elsewhere: Sequence[str] = ()

    @property
    def against(self) -> list[str]:
        """Return one line for each refused solution and each false claim."""
        refused = (v for v in self.verdicts if not v.is_fine)
        lines = [one_line(f"{v.path}: {v.verdict} {_where(v)}", _LONG) for v in refused]
        return [*lines, *_together(c for c in self.claims if c.is_false)]

    @property
    def unknown(self) -> list[str]:
        """Return one line for each solution and claim that could not be run here."""
        skipped = (v for v in self.verdicts if v.verdict == SKIPPED)
        lines = [one_line(f"{v.path}: not run: {v.reason}", _LONG) for v in skipped]
        right = (v.path for v in self.verdicts if v.verdict == PASSED)
        lines += [
            one_line(f"{path}: right on this {self.device}, made for others", _LONG)
            for path in right
            if path in self.elsewhere
        ]
        unasked = (c for c in self.claims if c.found == SKIPPED)
        return [*lines, *_together(unasked)]

    @property
    def unmeasured(self) -> list[str]:
        """Return one line for the claims whose times nobody measured again."""
        is_open = (c for c in self.claims if c.found == NO_TIMES and not c.is_contrary)
        return list(_together(is_open))

    @property
    def contrary(self) -> list[str]:
        """Return one line for the claims of a failure that this run did not see."""
        return list(_together(c for c in self.claims if c.is_contrary))

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        return {
            "device": self.device,
            "solutions": [verdict.as_dict() for verdict in self.verdicts],
            "claims": [vars(claim) for claim in self.claims],
        }


def contradicted(
    claim: TraceClaim,
    trace: dict[str, Any],
    definition: str,
    here: str,
    fresh: Mapping[Key, Time],
) -> TraceClaim:
    """Return a claim, false where its times are not those of a run on its hardware.

    `here` is the hardware of the run. Of another nothing is known; of the times that a
    claim states nothing where they were not measured, or too roughly to tell.
    """
    from generator.evaluation.against import contradiction, nearness, noise

    evaluation, time = _object(trace, "evaluation"), _time_of(trace, definition, fresh)
    hardware = _object(evaluation, "environment").get("hardware")
    performance = _object(evaluation, "performance")
    is_here = str(hardware) == here
    if claim.found != PASSED or (is_here and not performance):
        return claim
    if not is_here or time is None:
        where = one_line(str(hardware), 60)
        return replace(claim, found=NO_TIMES, why=f"(of {where}, not of this run)")
    why = contradiction(performance, time)
    is_ratio = performance.get("speedup_factor") or performance.get(
        "reference_latency_ms"
    )
    if not why and is_ratio and time.speedup is None:
        return replace(claim, found=NO_TIMES, why="(no reference was timed here)")
    if why and (rough := noise(time) or nearness(performance, time)):
        return replace(claim, found=NO_TIMES, why=f"({rough})")
    return replace(claim, found=OTHER_TIMES, why=why) if why else claim


def _time_of(
    trace: dict[str, Any], definition: str, fresh: Mapping[Key, Time]
) -> Time | None:
    evaluation, workload = _object(trace, "evaluation"), _object(trace, "workload")
    hardware = _object(evaluation, "environment").get("hardware")
    about = (hardware, trace.get("solution"), workload.get("uuid"))
    return fresh.get((definition, *map(str, about)))  # type: ignore[arg-type]


def without_any_time(
    claims: Sequence[TraceClaim], noises: Mapping[int, str]
) -> list[TraceClaim]:
    """Return the claims; where all of a solution are rough, nothing is known of its times.

    `noises` has by the place of each measured claim why it is too noisy to tell, or
    nothing. Beside one of its file that stands and is not, a claim within the noise
    stands.
    """
    clear = {
        (claims[n].file, claims[n].solution)
        for n, why in noises.items()
        if not why and claims[n].found == PASSED
    }
    held = list(claims)
    for n, why in noises.items():
        is_alone = (held[n].file, held[n].solution) not in clear
        if why and held[n].found == PASSED and is_alone:
            held[n] = replace(held[n], found=NO_TIMES, why=f"({why})")
    return held


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _together(claims: Iterable[TraceClaim]) -> Iterator[str]:
    """Yield a line for the claims of a file that are refused for the same reason."""
    same: dict[tuple[str, ...], list[int]] = {}
    for c in claims:
        about = (c.file, c.solution, c.status, c.found, c.why)
        same.setdefault(about, []).append(c.line)
    for (file, solution, status, verdict, why), lines in same.items():
        where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines"
        line = f"{file} {where}: {solution} claims {status}, is {verdict} {why}"
        yield one_line(line.strip(), _LONG)


def evaluate_change(
    changes: Sequence[Change],
    sources: Sources,
    device: str,
    jobs: int,
    keep_failures: Path | None = None,
) -> EvaluatedChange | None:
    """Judge what a change brings; None where it brings no solution and no trace.

    The files of refused cases go to a folder of `keep_failures`, if it is given.
    """
    # imported here: most reviews execute nothing, and this takes 100 ms
    from generator.evaluation.against import noise, times_in
    from generator.evaluation.environment import environment, now
    from generator.evaluation.evaluate import EvaluationRequest, evaluate
    from generator.evaluation.traces import trace_files
    from generator.execution.local import LocalExecutor

    verdicts: list[SolutionVerdict] = []
    claims: list[TraceClaim] = []
    elsewhere: list[str] = []
    brings = False
    for is_own in (False, True):
        # a definition that the change brings or rewrites is its author's word
        of_kind = [c for c in changes if c.new is not None and c.computes is is_own]
        lying = [
            (change.key, solution)
            for change in of_kind
            for path in _lying(change, sources, "solutions")
            if (solution := _solution_at(sources, path)) is not None
        ]
        # what was measured of a solution is a claim on the text that replaces it
        anew = {
            (key, one.name) for key, one in lying if one.path in sources.sides.changed
        }
        brings |= bool(anew)
        traces = [
            (change, *trace)
            for change in of_kind
            for trace in _new_traces(change, sources, anew)
        ]
        named = {(c.key, str(trace.get("solution"))) for c, _, _, trace in traces}
        solutions = [one for key, one in lying if (key, one.name) in (anew | named)]
        if device == "cpu":
            elsewhere += [one.path for one in solutions if {*one.hardware} - {"cpu"}]
        files = [DatasetFile(*change.key, change.path) for change in of_kind]
        asks = EvaluationRequest(
            device, timing=device == "cuda", runs_references=not is_own
        )
        if keep_failures is not None:
            folder = str((keep_failures / "solutions").resolve())
            asks = replace(asks, keep_failures=folder)
        executor = LocalExecutor(jobs)
        judged = evaluate(solutions, files, sources.head, asks, executor, jobs)
        by_name = {(v.definition, v.solution): v for v in judged}
        verdicts += judged
        fresh: Mapping[Key, Time] = {}
        machine = environment(device)
        if device == "cuda":
            traces_made = trace_files(judged, machine, now())
            fresh = times_in(
                (p, d) for p, d in traces_made.items() if p.endswith(".jsonl")
            )
        held: list[TraceClaim] = []
        noises: dict[int, str] = {}
        for change, file, line, trace in traces:
            whom = (change.name, str(trace.get("solution")))
            one = _claim(file, line, trace, by_name.get(whom))
            time = _time_of(trace, change.name, fresh)
            if time and _object(_object(trace, "evaluation"), "performance"):
                noises[len(held)] = noise(time)
            here = str(machine["hardware"])
            held.append(contradicted(one, trace, change.name, here, fresh))
        claims += without_any_time(held, noises)
        brings |= bool(traces)
    return EvaluatedChange(device, verdicts, claims, elsewhere) if brings else None


def _solution_at(sources: Sources, path: str) -> Solution | None:
    """Return a solution of head, None for a file that is none."""
    read = read_checked(sources.head, path, "solution")
    return Solution(read.value, path) if read.ok else None


def _lying(change: Change, sources: Sources, kind: str) -> Iterator[str]:
    """Yield the files of a kind that a definition has in head."""
    sides = sources.sides
    return (p for p in sides.files_of(change.key, kind) if sides.head[p].is_file)


def _new_traces(
    change: Change, sources: Sources, anew: Collection[tuple[ArtifactKey, str]]
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield file, line and value of each trace that base has not of such a solution.

    `anew` are the solutions that the change brings or replaces, with their definitions.
    """
    for path in _lying(change, sources, "traces"):
        known = []
        if path in sources.sides.base:
            known = [value for _, value in read_json_lines(sources.base, path).lines]
        for number, value in read_json_lines(sources.head, path).lines:
            if not isinstance(value, dict):
                continue
            is_anew = (change.key, str(value.get("solution"))) in anew
            if is_anew or value not in known:
                yield path, number, value


def _claim(
    file: str, line: int, trace: dict[str, Any], verdict: SolutionVerdict | None
) -> TraceClaim:
    status = _object(trace, "evaluation").get("status")
    uuid = _object(trace, "workload").get("uuid")
    about = (
        one_line(file),
        line,
        one_line(str(trace.get("solution")), 100),
        one_line(str(uuid), 60),
        one_line(str(status or "nothing"), 40),
    )
    if verdict is None:
        return TraceClaim(*about, SKIPPED, _UNKNOWN)
    if not verdict.is_fine:
        return TraceClaim(*about, verdict.verdict, _where(verdict))
    for case in verdict.cases:
        if case.workload is not None and case.workload["uuid"] == uuid:
            return TraceClaim(*about, case.verdict, case.reason)
    if verdict.verdict == SKIPPED:
        return TraceClaim(*about, SKIPPED, verdict.reason)
    return TraceClaim(*about, SKIPPED, "the workload was not asked here")


def _where(verdict: SolutionVerdict) -> str:
    place = f"in case {verdict.case}" if verdict.case else ""
    return f"{place}{': ' if place and verdict.reason else ''}{verdict.reason}"
