"""The reference tests as they are pushed: they run in a clone of the dataset by itself.

Tests of a checkout may import this package. Those of a dataset on the Hub import a copy
of what they need, which lies beside them, once a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from generator.dataset.atomic_write import write_atomically
from generator.hub.local import LocalFile, Unfit, read_file
from generator.hub.names import TESTS
from generator.problems.messages import one_line
from generator.rendering.files import SUMS, read_sums, write_files
from generator.rendering.standalone import is_standalone, standalone


def make_standalone(
    root: Path, tests: Sequence[str], folder: Path, secret: str = ""
) -> tuple[str, ...] | None:
    """Write the standalone form of a dataset's tests below `folder`; return the paths.

    `tests` are the paths of the files in tests/references. None, and nothing is written,
    where they are standalone already, or there are none. A file that a person edited is
    left out of SHA256SUMS, so that it passes for edited in a clone too. Raises Unfit.
    """
    if not tests or is_standalone(root / TESTS):
        return None
    # refuses links before anything is read through them
    files = {path: read_file(root, path, secret) for path in tests}
    texts = {
        path.removeprefix(f"{TESTS}/"): _text(root, file)
        for path, file in files.items()
        if path != f"{TESTS}/{SUMS}"
    }
    try:
        made = standalone(texts)
    except (SyntaxError, ValueError, FileNotFoundError) as error:
        raise Unfit(
            f"{TESTS} has no standalone form ({one_line(str(error), 200)}): gen-tests "
            "--all renders the tests anew."
        ) from None
    recorded = read_sums(root / TESTS)
    edited = {
        name for name in texts if recorded.get(name) != files[f"{TESTS}/{name}"].sha256
    }
    output = folder / TESTS
    write_files(output, {name: made[name] for name in made.keys() - edited})
    for name in edited:
        write_atomically(output / name, made[name].encode("utf-8"))
    return tuple(sorted(f"{TESTS}/{name}" for name in (*made, SUMS)))


def _text(root: Path, file: LocalFile) -> str:
    try:
        return (root / file.path).read_text("utf-8")
    except UnicodeDecodeError:
        raise Unfit(f"{one_line(file.path)} is not UTF-8.") from None
    except OSError as error:
        reason = one_line(error.strerror or str(error))
        raise Unfit(f"{one_line(file.path)} can't be read: {reason}.") from None
