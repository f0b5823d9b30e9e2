"""The command `trace-dataset validate`: check a dataset without running any of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from generator.cli.choose import choice_options, dataset_option, require_definitions
from generator.cli.output import (
    EXIT_FINE,
    EXIT_PROBLEMS,
    Failure,
    progress,
    say,
    write,
)
from generator.wording import plural

if TYPE_CHECKING:
    from generator.problems import Problem
    from generator.validate import Plan

_FORMATS = ["text", "json", "sarif", "junit", "markdown", "github"]
_MAX_CONFIG = 4 * 1024 * 1024


@click.command()
@dataset_option
@choice_options("Check the definitions of this op_type", "Check this definition")
@click.option(
    "--checks",
    multiple=True,
    metavar="RULES",
    help="Report only these rules or groups of rules, separated by commas; may be "
    "repeated. `trace-dataset rules` lists them.",
)
@click.option(
    "--model-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A model's config.json: const axes must be what it says, divided by tp: and "
    "ep: tags.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="How to print what was found.",
)
@click.option(
    "--execute",
    is_flag=True,
    help="Call each reference once on small inputs, in a sandbox; needs torch.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="With --execute: also call what the screen of the sources objects to, and "
    "without isolation from the network.",
)
@click.option("--notes", is_flag=True, help="Show notes in text and github as well.")
@click.option("--strict", is_flag=True, help="Exit 1 on warnings as well.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes for a large dataset; as many as there are cores if not given.",
)
@click.option(
    "--no-cache", is_flag=True, help="Check everything anew, and remember nothing."
)
def validate(
    dataset: Path,
    op_types: tuple[str, ...],
    names: tuple[str, ...],
    checks: tuple[str, ...],
    model_config: Path | None,
    form: str,
    execute: bool,
    trust: bool,
    notes: bool,
    strict: bool,
    jobs: int | None,
    no_cache: bool,
) -> int:
    """Check definitions and all that belongs to them.

    Without --execute nothing of the dataset runs.
    """
    if trust and not execute:
        raise click.UsageError("--trust goes with --execute.")
    from dataclasses import replace

    from generator.cache import Cache, default_path
    from generator.parallel import default_jobs
    from generator.problems import Severity
    from generator.reports import Style, report
    from generator.rules.explain import select_rules
    from generator.select import UnknownName
    from generator.validate import Counts, make_plan, run_plan

    config = _config(model_config) if model_config is not None else None
    try:
        rules = select_rules([c.strip() for part in checks for c in part.split(",")])
        plan = make_plan(dataset, op_types=op_types, names=names)
    except UnknownName as error:
        raise Failure(str(error)) from error
    require_definitions(plan.problems)
    jobs = jobs or default_jobs()
    if execute:
        plan = replace(plan, problems=plan.problems + _executed(plan, trust, jobs))
    counts = Counts()
    problems = run_plan(
        plan,
        counts,
        rules=rules,
        config=config,
        cache=None if no_cache else Cache(default_path()),
        jobs=jobs,
    )
    for text in report(form)(
        problems, counts, Style(prefix_of(dataset), notes, strict)
    ):
        write(text)
    failed = counts.found[Severity.ERROR] or (strict and counts.found[Severity.WARNING])
    return EXIT_PROBLEMS if failed else EXIT_FINE


def _executed(plan: Plan, trust: bool, jobs: int) -> tuple[Problem, ...]:
    """Return what calling the references shows, of definitions that can be rendered."""
    from generator.execute.run import check, why_not
    from generator.load import load_file
    from generator.rules.table import is_blocked
    from generator.sandbox import warnings

    reason = why_not(trust)
    if reason is not None:
        raise Failure(f"--execute is refused: {reason}")
    for line in warnings():
        say(line)
    definitions = []
    for unit in plan.units:
        definition, problems = load_file(plan.root, unit.file)
        if definition is not None and not is_blocked(problems):
            definitions.append(definition)
    with progress(f"Calling {plural(len(definitions), 'reference')}"):
        return tuple(check(definitions, trust=trust, jobs=jobs))


def prefix_of(dataset: Path) -> str:
    """Return the way from here to a dataset below, for readers who open files."""
    path = os.path.relpath(dataset).replace(os.sep, "/")
    return "" if path == "." or path.startswith("..") else f"{path}/"


def _config(path: Path) -> dict[str, Any]:
    """Return a model's config.json; a nested text_config is what counts."""
    from generator.jsonfile import read_json
    from generator.wording import quote

    read = read_json(path.parent, path.name, _MAX_CONFIG)
    if not read.ok or read.problems:
        raise Failure(f"{quote(str(path), 200)}: {read.problems[0].message}")
    if not isinstance(read.value, dict):
        raise Failure(f"{quote(str(path), 200)} is not a config.json: no object.")
    inner = read.value.get("text_config")
    return {**read.value, **(inner if isinstance(inner, dict) else {})}
