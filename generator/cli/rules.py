"""The command `trace-dataset rules`: list and explain what validate looks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from generator.cli.output import EXIT_FINE, Failure, write

if TYPE_CHECKING:
    from generator.select import UnknownName


@click.command()
@click.argument("names", nargs=-1, metavar="[ID|GROUP]...")
@click.option("--json", "as_json", is_flag=True, help="Print the rules as JSON.")
def rules(names: tuple[str, ...], as_json: bool) -> int:
    """List the rules of validate, or explain those that are named."""
    import json

    from generator.rules.explain import as_dicts, as_list, as_text, select_rules
    from generator.rules.table import RULES
    from generator.select import UnknownName

    try:
        chosen = select_rules(names)
    except UnknownName as error:
        raise Failure(_unknown(error)) from error
    if as_json:
        write(json.dumps({"rules": as_dicts(chosen)}, indent=2) + "\n")
    elif names:
        explained = ["\n".join(as_text(r)) for r in RULES.values() if r.id in chosen]
        write("\n\n".join(explained) + "\n")
    else:
        write("\n".join(as_list(chosen)) + "\n")
    return EXIT_FINE


def _unknown(error: UnknownName) -> str:
    """Return what to say of a name that is no rule's: a problem of `floors` has one."""
    from generator.precision.judge import IDS

    if error.name not in IDS:
        return str(error)
    return (
        f"{error.name} is no rule of validate: `trace-dataset floors` tells it, and "
        "docs/precision.md says what it means."
    )
