"""The task of a worker of the executor: judge solutions of one definition."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.dataset.paths import DatasetFile
from generator.dataset.workload_files import workloads_of
from generator.evaluation.budget import budget_of
from generator.evaluation.clock import nursery
from generator.evaluation.conclusion import concluded, notes_on, where
from generator.evaluation.conditions.ask import ask, required
from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.condition import SOAK, Condition
from generator.evaluation.confined import Confinement
from generator.evaluation.confined_reference import ConfinedReference
from generator.evaluation.drawing_ahead import DrawingAhead
from generator.evaluation.failures import Failures
from generator.evaluation.judge import Judge, in_order
from generator.evaluation.memory import MemoryOfCalls, rival_sessions
from generator.evaluation.missing import missing
from generator.evaluation.room import alone_if_short, is_short
from generator.evaluation.rounds import EvaluationRounds, rounds_of
from generator.evaluation.sanitizing.tool import TOOL_SECONDS, confined, sanitized
from generator.evaluation.seconds_of import SecondsOf
from generator.evaluation.session import Allowed, Session
from generator.evaluation.sharing import bind_to_a_free_gpu, using
from generator.evaluation.solution import Solution
from generator.evaluation.solution_tolerance import REFERENCE
from generator.evaluation.starts import Starts
from generator.evaluation.timing import Field, second_draws
from generator.evaluation.verdict import (
    INVALID,
    JUDGE_ERROR,
    OUT_OF_MEMORY,
    PASSED,
    SKIPPED,
    CaseVerdict,
    Refused,
    SolutionVerdict,
    worst,
)
from generator.execution.child import Link
from generator.execution.cores import usable_cores
from generator.execution.ending import end_at_once
from generator.execution.gpus import VISIBLE
from generator.execution.outcome import CannotRun
from generator.ops.registry import op_folder, op_packages
from generator.problems.messages import did_you_mean, one_line
from generator.rules.load import load_file
from generator.rules.subjects import declared_definition
from kernel_judge.inputs.memory import give_back

_REFERENCE_SECONDS = 600.0
_kept: dict[str, tuple[tuple[Path, str, Allowed], Confinement]] = {}
"""Sandboxes that wait for the next task of this process, whose workers have torch.

