"""False alarms as text: a table by definition, one by op_type, and each alarm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from generator.audit.seeds_result import LOW, SeedsResult
from generator.audit.table import shortened, text_table
from generator.wording import one_line, plural

# of a definition; all are in the JSON
_SHOWN = 3
_COUNTED = ("test_matches_oracle", "test_metamorphic")


def table(results: Sequence[SeedsResult]) -> str:
    """Return a row for each definition, and one of the totals."""
    return _table("definition", {result.definition: [result] for result in results})


def by_op_type(results: Sequence[SeedsResult]) -> str:
    """Return a row for each op_type, and one of the totals."""
    groups: dict[str, list[SeedsResult]] = {}
    for result in results:
        groups.setdefault(result.op_type, []).append(result)
    return _table("op_type", groups)


def _table(what: str, groups: dict[str, list[SeedsResult]]) -> str:
    everything = [result for group in groups.values() for result in group]
    rows = [(one_line(name), *_figures(group)) for name, group in groups.items()]
    names = ["seeds", "tests", "oracle", "metamorphic", "statistical", "skipped"]
    names += ["alarms", "seconds"]
    totals = dict(zip(names, _figures(everything), strict=True))
    columns = {what: plural(len(rows), what), **totals}
    return text_table(columns, rows, words=(what,))


def _figures(group: Sequence[SeedsResult]) -> list[str]:
    seeds = {last - first + 1 for first, last in (r.seeds for r in group)}
    counted = [sum(r.tests.get(test, 0) for r in group) for test in _COUNTED]
    counts = [
        sum(r.asked for r in group),
        *counted,
        sum(r.statistical for r in group),
        sum(sum(r.skipped.values()) for r in group),
    ]
    alarms = sum(len(r.alarms) + r.is_low_too_often for r in group)
    broken = any(r.error for r in group)
    return [
        ", ".join(map(str, sorted(seeds))),
        *map(str, counts),
        f"{alarms}, not all asked" if broken else str(alarms),
        f"{sum(r.seconds for r in group):.1f}",
    ]


def remarks(results: Sequence[SeedsResult]) -> Iterator[str]:
    """Yield each alarm with how to see it again, and what else a reader must know."""
    tests: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for result in results:
        tests.update(result.tests)
        skipped.update(result.skipped)
        yield from _of_definition(result)
    if tests:
        counts = ", ".join(
            f"{name.removeprefix('test_')} {count}" for name, count in tests.items()
        )
        yield f"asked: {counts}"
    for reason, count in skipped.items():
        yield f"skipped {count} times: {one_line(reason)}"
    for axes, count in shortened((r.op_type, r.reduced) for r in results):
        yield f"{axes} in {plural(count, 'definition')}: asked on shorter axes"
    statistical = sum(r.statistical for r in results)
    if statistical:
        significance = max(r.significance for r in results)
        chance = -100 * math.expm1(statistical * math.log1p(-significance))
        low = sum(r.low for r in results)
        yield (
            f"{statistical} comparisons are statistical, at a significance of "
            f"{significance:g} each: chance alone turns one red in {chance:.2g} % of "
            f"such audits, so none may be; {low} p-values are at most {LOW:g}, "
            f"{statistical * LOW:.1f} are expected at most"
        )


def _of_definition(result: SeedsResult) -> Iterator[str]:
    name = one_line(result.definition)
    if result.error:
        yield f"{name}: not asked to the end: {one_line(result.error)}"
    for alarm in result.alarms[:_SHOWN]:
        test = alarm.test.removeprefix("test_")
        yield (
            f"{name}: seed {alarm.seed}, case {one_line(alarm.case)}, {one_line(test)}: "
            f"{one_line(alarm.why)}"
        )
        yield (
            f"  again: trace-dataset audit --definition-name {name} "
            f"--seeds {alarm.seed}-{alarm.seed}"
        )
    if len(result.alarms) > _SHOWN:
        seeds = {alarm.seed for alarm in result.alarms}
        yield (
            f"{name}: {len(result.alarms) - _SHOWN} more, {len(result.alarms)} with "
            f"{plural(len(seeds), 'seed')} in all"
        )
    if result.is_low_too_often:
        yield (
            f"{name}: {result.low} of {result.statistical} statistical comparisons have "
            f"p-values of at most {LOW:g}: chance explains {result.low_by_chance}"
        )
    if not (result.asked or result.error):
        yield f"{name}: no test was asked"
