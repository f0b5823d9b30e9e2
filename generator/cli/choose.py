"""Find the definitions that a command line chooses."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from generator.api import Dataset
    from generator.dataset.paths import DatasetFile, Discovered


@dataclass(frozen=True)
class Choice:
    """The chosen definitions of a dataset; all where no name is given."""

    dataset: Path
    op_types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    everything: bool = False

    @property
    def is_made(self) -> bool:
        """Return whether the command line has any of the options."""
        return bool(self.op_types or self.names or self.everything)

    def require(self, verb: str) -> None:
        """Raise click.UsageError if nothing is chosen, or --all beside a name."""
        if not self.is_made:
            raise click.UsageError(
                f"Say what to {verb}: --op-type, --definition-name, --all."
            )
        if self.everything and (self.op_types or self.names):
            raise click.UsageError(
                "--all leaves nothing to choose: drop the other options."
            )

    def find(self) -> tuple[Discovered, tuple[DatasetFile, ...]]:
        """Return the files of the dataset, and the chosen definition files.

        Raises Failure where there is no dataset, or nothing of the name, and where an
        op_type of another distribution is broken: once, and not in every worker.
        """
        from generator.dataset.paths import discover_definitions
        from generator.ops.registry import op_specs

        files = self.opened().files
        op_specs()
        return discover_definitions(self.dataset), files

    def opened(self) -> Dataset:
        """Return the dataset with what is chosen of it."""
        from generator.api import Dataset

        return Dataset(self.dataset, self.op_types, self.names)


def prefix_of(dataset: Path) -> str:
    """Return the path from the current directory to a dataset below it, else empty."""
    path = os.path.relpath(dataset).replace(os.sep, "/")
    return "" if path == "." or path.startswith("..") else f"{path}/"
