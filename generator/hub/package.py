"""What goes into one pull request: definitions and the files that belong to them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from generator.dataset.artifacts import Key
from generator.dataset.atomic_write import write_atomically
from generator.dataset.json_file import read_json
from generator.dataset.paths import DatasetFile
from generator.hub.card import card_files, settings_of
from generator.hub.choose import UNRECORDED
from generator.hub.local import (
    LocalFile,
    Unfit,
    make_standalone,
    paths_of,
    read_file,
    take_inventory,
)
from generator.hub.preconditions import Judged, Objection
from generator.problems.messages import one_line, plural

_START = "<!-- trace-dataset push: "
_LONGEST = 120


@dataclass(frozen=True)
class Bundle:
    """Hold the definitions of one pull request, and the name it is found again by.

    `asked` says what was asked for, such as `definition rmsnorm_h4096`: it stays the
    same when an op_type gets one more definition, and so does the pull request.
    """

    asked: str
    files: tuple[DatasetFile, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """Return the definitions' keys."""
        return tuple((file.op_type, file.name) for file in self.files)

    @property
    def marker(self) -> str:
        """Return the line that a pull request of this bundle has in its text."""
        name = self.asked
        if len(name) > _LONGEST or "--" in name or not name.isascii():
            name = f"sha256 {hashlib.sha256(name.encode()).hexdigest()}"
        return f"{_START}{name} -->"

    @property
    def title(self) -> str:
        """Return the title that a pull request gets unless another one is given."""
        if len(self.files) == 1:
            return one_line(f"Add {self.files[0].name}", 150)
        op_types = sorted({file.op_type for file in self.files})
        of = f" of {op_types[0]}" if len(op_types) == 1 else ""
        return one_line(f"Add {plural(len(self.files), 'definition')}{of}", 150)


@dataclass(frozen=True)
class Wishes:
    """Hold what a person asked of a push: `reasons` allow the objections of rules.

    `card` asks for the dataset's card beside the definitions.
    """

    reasons: Mapping[str, str]
    message: str = ""
    delete: tuple[str, ...] = ()
    card: bool = False


@dataclass(frozen=True)
class Package:
    """Hold one bundle with its files and its preconditions."""

    root: Path
    bundle: Bundle
    files: tuple[LocalFile, ...]
    judged: Judged
    allowed: tuple[Objection, ...]
    wishes: Wishes

    @property
    def title(self) -> str:
        """Return the title of the pull request and of its commit."""
        asked = " ".join(one_line(self.wishes.message, 200).split())
        return asked or self.bundle.title

    @property
    def paths(self) -> list[str]:
        """Return all paths that the push is about."""
        return [*(file.path for file in self.files), *self.wishes.delete]


def make_bundles(
    files: Sequence[DatasetFile],
    *,
    op_types: Iterable[str],
    names: Iterable[str],
    together: bool,
) -> list[Bundle]:
    """Return one bundle for each definition, or one of all `together`."""
    if not together or len(files) == 1:
        return [Bundle(f"definition {file.name}", (file,)) for file in files]
    asked = [
        *(f"op_type {name}" for name in sorted(set(op_types))),
        *(f"definition {name}" for name in sorted(set(names))),
    ]
    return [Bundle(", ".join(asked) or "all", tuple(files))]


def pack(
    dataset: Path,
    repo: str,
    folder: Path,
    bundles: Iterable[Bundle],
    judged: Judged,
    wishes: Wishes,
) -> list[Package]:
    """Return each bundle with its files, read once however many share them.

    The card, and the standalone form of tests that are not, are written to `folder` and
    sent from there. Raises Failure for what can't be pushed.
    """
    from huggingface_hub import get_token

    inventory = take_inventory(dataset)
    secret = get_token() or ""
    card = card_files(dataset, settings_of(dataset, repo)) if wishes.card else {}
    for path, content in card.items():
        write_atomically(folder / path, content)
    tests = make_standalone(dataset, inventory.tests, folder, secret)
    if tests:
        inventory = replace(inventory, tests=tests)

    @cache
    def read(path: str) -> LocalFile:
        is_made = path in tests or path in card
        return read_file(folder if is_made else dataset, path, secret)

    unrecorded = read_json(dataset, UNRECORDED).value
    named = set(unrecorded) if isinstance(unrecorded, dict) else set()
    made = []
    for bundle in bundles:
        paths = [*paths_of(inventory, bundle.keys, named), *card]
        both = sorted(set(paths) & set(wishes.delete))
        if both:
            raise Unfit(f"{one_line(both[0])} is pushed, so that it can't be deleted.")
        files = tuple(map(read, sorted(paths)))
        allowed = tuple(judged.split(bundle.keys, wishes.reasons)[1])
        made.append(Package(dataset, bundle, files, judged, allowed, wishes))
    return made
