"""Run the tests of each side's software on the other side's dataset, confined.

Tests that the change itself loosens say nothing about it. The base's tests say what the
definitions that it brings are worth; the head's, on definitions that are known, whether
its software still finds them right and still asks what the base's asks. Nothing here
makes a verdict better.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.atomic_write import write_below
from generator.dataset.changes import owner_of
from generator.dataset.file_reading import read_bytes
from generator.execution import sandbox
from generator.problems import Failure
from generator.problems.messages import one_line, plural, some
from generator.results.run_results import TestResult, parse_results
from generator.review.change import Change
from generator.review.decision import Decision, Reason, Weight
from generator.review.scratch import scratch
from generator.review.software import op_types_of, software_of
from generator.review.sources import Sources
from generator.review.treatment import SOFTWARE
from generator.review.tree import Tree, write_tree
from generator.rules.screen import screen

SOFTWARE_RUN = "software-run"
"""The point of reasons that such a run gives."""

_MOST = 40
_NAMED = 10
_FILE = "results.jsonl"
_RESULTS = 64 * 1024 * 1024
_MAX_BYTES = 16 * 1024 * 1024
_BASE, _HEAD = "base", "head"
# renders in a process of its own, so that pytest starts without what that imported
_DRIVER = """
import os, subprocess, sys
software, dataset, results, *names = sys.argv[1:]
os.environ["PYTHONPATH"] = software
tests = "/tmp/run/tests/references"
render = "from generator.cli.gen_tests import main; main()"
chosen = [f"--definition-name={name}" for name in names]
command = ["--dataset", dataset, "--output", tests, "--standalone", "--sizes=small"]
done = subprocess.run([sys.executable, "-c", render, *command, *chosen])
if done.returncode not in (0, 1) or not os.path.isdir(tests):
    raise SystemExit(f"gen-tests ended with {done.returncode}")
words = ["-q", "-p", "no:cacheprovider", "--device", "cpu", "--results", results, tests]
os.execv(sys.executable, [sys.executable, "-m", "pytest", *words])
"""


@dataclass(frozen=True)
class SoftwareRun:
    """The results of one side's software on the other side's dataset.

    `failed` are tests that speak against the change, `known` those that fail whatever
    it does. `lost` are tests that the base's software passes on the same definitions,
    and that were not asked here. `problems` say why the run tells nothing.
    """

    software: str
    dataset: str
    definitions: tuple[str, ...] = ()
    passed: int = 0
    failed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        text = f"{self.passed} passed, {len(self.failed)} failed"
        if self.known:
            text += f", {len(self.known)} failed that fail without the change"
        if self.lost:
            text += f", {len(self.lost)} no longer asked"
        return (
            f"the {self.software}'s tests on the {self.dataset}'s dataset, "
            f"{plural(len(self.definitions), 'definition')} at small sizes: {text}, in "
            f"{self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Crossed:
    """Both runs, and the definitions that the software is about and that no run had."""

    runs: tuple[SoftwareRun, ...]
    not_run: tuple[str, ...] = ()

    @property
    def reasons(self) -> Iterator[Reason]:
        """Yield what speaks against the change."""
        for run in self.runs:
            who = f"the {run.software}'s tests on the {run.dataset}'s dataset"
            for failed in run.failed[:_NAMED]:
                reason = f"failed when run: {who}: {failed}"
                yield Reason(Decision.CHANGES, Weight.WRONG_VALUE, SOFTWARE_RUN, reason)
            for problem in run.problems:
                reason = f"{who}: {problem}"
                yield Reason(Decision.CHANGES, Weight.FALSE_CLAIM, SOFTWARE_RUN, reason)
            if run.lost:
                reason = f"{who} no longer ask {some(run.lost, 3)}"
                yield Reason(Decision.PERSON, Weight.WEAKER_CHECK, SOFTWARE_RUN, reason)

    @property
    def lines(self) -> Iterator[str]:
        """Yield what a report says: each run, what of it counts, and what was not run."""
        for run in self.runs:
            yield str(run)
            for what in ("failed", "known", "lost", "problems"):
                for name in getattr(run, what)[:_NAMED]:
                    yield f"{_WORDS[what]}: {name}"
        if self.not_run:
            count = plural(len(self.not_run), "definition")
            yield (
                f"not run, of {count}: {some(self.not_run, _NAMED)}; other sizes, "
                "recordings, workloads and kernels (pytest tests/references, with the "
                "software of each side)"
            )


_WORDS = {
    "failed": "failed",
    "known": "failed, with or without the change",
    "lost": "no longer asked",
    "problems": "tells nothing",
}


def cross_run(
    changes: Sequence[Change], sources: Sources, trust: bool
) -> Crossed | None:
    """Run both; None where the change leaves the base's software as it is.

    References of the change that the screen objects to are not run without `trust`.
    """
    sides = sources.sides
    changed = [path for path, t in sides.treatments.items() if t is SOFTWARE]
    base, head = software_of(sides.base), software_of(sides.head)
    if not changed or not base:
        return None
    about = op_types_of(changed)
    old, new = _definitions(sides.base), _definitions(sides.head)
    same = [k for k in new if old.get(k) == new[k] and (about is None or k[0] in about)]
    brought = {c.key: c.new for c in changes if c.new is not None and c.key in new}
    mine = [key for key in brought if old.get(key) != new[key]]
    left_out = [
        key
        for key in mine
        if not trust
        and (new_of := brought[key]) is not None
        and screen(new_of.reference)
    ]
    mine = [key for key in mine if key not in left_out]
    # one of each op_type shows what its tests ask
    first = {key[0]: key for key in sorted(same, reverse=True)}
    chosen = [*mine, *sorted(first.values())][:_MOST]
    at_base = [key for key in (*mine, *sorted(first.values())) if key in old][:_MOST]
    not_run = sorted({*same, *left_out, *brought} - {*chosen})
    on_head, results = _run(base, chosen, sources, _BASE)
    on_base, others = _run(head, at_base, sources, _HEAD)
    unchanged = {name for _, name in same}
    return Crossed(
        _compared(on_head, results, on_base, others, unchanged),
        tuple(one_line(name, 200) for _, name in not_run),
    )


def _definitions(tree: Tree) -> dict[Key, str]:
    """Return key → object of a tree's definitions, in the order of their names."""
    definitions = {}
    for path in sorted(tree):
        owner = owner_of(path)
        if owner is not None and owner[1] == "definition" and tree[path].is_file:
            definitions[owner[0]] = tree[path].oid
    return definitions