That of solutions and that of references, each with what it was made for.
"""


def evaluate(task: Mapping[str, Any], link: Link) -> dict[str, Any]:
    """Return the verdicts on solutions of a definition; say each as it comes."""
    file, root = DatasetFile(**task["file"]), Path(task["root"])
    definition, problems = load_file(root, file)
    if definition is None:
        raise CannotRun(str(problems[0]) if problems else "it can't be read")
    if task["gpus"]:
        bind_to_a_free_gpu((*task["gpus"],))
    if task["device"] == "cuda" and (task["timing"] or not task["is_last"]):
        nursery.prepare()
    # the processes that judge beside this one share the cores
    torch.set_num_threads(max(usable_cores() * task["lanes"] // task["sharing"], 1))
    allowed = Allowed(task["timeout"])
    within = 4 * allowed.call_seconds + max(allowed.build_seconds, TOOL_SECONDS + 60.0)
    alive = partial(link.at, within=within)
    alive()
    verdicts: list[dict[str, Any]] = []
    with ExitStack() as stack:
        ends: list[Callable[[], None]] = []
        stack.callback(end_at_once, ends)

        def confinement(whose: str, allowed: Allowed) -> Confinement:
            key = (root, task["device"], allowed)
            known = _kept.get(whose)
            if known is None or known[0] != key:
                if known is not None:
                    known[1].close()
                at = Confinement(task["device"], allowed, _hidden(root), alive)
                known = _kept[whose] = key, at
            if task["is_last"]:
                ends.append(_kept.pop(whose)[1].close)
            return known[1]

        bench = _Bench(definition, root, file, task, alive, confinement)
        ends.append(bench.close)
        for value in task["solutions"]:
            solution = Solution(value["value"], value["path"])
            verdicts.append(bench.verdict(solution).as_dict())
            link.say(verdicts[-1])
    return {"verdicts": verdicts}


class _Bench:
    """Solutions of one definition, judged each with values and a sandbox of its own."""

    def __init__(
        self,
        definition: LoadedDefinition,
        root: Path,
        file: DatasetFile,
        task: Mapping[str, Any],
        alive: Callable[[], None],
        confinement: Callable[[str, Allowed], Confinement],
    ) -> None:
        self._definition, self._root, self._file = definition, root, file
        self._task, self._alive = task, alive
        self._field: Field | None = None
        self._peaks: dict[tuple[str, str], int | str] = {}
        self._device = torch.device(task["device"])
        self._workloads = (
            workloads_of(root, file.op_type, file.name)
            if "workloads" in task["asks"]
            else []
        )
        self._gpu = os.environ.get(VISIBLE, "all") if task["device"] == "cuda" else ""
        self._is_alone = task["timing"]
        allowed = Allowed(task["timeout"])
        self._allowed = allowed
        if most := task["memory_bytes"]:
            self._allowed = replace(allowed, memory_bytes=most, gpu_bytes=most)
        self._confined = confinement("solution", self._allowed)
        # a reference takes what it takes: no solution waits for another's
        slow = replace(allowed, call_seconds=_REFERENCE_SECONDS)
        known = declared_definition(definition)
        self._reference = ConfinedReference(
            definition.reference,
            known.interface,
            known.axes,
            confinement("reference", slow),
        )

    def verdict(self, solution: Solution) -> SolutionVerdict:
        """Return the verdict on a solution; whatever happens is that of it alone."""
        begun = time.monotonic()
        lacks = missing(solution, self._task["device"])
        if lacks is not None:
            cases = [CaseVerdict("", SKIPPED, lacks)]
            return concluded(solution, self._file, cases, (), 0.0)
        attempt = partial(self._attempt, solution)
        verdict = alone_if_short(attempt, shares=bool(self._gpu) and not self._is_alone)
        return replace(verdict, seconds=round(time.monotonic() - begun, 3))

    def _attempt(
        self, solution: Solution, is_alone: bool
    ) -> tuple[SolutionVerdict, bool]:
        """Return the verdict on a solution, and whether it, or the judge, ran out of memory."""
        notes: list[str] = []
        conditions: dict[str, Condition] = {}
        memory: dict[str, Any] = {}
        seconds = SecondsOf()
        lacked, usually = False, self._is_alone
        self._is_alone = is_alone or usually
        try:
            cases = self._judged(solution, notes, conditions, memory, seconds)
        except (KeyboardInterrupt, SystemExit, CannotRun):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is of this solution
            lacked = is_short(error)
            cases = [CaseVerdict("", JUDGE_ERROR, where(error))]
            # whatever state it is in, nobody else meets it
            self._confined.close()
            self._reference.close()
            self.close()
        finally:
            self._is_alone = usually
        seconds.lap("end")
        lacked = lacked or any(case.verdict == OUT_OF_MEMORY for case in cases)
        verdict = concluded(solution, self._file, cases, notes, 0.0)
        conditions_said = {name: one.as_dict() for name, one in conditions.items()}
        verdict = replace(verdict, memory=memory, seconds_of=seconds.as_dict())
        return replace(verdict, conditions=conditions_said), lacked

    @contextmanager
    def _uses(self, *, is_alone: bool = False) -> Iterator[None]:
        """Use the GPU, and leave none of its memory to this process afterwards."""
        with using(self._gpu, is_alone or self._is_alone, self._alive):
            try:
                yield
            finally:
                give_back(self._device)

    def _judged(
        self,
        solution: Solution,
        notes: list[str],
        conditions: dict[str, Condition],
        memory: dict[str, Any],
        seconds: SecondsOf,
    ) -> list[CaseVerdict]:
        """Return the verdicts on a solution's cases; one of a build that failed.

        Those on conditions are put into `conditions`, the memory of a call into `memory`,
        and where the time went into `seconds`.
        Whatever needs the GPU is done while it uses it; a build does not, and goes on while
        second draws are made.
        """
        task = self._task
        # whatever else is in this task: the same on every number of tasks
        drawn = random.Random(f"{task['secret']} {solution.path}")
        seed = partial(drawn.randrange, 2**62)
        # its processes begin while the questions are drawn
        self._confined.prepare()
        with self._uses():
            if task["timing"] and self._field is None:
                self._field = self._begun()
            seconds.lap("starts and peaks")
            asked = rounds_of(
                self._definition,
                self._workloads,
                self._root,
                self._device,
                seed(),
                own_cases="cases" in task["asks"],
                fuzz=task["fuzz"],
                run=self._reference if task["runs_references"] else _not_run,
            )
        if task["case"]:
            name, known = one_line(task["case"], 80), asked.names()
            asked = asked.of_case(task["case"])
            if not (asked.rounds or asked.relations):
                guess = did_you_mean(name, known)
                why = f"none of its cases is named {name!r}.{guess}"
                return [CaseVerdict("", INVALID, why)]
        notes += notes_on(asked)
        by_reference = (
            one.source == REFERENCE for _, all in asked.rounds for one in all
        )
        if not task["runs_references"] and any(by_reference):
            why = "it has no oracle, and its reference is not executed here"
            return [CaseVerdict("", SKIPPED, why)]
        seconds.lap("questions")
        passes, secret = solution.passes_outputs, seed()
        calls = [one for _, one, _ in in_order(asked, secret)]
        calls += [one for _, one in asked.relations]
        with closing(DrawingAhead(calls)) as ahead, ThreadPoolExecutor(1) as beside:
            built = beside.submit(self._opened, solution, asked)
            others = second_draws(asked) if task["timing"] else {}
            seconds.lap("draws")
            try:
                session = built.result()
                seconds.lap("build")
            except Refused as refused:
                return [CaseVerdict("build", refused.verdict, refused.reason)]
            with ExitStack() as opened:
                opened.enter_context(closing(session))
                budget = task["budget"] or budget_of(self._allowed, asked)
                session.allow(budget)
                with self._uses():
                    failures = self._failures(solution)
                    by = (session, asked, self._device, passes, secret, failures)
                    judge = Judge(*by, until_wrong=task["until_wrong"], ahead=ahead)
                    cases = judge.judge()
                    seconds.lap("judging")
                    if cases and task["timing"] and worst(cases).verdict == PASSED:
                        rivals = self._field
                        assert rivals is not None
                        again = partial(self._opened, solution, asked)
                        by_whom = (session, again, budget, self._begun, seed)
                        starts = Starts(task["starts"], *by_whom)
                        opened.callback(lambda: starts.session.close())
                        how = (asked, cases, others, passes, secret, rivals, notes)
                        cases = starts.timed(*how, seconds)
                        session = starts.session
                        if task["starts"] > 1:
                            self.close()
                if task["memory"] and cases and worst(cases).verdict == PASSED:
                    cases += self._measured(solution, asked, seed(), memory)
                asks = task["conditions"] or task["sanitizers"]
                if asks and cases and worst(cases).verdict == PASSED:
                    about = (session, solution, asked, seed())
                    conditions |= self._under_conditions(*about)
                    cases += required(conditions, task["required"])
                seconds.lap("memory and conditions")
                return cases

    def _under_conditions(
        self, session: Session, solution: Solution, asked: EvaluationRounds, secret: int
    ) -> dict[str, Condition]:
        """Return the verdicts on a solution under conditions; a soak has the GPU alone.

        compute-sanitizer's tools have each a sandbox of their own.
        """
        task, passes = self._task, solution.passes_outputs
        reopened = partial(self._opened, solution, asked)
        how = (session, asked, self._device, passes, secret, reopened, task["soak"])
        asking = Asking(*how)
        answers: dict[str, Condition] = {}
        try:
            for name in task["conditions"]:
                with self._uses(is_alone=name == SOAK):
                    answers[name] = ask(asking, name)
        finally:
            asking.session.close()
        arguments = solution.arguments(asked.subject.interface)
        how_built = {**solution.how(), "arguments": arguments}
        for tool in task["sanitizers"]:
            self._alive()
            watches = confined(_hidden(self._root), task["device"])
            with self._uses():
                answers[tool] = sanitized(asking, tool, how_built, watches)
        return answers

    def _opened(self, solution: Solution, asked: EvaluationRounds) -> Session:
        """Return a session in which a solution is built anew. Raises Refused."""
        session = self._confined.open()
        try:
            session.build(solution, solution.arguments(asked.subject.interface))
        except BaseException:
            session.close()
            raise
        return session

    def _measured(
        self,
        solution: Solution,
        asked: EvaluationRounds,
        secret: int,
        memory: dict[str, Any],
    ) -> list[CaseVerdict]:
        """Put the memory of a call into `memory`; return a verdict where one is wrong."""
        calls = MemoryOfCalls(asked, self._device, secret, self._peaks)
        if not calls.case:
            return []
        reference = self._reference if self._task["runs_references"] else None
        about = (self._root, self._file, asked.subject, self._device, reference)
        rivals = rival_sessions(*about)

        def opens() -> AbstractContextManager[Session]:
            return closing(self._opened(solution, asked))

        try:
            with self._uses(is_alone=True):
                passed = solution.passes_outputs
                memory |= calls.measured(opens, rivals, passes_outputs=passed)
        except Refused as refused:
            name = f"memory of {calls.case}"
            return [CaseVerdict(name, refused.verdict, refused.reason)]
        return []

    def _begun(self) -> Field:
        """Return the processes of rivals, which all solutions of the task have.

        Their imports go on while questions are drawn, and a solution is built and judged.
        """
        about = (self._root, self._file, self._task["device"])
        return Field(*about, self._reference if self._task["runs_references"] else None)

    def close(self) -> None:
        """End the processes of rivals."""
        if self._field is not None:
            self._field.close()
        self._field = None

    def _failures(self, solution: Solution) -> Failures | None:
        """Return what keeps the refused cases of a solution, where that was asked."""
        if not self._task["keep_failures"]:
            return None
        asked = {
            "definition": self._file.name,
            "device": self._task["device"],
            "workloads": self._task["workloads"],
            "fuzz": self._task["fuzz"],
            "seed": self._task["secret"],
            "path": solution.path,
            "solution": solution.value,
        }
        folder = Path(self._task["keep_failures"]) / solution.name
        return Failures(folder, asked, hides_expected=self._task["hides_expected"])


def _not_run(*_: object) -> Any:
    raise RuntimeError("references are not executed here")


def _hidden(root: Path) -> list[Path]:
    """Return the folders that no solution may see: the dataset, and other op_types."""
    return [root, *(op_folder(name) for name in op_packages())]
