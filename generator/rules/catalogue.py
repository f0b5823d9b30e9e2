"""All rules by group: those that the modules of an explicit list declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from generator.dataset import artifacts, file_reading, json_file, paths, schema
from generator.dataset import blobs as blob_files
from generator.dataset.paths import UnknownName
from generator.problems import Problem, limit
from generator.problems.rule import Rule
from generator.rules import (
    audits,
    blobs,
    constants,
    constraints,
    cross,
    execution,
    figures,
    loadable,
    made_up,
    names,
    reference,
    rendered,
    routes,
    solutions,
    static,
    structure,
    tags,
    traces,
    undefined_names,
    workloads,
)

_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "layout": ("dataset-", "directory-", "path-"),
    "files": ("file-", "json-", "jsonl-"),
    "schema": ("schema-", "too-many-"),
    "definitions": (
        "name-",
        "axis-",
        "input-",
        "constraint-syntax",
        "constraint-name",
        "loader-dtype",
    ),
    "reference": ("reference-",),
    "execute": ("execute-",),
    "constants": ("constant-",),
    "workloads": ("workload-", "blob-", "constraint-unchecked"),
    "tags": ("tag-",),
    "solutions": ("solution-", "baseline-", "loader-solution"),
    "traces": ("trace-", "loader-trace"),
    "cross": ("cross-", "model-"),
    "audit": ("audit-",),
    "rendered": ("rendered-", "custom-"),
}
"""Group of rules → how the ids of its rules begin."""

_DECLARED = [
    value
    for module in (
        *(paths, file_reading, json_file, schema, limit, names, reference),
        *(static, execution, constants, workloads, artifacts, blob_files, blobs),
        *(structure, constraints, made_up, tags, cross, figures, solutions, traces),
        *(audits, rendered, loadable, undefined_names, routes),
    )
    for value in vars(module).values()
    if isinstance(value, Rule)
]

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    group: tuple(dict.fromkeys(r for r in _DECLARED if r.id.startswith(prefixes)))
    for group, prefixes in _PREFIXES.items()
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
