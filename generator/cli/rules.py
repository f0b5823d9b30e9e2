"""The command `trace-dataset rules`: list and explain the rules of validate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.cli import options
from generator.cli.output import EXIT_FINE, write, write_json
from generator.problems import Failure

if TYPE_CHECKING:
    from generator.problems import Rule


@options.command()
def rules(
    names: tuple[str, ...] = options.argument(nargs=-1, metavar="[ID|GROUP]..."),
    as_json: bool = options.as_json,
) -> int:
    """List the rules of validate, or explain the named ones."""
    from generator.dataset.paths import UnknownName
    from generator.reports.json import plain
    from generator.rules.catalogue import GROUPS, RULES, group_of, select_rules

    try:
        chosen = select_rules(names)
    except UnknownName as error:
        from generator.mutation.tolerances.judge import IDS

        if error.name not in IDS:
            raise
        raise Failure(
            f"{error.name} is no rule of validate: `trace-dataset audit --tolerances` "
            "reports it, and docs/generated/precision.md explains it."
        ) from None
    # in the order of the groups
    rules = [rule for rule in RULES.values() if rule.id in chosen]
    if as_json:
        write_json({"rules": [{"group": group_of(r.id), **plain(r)} for r in rules]})
    elif names:
        write("\n".join(_explained(group_of(rule.id), rule) for rule in rules))
    else:
        width = max(map(len, RULES))
        for group, members in GROUPS.items():
            lines = [_line(rule, width) for rule in members if rule in rules]
            write("".join([f"{group}\n", *lines]) if lines else "")
    return EXIT_FINE


def _line(rule: Rule, width: int) -> str:
    return f"  {rule.severity.value:<7} {rule.id:<{width}}  {rule.explanation}\n"


def _explained(group: str, rule: Rule) -> str:
    return (
        f"{rule.id}: {rule.severity.value}, group {group}\n  {rule.explanation}\n"
        f"  finds: {rule.example}\n  fix: {rule.fix}\n"
    )
