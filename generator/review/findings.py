"""Findings of a review on a change's files, as Problems, and the decision each asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from generator.dataset.file_reading import LFS_MAGIC
from generator.ground_truth.recordings import why_damaged
from generator.problems import Problem, Rule, error, warning
from generator.problems.messages import one_line, quote, some
from generator.review.decision import Decision, Reason, Weight
from generator.review.sources import Sources
from generator.review.treatment import (
    DOCUMENTS,
    LICENCES,
    LINKS,
    OUTSIDE,
    RECORDINGS,
    UNKNOWN,
    twins,
)
from generator.rules.hidden_text import is_shown_whole
from kernel_judge.recording.recording_file import MAX_FILE_BYTES

RUNS = warning("""review-runs: The change has a file that runs, or that a program obeys:
    it is not judged here.
    Fix: Read it; a person decides.
    Finds: a new tests/conftest.py""")
UNKNOWN_PATH = warning("""review-unknown: The change has a file that no command of this
    version reads.
    Fix: Read it; a person decides, or move it to where it is read.
    Finds: verification/notes.bin""")
LINK = error("""review-link: The change has a link, a submodule or a special file.
    Fix: Put the file itself there.
    Finds: tests/references/test_gemm.py -> /dev/zero""")
TWIN = error("""review-twin: Two paths are one file on some systems: one of the two shadows
    the other.
    Fix: Rename one of them.
    Finds: definitions/gemm/X.json beside definitions/gemm/x.json""")
REFUSED = error("""review-path: No checkout would have the path.
    Fix: Rename it.
    Finds: definitions/../../x.json""")
UNRENDERED = error("""review-rendered: A rendered test is not what this version renders
    from the definitions: somebody edited it, or did not render it anew.
    Fix: Run gen-tests --all, and gen-tests --all --check.
    Finds: rtol=8e-1 in tests/references/test_layernorm.py""")
UNCOMPARED = warning("""review-unrendered: A file among the rendered tests is none that
    this version renders, or could render before the change.
    Fix: Read it, as code that pytest runs.
    Finds: tests/references/test_mine.py, written by hand""")
WEAKER = warning("""review-weaker: The tests check less than before, or otherwise.
    Fix: Read the table of checks; --accept weaker:PATH says that it was read.
    Finds: rtol of 'output' from 0.008 to 0.8""")
REMOVED = error("""review-removed: Something that the dataset had is gone.
    Fix: Bring it back, or accept it with --accept removal:PATH.
    Finds: a deleted recording, or evidence that is no longer in verification/""")
REWRITTEN = error("""review-rewritten: Something that the dataset has is replaced under its
    old name.
    Fix: Bring it back under its name, and add the new one under another, or accept it
    with --accept removal:PATH.
    Finds: a workload of the same uuid with other axes""")
DAMAGED = error("""review-damaged: A recording is not as it was written: every test that
    replays it fails.
    Fix: Record it again, or restore the file.
    Finds: a byte of a tensor that differs from what the SHA-256 in the file is of""")
CLAIM = warning("""review-claim: The change says something that only a run could show.
    Fix: Run the command that is named, or accept it with --trust-evidence.
    Finds: a survivor that is no longer in verification/audit.json""")
BEHIND = error("""review-behind: The branch that head left has changed what this change is
    judged by or with: a merge has other content than was reviewed.
    Fix: Merge that branch into head, or rebase head, and review again.
    Finds: evidence that was withdrawn on main, of a definition that the change brings""")
OWN_SOFTWARE = warning("""review-own-software: The review was made by software that the
    change itself changes.
    Fix: Install the software of the base, and review with that.
    Finds: trace-dataset review in an editable checkout of the pull request""")

ASKS: Mapping[str, tuple[Rule, Decision, Weight]] = MappingProxyType(
    {
        rule.id: (rule, decision, weight)
        for rule, decision, weight in (
            (UNRENDERED, Decision.CHANGES, Weight.WEAKER_CHECK),
            (WEAKER, Decision.PERSON, Weight.WEAKER_CHECK),
            (REWRITTEN, Decision.CHANGES, Weight.REMOVED),
            (REMOVED, Decision.CHANGES, Weight.REMOVED),
            (DAMAGED, Decision.CHANGES, Weight.REMOVED),
            (LINK, Decision.CHANGES, Weight.PATH),
            (TWIN, Decision.CHANGES, Weight.PATH),
            (REFUSED, Decision.CHANGES, Weight.PATH),
            (BEHIND, Decision.CHANGES, Weight.PATH),
            (OWN_SOFTWARE, Decision.PERSON, Weight.WEAKER_CHECK),
            (RUNS, Decision.PERSON, Weight.RUNS),
            (UNCOMPARED, Decision.PERSON, Weight.RUNS),
            (CLAIM, Decision.PERSON, Weight.CLAIM),
            (UNKNOWN_PATH, Decision.PERSON, Weight.UNKNOWN),
        )
    }
)
"""Rule → the rule, what a Problem of it asks for, and how much it weighs."""

RULES = tuple(rule for rule, _, _ in ASKS.values())
_NAMED = 5
_LARGEST_PAGE = 4 << 20
_PICTURES = {".png": b"\x89PNG\r\n\x1a\n", ".jpg": b"\xff\xd8\xff"}


def of_paths(sources: Sources) -> Iterator[Problem]:
    """Yield what is wrong with paths, whatever is in the files, and what runs."""
    sides = sources.sides
    for path in sides.refused:
        yield REFUSED.problem(path, f"No checkout would have the path {quote(path)}.")
    for path in sides.moved:
        yield BEHIND.problem(path, "It is another one on the branch by now.")
    added = [p for p in sides.changed if p in sides.head and p not in sides.base]
    for path, other in twins(sides.head, sorted(added)):
        yield TWIN.problem(path, f"On some systems this is {quote(other, 200)}.")
    for path, treatment in sides.treatments.items():
        if treatment is LINKS:
            yield LINK.problem(path, f"This is no ordinary file: {treatment.could}.")
        elif treatment in (UNKNOWN, OUTSIDE):
            message = f"{_happened(path, sources)}, and {treatment.could}."
            if not path.isascii():
                message += f" Written in ASCII the path is {path!a}."
            yield UNKNOWN_PATH.problem(path, message)
        elif treatment in (DOCUMENTS, LICENCES):
            if why := _unshown(path, sources):
                message = f"{_happened(path, sources)}, and {why}."
                yield UNKNOWN_PATH.problem(path, message)
        elif treatment.could:
            message = (
                f"{_happened(path, sources)} ({treatment.name}): {treatment.could}."
            )
            yield RUNS.problem(path, message)


def of_recordings(sources: Sources) -> Iterator[Problem]:
    """Yield recordings that the change brings and no test could replay."""
    for path, treatment in sources.sides.treatments.items():
        if treatment is RECORDINGS:
            data = sources.read(path, MAX_FILE_BYTES)
            # what a pointer of Git LFS stands for lies elsewhere
            if data is None or data.startswith(LFS_MAGIC):
                continue
            if why := why_damaged(data):
                yield DAMAGED.problem(path, f"It is damaged: {why}.")


def _unshown(path: str, sources: Sources) -> str | None:
    """Return why a reader of a page or a picture would not see all of it."""
    if path not in sources.sides.head:
        return None
    data = sources.read(path, _LARGEST_PAGE)
    if data is None:
        return f"it is larger than {_LARGEST_PAGE >> 20} MiB"
    if path.endswith(tuple(_PICTURES)):
        begins = _PICTURES[path[path.rindex(".") :]]
        return None if data.startswith(begins) else "it is no picture of its kind"
    is_shown = is_shown_whole(data)
    return None if is_shown else "it has what no reader sees, or is no text in UTF-8"


def _happened(path: str, sources: Sources) -> str:
    sides = sources.sides
    if path in sides.outside:
        return "It changed"
    if path not in sides.base:
        return "It is new"
    if path not in sides.head:
        return "It is gone"
    is_mode = sides.base[path].oid == sides.head[path].oid
    return "Its mode changed" if is_mode else "It changed"


def reasons_of(findings: Iterable[Problem]) -> Iterator[Reason]:
    """Yield a reason for each rule that findings break, with the files it names."""
    by_rule: dict[str, list[Problem]] = defaultdict(list)
    for problem in findings:
        by_rule[problem.rule].append(problem)
    for rule, listed in by_rule.items():
        _, decision, weight = ASKS[rule]
        files = tuple(dict.fromkeys(problem.file for problem in listed))
        named = some([quote(file, 120) for file in files], _NAMED)
        same = len({problem.message for problem in listed}) == 1 or len(listed) == 1
        message = listed[0].message if same else ASKS[rule][0].explanation
        yield Reason(
            decision, weight, rule, one_line(f"{named}: {message}", 4000), files
        )
