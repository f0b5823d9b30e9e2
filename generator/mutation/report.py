"""Reports of audits: mutants, and false alarms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from generator.mutation.mutants_result import DefinitionResult, MutantResult
from generator.mutation.seeds_result import LOW, Alarm, SeedsResult
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
from generator.results.audits import (
    CAUGHT,
    EQUIVALENT,
    SURVIVED,
    TIMED_OUT,
)

# of a definition; all are in the JSON
_SHOWN = 3
_SHOWN_TESTS = 2
_COUNTED = ("test_matches_oracle", "test_metamorphic")
_STATUSES = (CAUGHT, EQUIVALENT, SURVIVED, TIMED_OUT)
_MUTANTS = ("definition", "mutants", *_STATUSES, "seconds", "first caught by")
_SEEDS = (
    *("seeds", "tests", "oracle", "metamorphic", "statistical", "skipped"),
    *("alarms", "seconds"),
)


def mutants_report(
    results: Sequence[DefinitionResult], *, survivors: bool = False
) -> Report:
    """Return the report of an audit; `survivors` lists them with their lines."""
    total = {s: sum(result.counts[s] for result in results) for s in _STATUSES}
    judged = sum(total.values()) - total[EQUIVALENT]
    summary = (
        f"{plural(len(results), 'definition')}: {plural(judged, 'mutant')} that are not "
        f"equivalent, {total[SURVIVED]} survived"
    )
    failed = sum(bool(result.error) for result in results)
    summary += f"; {plural(failed, 'definition')} not audited" if failed else ""
    totals = (plural(len(results), "definition"), *_counts(results))
    rows = [_mutants(result) for result in results]
    table = Table(
        rows, _MUTANTS, words=("definition", "first caught by"), totals=totals
    )
    reduced = ((r.op_type, r.reduced) for r in results)
    remarks = [
        *(remark for result in results for remark in _of_definition(result)),
        *(remark for result in results for remark in _not_asked(result)),
        *shortened(reduced, "audited on shorter axes, without recordings"),
    ]
    tables = [table, _lines(remarks)]
    if survivors:
        tables += [_survivor(r.definition, m) for r in results for m in r.survivors]
    return Report(
        title="Audit of the tests",
        command="trace-dataset audit --survivors",
        conclusion=Conclusion(_status(r.is_fine for r in results), summary),
        payload={
            "totals": {"definitions": len(results), **total},
            "definitions": [result.as_dict() for result in results],
        },
        sections=[Section("", tables)],
        is_said=True,
    )


def seeds_report(results: Sequence[SeedsResult], seeds: tuple[int, int]) -> Report:
    """Return the report of what the tests said of references as they are."""
    tests = sum(result.asked for result in results)
    alarms = sum(len(result.alarms) for result in results)
    fine = sum(result.is_fine for result in results)
    summary = (
        f"{plural(len(results), 'definition')}, seeds {seeds[0]} to {seeds[1]}: "
        f"{plural(tests, 'test')} of references as they are, "
        f"{plural(alarms, 'alarm')} in {plural(len(results) - fine, 'definition')}"
    )
    by_type: dict[str, list[SeedsResult]] = {}
    for result in results:
        by_type.setdefault(result.op_type, []).append(result)
    rows = [_of_seeds(result) for result in results]
    tables = [_seeds_table("definition", rows, results)]
    if len(by_type) > 1:
        rows = [Row((Quoted(name), *_seeds(of))) for name, of in by_type.items()]
        tables.append(_seeds_table("op_type", rows, results))
    for result in results:
        tables += [*_alarms(result), _lines(_wrong(result))]
    return Report(
        title="False alarms of the tests",
        command="trace-dataset audit --seeds",
        conclusion=Conclusion(_status(r.is_fine for r in results), summary),
        payload={
            "totals": {
                "definitions": len(results),
                "tests": tests,
                "alarms": alarms,
                "statistical": sum(result.statistical for result in results),
                "fine": fine,
            },
            "definitions": [{**r.as_dict(), "is_fine": r.is_fine} for r in results],
        },
        sections=[Section("", [*tables, _lines(_asked(results))])],
        is_said=True,
    )


def shortened(
    reduced: Iterable[tuple[str, Mapping[str, int]]], how: str
) -> Iterator[tuple[str, ...]]:
    """Yield which axes of which op_type are shorter, and in how many definitions."""
    counts: Counter[str] = Counter()
    for op_type, axes in reduced:
        if axes:
            shortened = ", ".join(f"{name}={length}" for name, length in axes.items())
            counts[f"{op_type}: {shortened}"] += 1
    for shorter, count in counts.items():
        yield (f"{shorter} in {plural(count, 'definition')}", how)


def _status(fine: Iterable[bool]) -> Status:
    return Status.PASSED if all(fine) else Status.FAILED


def _lines(rows: Iterable[Iterable[str]]) -> Table:
    return Table([Row([Quoted(cell) for cell in row]) for row in rows])


def _mutants(result: DefinitionResult) -> Row:
    cells = _counts([result])
    if result.error:
        cells = ("-", *cells[1:-1], "not audited")
    remarks = [why for _, why in _of_definition(result)]
    remarks += [f"survived: {mutant.name}" for mutant in result.survivors]
    why = "; ".join(remarks[:_SHOWN])
    return Row((Quoted(result.definition), *cells), _status([result.is_fine]), why)


def _counts(results: Sequence[DefinitionResult]) -> tuple[str, ...]:
    total = [sum(result.counts[status] for result in results) for status in _STATUSES]
    seconds = sum(result.seconds for result in results)
    tests: Counter[str] = Counter()
    for result in results:
        tests.update(result.first_tests)
    # those that caught most
    ordered = sorted(tests.items(), key=lambda item: (-item[1], item[0]))
    shown = ordered[:_SHOWN_TESTS]
    if rest := sum(tests.values()) - sum(count for _, count in shown):
        shown.append(("others", rest))
    first = ", ".join(f"{test} {count}" for test, count in shown)
    return (str(sum(total)), *map(str, total), f"{seconds:.1f}", first)


def _of_definition(result: DefinitionResult) -> Iterator[tuple[str, str]]:
    if result.error:
        yield result.definition, f"not audited: {result.error}"
    for test in result.left_out:
        yield result.definition, f"the reference itself does not pass {test}"


def _not_asked(result: DefinitionResult) -> Iterator[tuple[str, str]]:
    """Yield in how many cases nothing was compared, with the first of each reason."""
    first: dict[str, str] = {}
    for case, why in result.not_asked.items():
        first.setdefault(why.split(":")[0], f"{case}: {why}")
    if first:
        count = plural(len(result.not_asked), "case")
        yield (
            result.definition,
            f"not compared in {count}: {'; '.join(first.values())}",
        )


def _survivor(definition: str, mutant: MutantResult) -> Table:
    """Return a survivor: its name, and the line of the reference before and after."""
    changed = [f"- {mutant.line}: {mutant.before}", f"+ {mutant.line}: {mutant.after}"]
    lines = [*(changed if mutant.line else []), mutant.why]
    rows = [Row((Quoted(line),)) for line in lines]
    return Table(rows, title=Quoted(f"{definition}: {mutant.name}"))


def _of_seeds(result: SeedsResult) -> Row:
    remarks = [_alarm(alarm) for alarm in result.alarms[:_SHOWN]]
    remarks += [why for _, why in _wrong(result)]
    cells = (Quoted(result.definition), *_seeds([result]))
    return Row(cells, _status([result.is_fine]), "; ".join(remarks))


def _seeds_table(
    what: str, rows: Sequence[Row], results: Sequence[SeedsResult]
) -> Table:
    totals = (plural(len(rows), what), *_seeds(results))
    return Table(rows, (what, *_SEEDS), words=(what,), totals=totals)


def _seeds(group: Sequence[SeedsResult]) -> list[str]:
    seeds = {last - first + 1 for first, last in (r.seeds for r in group)}
    counts = [
        sum(r.asked for r in group),
        *(sum(r.tests.get(test, 0) for r in group) for test in _COUNTED),
        sum(r.statistical for r in group),
        sum(sum(r.skipped.values()) for r in group),
    ]
    alarms = sum(len(r.alarms) + r.is_low_too_often for r in group)
    return [
        ", ".join(map(str, sorted(seeds))),
        *map(str, counts),
        f"{alarms}, not all asked" if any(r.error for r in group) else str(alarms),
        f"{sum(r.seconds for r in group):.1f}",
    ]


def _alarms(result: SeedsResult) -> Iterator[Table]:
    """Yield the first alarms, each with how to see it again."""
    name = result.definition
    for alarm in result.alarms[:_SHOWN]:
        again = f"trace-dataset audit --definition-name {name} --seeds"
        row = Row(("again", Quoted(f"{again} {alarm.seed}-{alarm.seed}")))
        yield Table([row], title=Quoted(f"{name}: {_alarm(alarm)}"))


def _alarm(alarm: Alarm) -> str:
    test = alarm.test.removeprefix("test_")
    return f"seed {alarm.seed}, case {alarm.case}, {test}: {alarm.why}"


def _wrong(result: SeedsResult) -> Iterator[tuple[str, str]]:
    """Yield what else a reader must know of a definition."""
    name = result.definition
    if result.error:
        yield name, f"not asked to the end: {result.error}"
    more = len(result.alarms) - _SHOWN
    if more > 0:
        seeds = plural(len({alarm.seed for alarm in result.alarms}), "seed")
        yield name, f"{more} more, {len(result.alarms)} with {seeds} in all"
    if result.is_low_too_often:
        of_all = f"{result.low} of {result.statistical} statistical comparisons"
        chance = f"chance explains {result.low_by_chance}"
        yield name, f"{of_all} have p-values of at most {LOW:g}: {chance}"
    if not (result.asked or result.error):
        yield name, "no test was asked"


def _asked(results: Sequence[SeedsResult]) -> Iterator[tuple[str, ...]]:
    """Yield what was asked of all definitions, and what was not."""
    tests: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for result in results:
        tests.update(result.tests)
        skipped.update(result.skipped)
    if tests:
        counts = (f"{name.removeprefix('test_')} {n}" for name, n in tests.items())
        yield "asked", ", ".join(counts)
    for reason, count in skipped.items():
        yield f"skipped {count} times", reason
    reduced = ((r.op_type, r.reduced) for r in results)
    yield from shortened(reduced, "asked on shorter axes")
    statistical = sum(r.statistical for r in results)
    if statistical:
        significance = max(r.significance for r in results)
        chance = -100 * math.expm1(statistical * math.log1p(-significance))
        low = sum(r.low for r in results)
        what = f"{statistical} comparisons are statistical, at a significance of "
        means = (
            f"chance alone turns one red in {chance:.2g} % of such audits, so none may "
            f"be; {low} p-values are at most {LOW:g}, {statistical * LOW:.1f} are "
            "expected at most"
        )
        yield f"{what}{significance:g} each", means
