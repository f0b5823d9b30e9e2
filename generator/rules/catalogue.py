"""All rules by group: those that the modules of an explicit list declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib import import_module

from generator.dataset.paths import UnknownName
from generator.problems import Failure, Problem, Rule
from generator.rules.others import other_rules

_MODULES = """
    dataset.paths dataset.file_reading dataset.json_file dataset.schema problems
    rules.names rules.interface rules.reference rules.hidden_text rules.static
    rules.torch_names rules.screen
    rules.runtime_rules rules.constants rules.domains rules.workloads dataset.artifacts dataset.blobs rules.blobs rules.structure
    rules.constraints rules.synthetic_workloads rules.tags rules.tag_claims rules.cross rules.figures
    rules.solutions rules.traces rules.loadable rules.routes rules.route_calls
    rules.accepted rules.unproven rules.proofs"""
"""What declares rules, in the order in which a group lists them."""

_PREFIXES: Mapping[str, str] = {
    "layout": "dataset- directory- path-",
    "files": "file- json- jsonl-",
    "schema": "schema- too-many-",
    "definitions": "name- axis- input- op- text- constraint-syntax constraint-name "
    "loader-dtype",
    "reference": "reference-",
    "execute": "execute-",
    "constants": "constant-",
    "workloads": "workload- blob- constraint-unchecked",
    "tags": "tag-",
    "solutions": "solution- baseline- loader-solution",
    "traces": "trace- loader-trace",
    "cross": "cross- model-",
    "routes": "route- accepted-",
    "audit": "audit-",
    "rendered": "rendered- custom- oracle-",
}
"""Group of rules → how the ids of its rules begin."""

_DECLARED = [
    value
    for module in _MODULES.split()
    for value in vars(import_module(f"generator.{module}")).values()
    if isinstance(value, Rule)
]


def _others() -> Mapping[str, tuple[Rule, ...]]:
    """Return the groups of other distributions; validation says which one is broken."""
    try:
        return other_rules()
    except Failure:
        return {}


GROUPS: Mapping[str, tuple[Rule, ...]] = {
    **_others(),
    **{
        group: tuple(
            dict.fromkeys(
                r for r in _DECLARED if r.id.startswith(tuple(prefixes.split()))
            )
        )
        for group, prefixes in _PREFIXES.items()
    },
}
"""Group of rules → its rules; `--checks` takes a group or an id."""

RULES: Mapping[str, Rule] = {r.id: r for group in GROUPS.values() for r in group}
"""Id → rule, in the order of the groups."""


def is_blocked(problems: Iterable[Problem]) -> bool:
    """Return whether any of the problems makes a definition unfit to be rendered."""
    return any(RULES[p.rule].blocks for p in problems)


def group_of(rule: str) -> str:
    """Return the group that a rule belongs to; raises KeyError."""
    return next(g for g, rules in GROUPS.items() if RULES[rule] in rules)


def select_rules(asked: Collection[str]) -> frozenset[str]:
    """Return the ids of the rules and groups in `asked`; of all rules if it is empty.

    Raises UnknownName.
    """
    for name in asked:
        if name not in GROUPS and name not in RULES:
            raise UnknownName("rule or group", name, [*GROUPS, *RULES])
    groups = {rule.id for name in asked for rule in GROUPS.get(name, ())}
    return frozenset(groups | (RULES.keys() & asked) if asked else RULES)
