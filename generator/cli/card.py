"""The command `trace-dataset card`: the dataset's page on the Hub, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from generator.cli.options import (
    check_option,
    dataset_option,
    force_option,
    output_option,
    repo_option,
)
from generator.cli.output import EXIT_FINE, EXIT_PROBLEMS, Failure, say
from generator.problems.messages import one_line, quote


@click.command()
@dataset_option
@output_option("Write the card there, without its tables.", "FILE")
@check_option
@force_option
@repo_option(required=False)
@click.option("--title", metavar="TEXT", help="The dataset's title.")
@click.option(
    "--license",
    "license_id",
    metavar="ID",
    help="The Hub's identifier of the licence; if not given, that of the file LICENSE.",
)
def card(
    dataset: Path,
    output: Path | None,
    check: bool,
    force: bool,
    repo: str | None,
    title: str | None,
    license_id: str | None,
) -> int:
    """Write the dataset's card, README.md, and the tables that the Hub shows.

    tables/*.jsonl hold a row for each definition, workload and verification; the card's
    metadata names them for the Hub's viewer and `datasets`. Exit status 1 if --check
    finds a file out of date.
    """
    from generator.hub.card import LICENSE_ID, TITLE, Settings, card_files, license_of
    from generator.hub.names import bad_repo

    if repo is not None and (reason := bad_repo(repo)):
        raise click.UsageError(f"--repo {quote(repo)}: {reason}")
    if license_id is not None and not LICENSE_ID.fullmatch(license_id):
        message = f"--license {quote(license_id)} is no identifier such as apache-2.0."
        raise click.UsageError(message)
    settings = Settings(title or TITLE, repo or "", license_id or "")
    try:
        files = card_files(dataset, settings)
    except ValueError as error:
        raise Failure(str(error)) from error
    if not settings.license and not license_of(dataset):
        say("The card names no licence: --license ID, or a LICENSE in the dataset.")
    if output is not None:
        return _write(output.parent, {output.name: files["README.md"]}, check, True)
    return _write(dataset, files, check, force)


def _write(root: Path, files: Mapping[str, bytes], check: bool, force: bool) -> int:
    """Write or check the files below a folder; return the exit status."""
    from generator.dataset.atomic_write import write_atomically
    from generator.hub.card import CARD, MARK, all_paths

    present = {path: _read(root / path) for path in files}
    drifted = [path for path, content in files.items() if present[path] != content]
    gone = []
    if CARD in files:
        known = set(all_paths()) - files.keys()
        gone = sorted(path for path in known if (root / path).is_file())
    if check:
        for path in (*drifted, *gone):
            say(f"{root / path} is out of date: trace-dataset card")
        return EXIT_PROBLEMS if drifted or gone else EXIT_FINE
    old = present.get(CARD)
    if drifted and old is not None and MARK.encode() not in old and not force:
        raise Failure(
            f"{one_line(str(root / CARD))} was not written by this command: --force "
            "overwrites it, --output FILE writes the card elsewhere."
        )
    for path in drifted:
        write_atomically(root / path, files[path])
    for path in gone:
        (root / path).unlink()
    say(f"{len(drifted)} written, {len(files) - len(drifted)} up to date")
    return EXIT_FINE


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
