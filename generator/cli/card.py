"""The command `trace-dataset card`: the dataset's page on the Hub, and its tables."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import drifted, progress, say, status_of, write_files
from generator.problems import Failure
from generator.problems.messages import one_line, quote


@options.command()
def card(
    dataset: Path = options.dataset,
    output: Path | None = options.output(
        "Write the card there, without its tables.", "FILE"
    ),
    check: bool = options.check,
    force: bool = options.force,
    repo: str | None = options.repo(),
    title: str | None = options.value("The dataset's title.", "TEXT"),
    license_id: str | None = options.value(
        "The Hub's identifier of the licence; if not given, that of the file LICENSE.",
        "ID",
        "--license",
    ),
) -> int:
    """Write the dataset's card, README.md, and the Hub's tables.

    tables/*.jsonl hold a row for each definition, workload and verification; the card's
    metadata names them for the Hub's viewer and `datasets`. Exit status 1 if --check
    finds a file out of date.
    """
    from generator.dataset.atomic_write import remove_below
    from generator.dataset.file_reading import is_absent, is_file, read_bytes
    from generator.hub.card import (
        CARD,
        LICENSE_ID,
        MARK,
        TITLE,
        Settings,
        all_paths,
        card_files,
        license_of,
    )

    if license_id is not None and not LICENSE_ID.fullmatch(license_id):
        message = f"--license {quote(license_id)} is no identifier such as apache-2.0."
        raise click.UsageError(message)
    Choice(dataset).find()
    settings = Settings(title or TITLE, repo or "", license_id or "")
    with progress("Reading the dataset"):
        files = card_files(dataset, settings)
    if not settings.license and not license_of(dataset):
        say("The card names no licence: --license ID, or a LICENSE in the dataset.")
    root, gone = dataset, []
    if output is None:
        known = sorted(set(all_paths()) - files.keys())
        gone = [path for path in known if is_file(root, path)]
    else:
        root, files = output.parent, {output.name: files[CARD]}
    changed = drifted(root, files)
    if check:
        for path in (*changed, *gone):
            say(f"{root / path} is out of date: trace-dataset card")
        return status_of(not (changed or gone))
    mine = root / CARD
    is_there = not is_absent(root, CARD)
    is_guarded = output is None and bool(changed) and is_there and not force
    if is_guarded and MARK.encode() not in read_bytes(root, CARD):
        raise Failure(
            f"{one_line(str(mine))} was not written by this command: --force "
            "overwrites it, --output FILE writes the card elsewhere."
        )
    write_files(root, changed)
    for path in gone:
        remove_below(root, path)
    say(f"{len(changed)} written, {len(files) - len(changed)} up to date")
    return status_of(True)
