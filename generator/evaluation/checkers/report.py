"""Defects that other checkers miss, as a report and as docs/generated/checkers.md."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

from generator.evaluation.checkers.names import NAMES
from generator.evaluation.checkers.result import CheckedDefects
from generator.problems.messages import plural
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)

# what a defect's name says that it is; the first that fits
_FAMILIES = (
    (r"zero|: the last zero", "zeros, a slice unwritten"),
    (r"1 % too large", "1.01 times too large"),
    (r"stale", "the last call's answer"),
    (r"natural", "natural logarithm for the base-2 one"),
    (
        r"(mask|window|causal|key).*\bone\b|\bone\b.*(mask|window|key)",
        "mask off by one",
    ),
    (r"mask|causal|window", "another mask, or none"),
    (r"shifted by one", "shifted by one"),
    (r"negated", "negated"),
)
_OTHER = "of the op alone"
_PREFACE = """\
Other checkers of kernels, asked about defects that this project plants in references. A
number is how many defects pass, of those that the checker was asked about: each is wrong,
and `trace-dataset audit` shows for each definition that its own tests refuse it
([what is planted](../audit.md)).

How a number is made: `trace-dataset audit --checker NAME --record` takes each domain
mutant of a definition as a solution. It is called, as the checker calls solutions, on
the checker's inputs at the shapes of three of the dataset's workloads: the smallest, a
middle one, and the largest of up to 16 MiB. What it returns is held against what the
reference returns, by the checker's rule. It passes where it does so in every round. The
rules are written from their published formulas, with their inputs and thresholds
([how](../evaluate.md#other-checkers)); no code of theirs runs. Where a workload states
values (index pointers, scales), these are used. Definitions whose smallest workload has
over 64 MiB are asked on shorter axes, as audits have them, or not at all.

What a number is not: a judgement of the projects, which choose inputs for each of their
own tasks and may do more than this rule. It says what the rule and such inputs can see:
an embedding of one token that is not in the shard is zeros, and so is nearly, for tensors
near 1, a product in float8 with the scales of larger ones.
"""


def family(defect: str) -> str:
    """Return the family of a defect, of which its name tells."""
    families = (name for pattern, name in _FAMILIES if re.search(pattern, defect))
    return next(families, _OTHER)


def checkers_report(
    checked: Sequence[CheckedDefects], *, is_page: bool = False
) -> Report:
    """Return the report; it failed where nothing could be asked about a definition."""
    names = list(dict.fromkeys(name for one in checked for name in one.checkers))
    titles = [_shown(name) for name in names]
    passing = sum(len(j.passes) for one in checked for j in one.checkers.values())
    asked = sum(
        len(one.defects) for one in checked for j in one.checkers.values() if not j.why
    )
    broken = [one for one in checked if one.error]
    summary = (
        f"{plural(len(checked), 'definition')}, {plural(len(names), 'checker')}: "
        f"{passing} of {plural(asked, 'planted defect')} pass"
    )
    definitions = Table(
        [_definition(one, names) for one in checked],
        ("definition", "defects", *titles),
        words=("definition",),
        totals=(
            "all",
            str(sum(len(one.defects) for one in checked)),
            *_totals(checked, names),
        ),
    )
    return Report(
        title="What other checkers let pass",
        command="trace-dataset audit --checker --json",
        conclusion=Conclusion(Status.FAILED if broken else Status.PASSED, summary),
        payload={
            "totals": {"definitions": len(checked), "asked": asked, "passing": passing},
            "definitions": [
                {
                    "definition": one.definition,
                    "op_type": one.op_type,
                    "error": one.error,
                    "defects": list(one.defects),
                    "reduced": dict(one.reduced),
                    "checkers": {n: vars(j) for n, j in one.checkers.items()},
                }
                for one in checked
            ],
        },
        sections=[
            Section("By family of defects", [_families(checked, names)]),
            Section("By definition", [definitions]),
            Section("What passes", [Table(_passing(checked), keys=2)]),
            Section("What was not asked", [Table(_left_out(checked), keys=2)]),
        ],
        preface=_PREFACE if is_page else "",
        is_page=is_page,
        is_said=True,
    )


def _families(checked: Sequence[CheckedDefects], names: Sequence[str]) -> Table:
    asked, passing = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in checked:
        for name, judged in one.checkers.items():
            if not judged.why:
                asked.update((name, family(defect)) for defect in one.defects)
                passing.update((name, family(defect)) for defect in judged.passes)
    kinds = [name for _, name in _FAMILIES] + [_OTHER]
    rows = [
        Row((kind, *(_of(passing[name, kind], asked[name, kind]) for name in names)))
        for kind in kinds
        if any(asked[name, kind] for name in names)
    ]
    totals = ("all", *_totals(checked, names))
    titles = map(_shown, names)
    return Table([*rows, Row(totals)], ("defects", *titles), words=("defects",))


def _totals(checked: Sequence[CheckedDefects], names: Sequence[str]) -> list[str]:
    cells = []
    for name in names:
        judged = [(one, one.checkers[name]) for one in checked if name in one.checkers]
        asked = sum(len(one.defects) for one, answer in judged if not answer.why)
        cells.append(_of(sum(len(answer.passes) for _, answer in judged), asked))
    return cells


def _definition(one: CheckedDefects, names: Sequence[str]) -> Row:
    cells = []
    for name in names:
        judged = one.checkers.get(name)
        asked = judged is not None and not judged.why
        cells.append(str(len(judged.passes)) if judged and asked else "-")
    status = Status.FAILED if one.error else Status.PASSED
    about = (Quoted(one.definition), str(len(one.defects)))
    return Row((*about, *cells), status, one.error)


def _passing(checked: Sequence[CheckedDefects]) -> list[Row]:
    return [
        Row((Quoted(one.definition), _shown(name), ", ".join(judged.passes)))
        for one in checked
        for name, judged in one.checkers.items()
        if judged.passes
    ]


def _left_out(checked: Sequence[CheckedDefects]) -> list[Row]:
    rows = [
        Row((Quoted(one.definition), _shown(name), judged.why))
        for one in checked
        for name, judged in one.checkers.items()
        if judged.why
    ]
    rows += [
        Row((Quoted(one.definition), "all", one.error)) for one in checked if one.error
    ]
    return rows + [
        Row((Quoted(one.definition), "all", f"asked with {_lengths(one)}"))
        for one in checked
        if one.reduced
    ]


def _lengths(one: CheckedDefects) -> str:
    return ", ".join(f"{axis} = {length}" for axis, length in one.reduced.items())


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"


def _shown(checker: str) -> str:
    """Return a checker's name; of a command that of its last file."""
    return checker if checker in NAMES else shlex.split(checker)[-1].rpartition("/")[2]