def _compared(
    on_head: SoftwareRun,
    results: Sequence[TestResult],
    on_base: SoftwareRun,
    others: Sequence[TestResult],
    unchanged: set[str],
) -> tuple[SoftwareRun, SoftwareRun]:
    """Return both runs with what of their failures speaks against the change."""
    failed = [test for test in results if test.is_bad]
    known = {t.test for t in failed if t.definition in unchanged}
    asked = {test.test for test in others if test.status != "skipped"}
    passed = {
        t.test for t in results if t.status == "passed" and t.definition in unchanged
    }
    bad = [test.test for test in others if test.is_bad]
    return (
        _with(
            on_head,
            results,
            [t.test for t in failed if t.test not in known],
            sorted(known),
        ),
        _with(
            on_base,
            others,
            [test for test in bad if test not in known],
            [test for test in bad if test in known],
            [] if on_base.problems or on_head.problems else sorted(passed - asked),
        ),
    )


def _with(
    run: SoftwareRun,
    results: Sequence[TestResult],
    failed: Sequence[str],
    known: Sequence[str],
    lost: Sequence[str] = (),
) -> SoftwareRun:
    return replace(
        run,
        passed=sum(test.status == "passed" for test in results),
        failed=_shown(failed),
        known=_shown(known),
        lost=_shown(lost),
    )


def _shown(tests: Sequence[str]) -> tuple[str, ...]:
    return tuple(one_line(test, 200) for test in tests)


def _run(
    software: Tree, keys: Sequence[Key], sources: Sources, side: str
) -> tuple[SoftwareRun, Sequence[TestResult]]:
    """Run the tests of a side's software on definitions of the other side."""
    dataset = _HEAD if side == _BASE else _BASE
    names = tuple(one_line(name, 200) for _, name in keys)
    if not software:
        why = ("the software is gone",)
        return SoftwareRun(side, dataset, names, problems=why), ()
    if not keys:
        return SoftwareRun(side, dataset), ()
    revision = sources.revisions.head
    with scratch("trace-dataset-run-") as folder:
        # the sandbox runs as another user where we are root
        folder.chmod(0o755)
        lying, data, results = folder / "software", folder / "dataset", folder / _FILE
        lying.mkdir()
        _write(software, sources, lying, is_lying=side == _HEAD and not revision)
        for op_type, name in keys:
            for path in (
                f"definitions/{op_type}/{name}.json",
                f"custom_inputs/{op_type}/{name}.py",
                f"oracles/{op_type}/{name}.py",
            ):
                content = sources.read(path, _MAX_BYTES, of_base=dataset == _BASE)
                if content is not None:
                    write_below(data, path, content)
        chosen = [name for _, name in keys]
        words = [str(lying), str(data), _FILE, *chosen]
        outcome = sandbox.run_confined(
            [sys.executable, "-c", _DRIVER, *words],
            read_only=[lying, data],
            results=results,
        )
        problems, tests = _read(outcome, results)
    return (
        SoftwareRun(side, dataset, names, problems=problems, seconds=outcome.seconds),
        tests,
    )


def _write(software: Tree, sources: Sources, folder: Path, *, is_lying: bool) -> None:
    """Write a side's software for all to read; of a working tree as it is."""
    if is_lying:
        for path in software:
            with suppress(OSError):
                write_below(folder, path, read_bytes(sources.head, path, _MAX_BYTES))
    else:
        write_tree(sources.blobs, software, folder, 0o644)


def _read(
    outcome: sandbox.CommandOutcome, results: Path
) -> tuple[tuple[str, ...], Sequence[TestResult]]:
    """Return why a run tells nothing, and what its tests reported."""
    ending = outcome.limit or outcome.detail
    if outcome.exit_status not in (0, 1) or ending:
        lines = (outcome.stderr or outcome.stdout).strip().splitlines()
        last = lines[-1] if lines else f"it ended with {outcome.exit_status}"
        return (one_line(f"it did not end well: {ending or last}", 300),), ()
    try:
        data = sandbox.read_result(results, limit=_RESULTS)
        tests = parse_results(data, _FILE).tests if data is not None else ()
    except (OSError, ValueError, Failure) as error:
        return (one_line(f"its results can't be read: {error}", 300),), ()
    if not tests:
        return ("it reported no test",), ()
    return (), tests
