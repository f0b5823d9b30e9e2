"""The command `trace-dataset rules`: list and explain the rules of validate."""

from __future__ import annotations

from generator.cli import options
from generator.cli.output import EXIT_FINE, write, write_json
from generator.problems import Failure


@options.command()
def rules(
    names: tuple[str, ...] = options.argument(nargs=-1, metavar="[ID|GROUP]..."),
    as_json: bool = options.as_json,
) -> int:
    """List the rules of validate, or explain the named ones."""
    from generator.dataset.paths import UnknownName
    from generator.rules.catalogue import RULES, select_rules
    from generator.rules.explain import as_dicts, as_list, as_text

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
    if as_json:
        write_json({"rules": as_dicts(chosen)})
    elif names:
        explained = ["\n".join(as_text(r)) for r in RULES.values() if r.id in chosen]
        write("\n\n".join(explained) + "\n")
    else:
        write("\n".join(as_list(chosen)) + "\n")
    return EXIT_FINE
