"""Rules of other distributions: an entry point of `gen_tests.rules` names a module.

The module has Rules, whose ids begin with the entry point's name and a hyphen, and
`check(definition)`, which yields Problems of them. It can add Problems and silence none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from generator.dataset.definition import LoadedDefinition
from generator.dataset.plugins import RULES, BadPlugin, plugin, plugins
from generator.problems import Problem, Rule

Check = Callable[[LoadedDefinition], Iterable[Problem]]


@cache
def other_rules() -> Mapping[str, tuple[Rule, ...]]:
    """Return group → its rules, for each module. Raises BadPlugin."""
    return {name: _rules(name) for name in plugins(RULES)}


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield what the rules of other distributions find. Raises BadPlugin."""
    for name, rules in other_rules().items():
        ids = {rule.id for rule in rules}
        for problem in _check_of(name)(definition):
            if problem.rule not in ids:
                raise BadPlugin(
                    f"The rules {name!r}: {problem.rule!r} is none of them."
                )
            yield problem


def _rules(name: str) -> tuple[Rule, ...]:
    _check_of(name)
    module = plugin(RULES, name)
    rules = tuple(value for value in vars(module).values() if isinstance(value, Rule))
    if not rules:
        raise BadPlugin(f"{module.__name__}, the entry point {name!r}, has no Rule.")
    for rule in rules:
        if not rule.id.startswith(f"{name}-"):
            raise BadPlugin(
                f"{module.__name__}: the rule {rule.id!r} does not begin with '{name}-'."
            )
    return rules


def _check_of(name: str) -> Check:
    module = plugin(RULES, name)
    function: Check | None = getattr(module, "check", None)
    if not callable(function):
        raise BadPlugin(f"{module.__name__}, the entry point {name!r}, has no check().")
    return function
