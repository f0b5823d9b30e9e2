"""The floors as a Markdown page: how to read them, the table, every definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.precision.judge import FURTHEST, bounds
from generator.precision.result import LEAST, MOST, PROPOSED, Floors
from generator.precision.table import COLUMNS, figures, remarks, rows, times
from generator.problems import Problem
from generator.wording import one_line, plural

_INTRODUCTION = f"""\
# How precise an answer can be, and must be

Written by `trace-dataset floors --all --output`. Don't edit.

A tolerance has to let every right answer pass, and nothing more. What right answers need
is measured here: each reference is run as written and once more in float64. That is the
same `run()` under a mode that turns float32 into float64 wherever it is created or cast
to (`generator/precision/widened.py`), no second implementation. Inputs keep their values.
What the definition itself rounds to 16 or 8 bits in the middle stays rounded; only the
last rounding, of the output, is left out, so that it can be told from the arithmetic.

**The floor** of an output is one rounding of the float64 result to the output's dtype:
no answer in that dtype can be nearer on average. It is a root mean square, relative to
that of the output: about 1.7e-03 for bfloat16, 2.1e-04 for float16, 2.5e-08 for float32.

## How to read the table

| column | meaning |
|---|---|
| floor | as above |
| reference | the error of the reference as written against float64, in floors |
| source's | that of the oracle or of the production kernel, as recorded on a GPU, in floors |
| allowed | what the tolerance allows in all, in floors: the root mean square of the elementwise bound or, where that is less, NMSE's |
| tolerance | an element may be off by atol + rtol·\\|e\\|; and NMSE |
| bound x | how many times what was needed the elementwise bound is, at the element that comes nearest to its own bound |
| NMSE x | the same of NMSE, as errors: the root of the ratio, since NMSE is an energy |
| neediest | the definition and the case that take most of the tolerance |

A row stands for all definitions of the op_type that are under that tolerance. A multiple
of 1 is no narrow escape where the output's own rounding is what takes the bound: half a
unit in the last place is never exceeded, so it needs no room (against a kernel a whole
unit: both sides round, and right answers may be neighbours). Of a bfloat16 output held
against float64, an rtol of 4e-03 is as tight as a bound can be, since half a unit is
2^-8 = 3.9e-03 of a value just above a power of two.

Sums of integers and moved data are compared exactly, samples and chosen tokens by their
law: these have no floor. Large weights are run in float64 on shorter axes; their small
cases are measured on the whole ones as well, where a source's error is the one against
the reference.

## What is a problem

- `tolerance-tight`: after the rounding that is certain, less than {LEAST:g} times the
  arithmetic error that was seen is left. Another seed, GPU or order of summation is
  going to fail. Judged against every source.
- `tolerance-loose`: more than {MOST:g} times what was needed. Judged against the oracle
  alone: there is one right answer to it, and what all references need is all that anybody
  needs. A bound against a kernel is a contract with all kernels of that provider, and a
  recording shows one, of one version, on one GPU: its looseness says nothing.
- `float64-disagrees`: the float64 run is more than {FURTHEST:g} of an output off the
  oracle. No rounding explains that: one of the two computes something else, and no
  tolerance is judged by it.

The elementwise bound and NMSE are judged each by itself: the first sees a few wrong
elements, the second a small error throughout, and neither makes up for the other. The
unit is the bound, not the definition: what is needed is what the neediest definition
needs in its neediest case. Proposed is what leaves {PROPOSED:g} times the arithmetic error in
place of a bound that is too loose, and {LEAST:g} times, the least that fits, in place of one
that is too tight; rounded up to one digit, and never less than the dtype's own rounding.

A dtype's default that does not fit is an error, and the command exits 1. A bound that an
op gives itself stands beside its reason, often an analysis of the worst inputs that may
be far above what the cases show, or a GPU's: that is a warning, listed and no failure.
"""


def page(results: Sequence[Floors], against: Sequence[Problem]) -> str:
    """Return the page: the introduction, the table, problems, all definitions."""
    parts = [
        _INTRODUCTION,
        "## The table\n",
        _table(COLUMNS, rows(results)),
        "".join(f"- {_cell(line)}\n" for line in remarks(results)),
        "## Problems\n",
        "".join(f"- {_problem(problem)}\n" for problem in against) or "None.\n",
        f"## Each definition\n\n{plural(len(results), 'definition')}; columns as above.\n",
        *_definitions(results),
    ]
    return "\n".join(parts)


def _definitions(results: Sequence[Floors]) -> Iterator[str]:
    """Yield a folded table for each op_type, a row for each definition and bound."""
    for op_type in dict.fromkeys(result.op_type for result in results):
        own = [result for result in results if result.op_type == op_type]
        head = ("definition", "output", "source", *COLUMNS[3:7], *COLUMNS[8:10])
        lines = [
            (
                result.definition,
                bound.first.output,
                bound.first.source,
                *figures(bound)[:4],
                times(bound.multiple),
                "-" if bound.nmse_multiple is None else times(bound.nmse_multiple),
            )
            for result in own
            for bound in bounds([result])
        ]
        if lines:
            title = f"{_cell(op_type)}, {plural(len(own), 'definition')}"
            yield (
                f"<details><summary>{title}</summary>\n\n{_table(head, lines)}\n"
                "</details>\n"
            )


def _table(
    head: Sequence[str], lines: Iterator[tuple[str, ...]] | list[tuple[str, ...]]
) -> str:
    rule = "|".join("---" for _ in head)
    made = [f"| {' | '.join(head)} |", f"|{rule}|"]
    made += [f"| {' | '.join(map(_cell, line))} |" for line in lines]
    return "\n".join(made) + "\n"


def _problem(problem: Problem) -> str:
    return _cell(
        f"{problem.severity.value} {problem.rule}: {problem.message} Proposed: "
        f"{problem.fix}"
    )


def _cell(text: str) -> str:
    """Return a text that is no markup, on one line."""
    plain = one_line(text, 500)
    for sign, escape in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("`", "\\`")):
        plain = plain.replace(sign, escape)
    return plain
