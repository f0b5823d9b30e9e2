"""Whether the report of a confined test run can be believed.

A reference runs in the process that judges it, and can forge what that process says.
So the reader knows beforehand what must be reported, and believes nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from generator.execution.sandbox import CommandOutcome
from generator.problems.messages import some

_SOME = 3


class Account(NamedTuple):
    """The outcome of each test, and each reason not to believe it.

    Among `failed` are those that were reported twice, or with an unknown outcome.
    """

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]
    problems: tuple[str, ...]


def account(
    outcome: CommandOutcome,
    expected: Iterable[str],
    reported: Sequence[tuple[str, str]],
    canaries: Mapping[str, str] | None = None,
) -> Account:
    """Compare what was reported with what was expected before anything ran.

    `canaries` are tests of the same run that a sound judge turns red, each with the test
    that it copies: where that was skipped, for want of memory say, so may the canary be,
    and no pass comes of it. The exit status is that of the other tests.
    """
    canaries = canaries or {}
    wanted = tuple(dict.fromkeys(name for name in expected if name not in canaries))
    times = Counter(name for name, _ in reported)
    results = dict(reported)
    ways: dict[str, list[str]] = {"passed": [], "skipped": [], "failed": []}
    for name in filter(results.__contains__, wanted):
        way = results[name] if times[name] == 1 else "failed"
        ways.get(way, ways["failed"]).append(name)
    signs = {
        "not reported": [name for name in wanted if name not in results],
        "reported and not expected": results.keys() - {*canaries, *wanted},
        "reported more than once": [name for name, n in times.items() if n > 1],
        "must fail and did not": [
            canary
            for canary, test in canaries.items()
            if results.get(canary) != "failed"
            and not results.get(canary) == results.get(test) == "skipped"
        ],
    }
    problems = _of_the_end(outcome, bool(ways["failed"]))
    for sign, pattern in signs.items():
        if pattern:
            problems.append(f"{sign}: {some(sorted(pattern), _SOME)}")
    by_way = {way: tuple(names) for way, names in ways.items()}
    return Account(**by_way, problems=tuple(problems))


def _of_the_end(outcome: CommandOutcome, red: bool) -> list[str]:
    """Return what is wrong with the end; pytest says 1 where a test failed, else 0."""
    if outcome.status == "not started":
        return [f"it was not started: {outcome.detail}"]
    if outcome.limit is not None:
        return [f"it was killed at a limit: {outcome.limit}"]
    if outcome.signal is not None:
        return [f"it was killed by signal {outcome.signal}"]
    if outcome.exit_status is None:
        return ["it ended without a status"]
    if outcome.exit_status != int(red):
        return [f"it ended with {outcome.exit_status}; the report says {int(red)}"]
    return []
