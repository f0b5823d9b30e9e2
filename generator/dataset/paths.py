"""Find and select a dataset's files, and tell the kind of a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.dataset.file_reading import Entry, NotRead, entries, is_file, mode_of
from generator.problems import Failure, Problem, blocking, error, has_errors, warning
from generator.problems.messages import did_you_mean, one_line, quote

DATASET_MISSING = error("""dataset-missing: The folder has no definitions/ that can be
    read: it is not a dataset's root.
    Fix: Pass the dataset's root with --dataset.
    Finds: `--dataset ~/Downloads`, a folder without definitions/""")
DATASET_EMPTY = error("""dataset-empty: There is not a single definition to work on.
    Fix: Add a definition as definitions/<op_type>/<name>.json.
    Finds: definitions/gemm/ without any file in it""")
DIRECTORY_UNREADABLE = error("""directory-unreadable: A folder of the dataset can't be
    listed, so what is in it goes unchecked.
    Fix: Give the folder read permission.
    Finds: workloads/gemm/ with the permissions 000""")
PATH_DEPTH = error("""path-depth: A file or folder lies at a depth where nothing reads
    it.
    Fix: Move it to <kind>/<op_type>/<name>.<extension>, or remove it.
    Finds: definitions/gemm_n8_k4.json, without a folder for the op_type""")
PATH_EXTENSION = warning("""path-extension: A file has an extension that nothing reads.
    Fix: Give it the right extension, or move it out of the dataset.
    Finds: definitions/gemm/notes.txt""")
PATH_LINK = blocking("""path-link: A file or folder is a symbolic link, which could lead
    anywhere: it is not followed.
    Fix: Put the file or folder itself in its place.
    Finds: definitions/gemm/x.json -> /etc/passwd""")
PATH_CASE = warning("""path-case: Two files or folders differ only by case: some file
    systems hold only one.
    Fix: Rename one of them.
    Finds: blob/workloads/gemm/ and blob/workloads/GEMM/""")
PATH_UNPORTABLE = warning("""path-unportable: A file's name has characters that some
    systems can't hold or show.
    Fix: Rename it: letters, digits, hyphens, underscores and dots.
    Finds: `gemm?.json`, or `con.json`""")

FOLDERS = (
    "definitions",
    "workloads",
    "blob",
    "solutions",
    "traces",
    "verification",
    "custom_inputs",
    "oracles",
)
"""The folders of a dataset; what else lies in a repository is not its content."""

_LAYOUT = {
    "definitions": "definitions/<op_type>/<name>.json",
    "workloads": "workloads/<op_type>/<definition>.jsonl",
    "blob": "blob/workloads/<op_type>/<definition>/<name>.safetensors",
    "solutions": "solutions/<author>/<op_type>/<definition>/<name>.json",
    "traces": "traces/<author>/<op_type>/<definition>.jsonl",
    "verification": "verification/<name>.json",
    "custom_inputs": "custom_inputs/<op_type>/<definition>.py",
    "oracles": "oracles/<op_type>/<definition>.py",
}

RECORDINGS = Path("blob") / "ground_truth"
"""The folder of the outputs that production kernels gave."""

VERIFICATION = "verification"
"""The folder of the evidence of runs, and of the audit's results."""

CUSTOM_INPUTS = "custom_inputs"
"""The folder of sources that make a definition's inputs: <op_type>/<definition>.py."""

ORACLES = "oracles"
"""The folder of texts that compute a definition in float64: <op_type>/<definition>.py."""

AUDIT = f"{VERIFICATION}/audit.json"
LIMITS_KEPT = f"{VERIFICATION}/limits.json"
CHECKERS_KEPT = f"{VERIFICATION}/checkers.json"
CONDITIONS_KEPT = f"{VERIFICATION}/conditions.json"
WAIVERS = f"{VERIFICATION}/waivers.json"
NOT_OF_RUNS = (AUDIT, LIMITS_KEPT, CHECKERS_KEPT, CONDITIONS_KEPT, WAIVERS)
"""Files of verification/ that have no evidence of a run of tests."""
_TESTS = "tests/references"
_SUMS = re.compile(r"(tests/[\w.-]+)/SHA256SUMS", re.ASCII)
_RENDERED = re.compile(r"tests/references/test_\w+\.py", re.ASCII)
_WRITTEN = re.compile(
    r"tests/references/((test_\w+|conftest)\.py|pytest\.ini|SHA256SUMS"
    r"|reference_support/(\w+/)*\w+\.(py|json))",
    re.ASCII,
)
_UNPORTABLE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\\ud800-\udfff]|[ .]$')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def rendered_folder(paths: Iterable[str] = ()) -> str:
    """Return the folder of the rendered tests among the paths of a dataset.

    Another one than tests/references, where `gen-tests --output` put them, is known by
    the list of hashes that lies in it.
    """
    folders = {match[1] for path in paths if (match := _SUMS.fullmatch(path))}
    return min(folders) if folders and _TESTS not in folders else _TESTS


def rendered_test(op_type: str, folder: str = _TESTS) -> str:
    """Return where the rendered tests of an op_type lie in their folder.

    Commands that are proposed name the file: pytest would collect the whole folder,
    with tests of others that may lie in it.
    """
    return f"{folder}/test_{op_type}.py"


@dataclass(frozen=True, order=True)
class DatasetFile:
    """A path `<kind>/<op_type>/<name>.<extension>`.

    `path` is relative to the dataset's root, with forward slashes; `op_type` and
    `name` are parts of the path, which the content may contradict.
    """

    op_type: str
    name: str
    path: str


NOTHING_THERE = frozenset((DATASET_MISSING.id, DATASET_EMPTY.id))
"""The rules whose Problems leave nothing to work on."""


@dataclass(frozen=True)
class Discovered:
    """The definition files, sorted, their folders, and Problems of other files."""

    files: tuple[DatasetFile, ...]
    op_types: tuple[str, ...]
    problems: tuple[Problem, ...]


def find_root(start: Path) -> Path:
    """Return the folder that has definitions/: `start`, else the nearest above it.

    The search ends at the root of a git repository, and, as git's own does, where a folder
    is another user's, or on another device. `start` itself is returned where there is none.
    """
    here = os.stat(start)
    for folder in (start, *start.parents):
        about = os.stat(folder)
        if (about.st_uid, about.st_dev) != (here.st_uid, here.st_dev):
            break
        if mode_of(folder, "definitions") is not None:
            return folder
        if mode_of(folder, ".git") is not None:
            break
    return start


def discover_definitions(root: Path) -> Discovered:
    """Find definitions/<op_type>/<name>.json.

    A root without definitions/, and one without any definition in it, is a Problem.
    """
    if mode_of(root, "definitions") is None or is_file(root, "definitions"):
        if not os.path.isdir(root):
            message = f"There is no folder {quote(os.path.abspath(root), 200)}."
        else:
            here = Path(os.path.abspath(root))
            message = f"The folder {quote(str(here), 200)} has no definitions/."
            above = find_root(here)
            if is_file(root, "definitions"):
                message += " There, definitions is a file."
            elif mode_of(above, "definitions") is not None:
                message += f" {quote(str(above), 200)}, above it, has."
        return Discovered((), (), (DATASET_MISSING.problem("definitions", message),))
    problems: list[Problem] = []
    definitions: list[DatasetFile] = []
    op_types: list[str] = []
    for folder, (op_type,) in folders(root, "definitions", 1, problems):
        op_types.append(op_type)
        for path, name in files(root, folder, ".json", problems):
            definitions.append(DatasetFile(op_type, name, path))
    if not definitions and not has_errors(problems):
        where = quote(os.path.abspath(root), 200)
        message = f"There are no definitions in {where}."
        problems.append(DATASET_EMPTY.problem("definitions", message))
    return Discovered(tuple(sorted(definitions)), tuple(op_types), tuple(problems))


def problems_of_paths(
    discovered: Discovered, op_types: Sequence[str], asked: Sequence[str]
) -> list[Problem]:
    """Return the Problems of discovery in the folders of what was asked for."""
    if not op_types and not asked:
        return list(discovered.problems)
    folders = {f"definitions/{op_type}" for op_type in op_types}
    return [
        p for p in discovered.problems if "/".join(p.file.split("/")[:2]) in folders
    ]


def folders(
    root: Path,
    top: str,
    depth: int,
    problems: list[Problem],
    names: tuple[str, ...] = (),
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (path, names below `top`) of the folders at a depth; files are misplaced.

    A folder `top` that does not exist has none.
    """
    if mode_of(root, top) is None:
        return
    for entry, path in inside(root, top, problems):
        below = (*names, entry.name)
        if not entry.is_folder:
            problems.append(misplaced(path))
        elif depth == 1:
            yield path, below
        else:
            yield from folders(root, path, depth - 1, problems, below)


def files(
    root: Path, folder: str, extension: str, problems: list[Problem]
) -> Iterator[tuple[str, str]]:
    """Yield (path, name without extension) of the files in a folder."""
    for entry, path in inside(root, folder, problems):
        # a folder named x.json was meant to be a file: reading it says so
        if entry.name.endswith(extension):
            yield path, entry.name.removesuffix(extension)
        elif entry.is_folder:
            problems.append(misplaced(path))
        else:
            problems.append(wrong_extension(path, extension))


def inside(
    root: Path, folder: str, problems: list[Problem]
) -> Iterator[tuple[Entry, str]]:
    """Yield (entry, path) of what is in a folder; a link is a Problem."""
    try:
        listed = entries(root, folder)
    except NotRead:
        problems.append(_link(folder))
        return
    except OSError as error:
        reason = one_line(error.strerror or str(error))
        message = f"The folder can't be listed: {reason}."
        problems.append(DIRECTORY_UNREADABLE.problem(folder, message))
        return
    visible = [entry for entry in listed if not entry.name.startswith(".")]
    problems += _names(folder, [entry.name for entry in visible])
    for entry in visible:
        path = f"{folder}/{entry.name}"
        if entry.is_link:
            problems.append(_link(path))
        else:
            yield entry, path


def _link(path: str) -> Problem:
    return PATH_LINK.problem(path, "This is a symbolic link, which is not followed.")


def is_portable(name: str) -> bool:
    """Return whether all systems can hold a file or folder of that name."""
    return not (_UNPORTABLE.search(name) or _RESERVED.fullmatch(name))


def _names(folder: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield Problems for names that some systems can't hold, or can't hold together."""
    first: dict[str, str] = {}
    for name in names:
        path = f"{folder}/{name}"
        if not is_portable(name):
            message = f"The name {quote(name)} can't be used on all systems."
            yield PATH_UNPORTABLE.problem(path, message)
        other = first.setdefault(name.casefold(), name)
        # two definitions have a rule of their own, on their names
        if other != name and not (
            folder.count("/") == 1 and path[:12] == "definitions/"
        ):
            message = f"The name differs only by case from {quote(other)}."
            yield PATH_CASE.problem(path, message)


def misplaced(path: str) -> Problem:
    """Return the Problem of a file or folder at a depth where nothing reads it."""
    kind = path.split("/", 1)[0]
    right = _LAYOUT[kind]
    message = f"Nothing reads this: files of {kind}/ lie at {right}."
    return PATH_DEPTH.problem(path, message, fix=f"Move it to {right}, or remove it.")


def wrong_extension(path: str, extension: str) -> Problem:
    """Return the Problem of a file that is not read for its name."""
    message = f"Nothing reads this: its name does not end in {extension}."
    return PATH_EXTENSION.problem(path, message)


class UnknownName(Failure):
    """Raised for an op_type or a name that the dataset does not have.

    `str()` is one line for the person who typed it, with the nearest known name.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        # whoever gave a path or a file's name means the file
        stem = name.rpartition("/")[2].removesuffix(".json")
        guess = did_you_mean(name, known) or did_you_mean(stem, known)
        super().__init__(f"No {kind} is named {quote(name)}.{guess}")
        self.kind = kind
        self.name = name


def select(
    discovered: Discovered, op_types: Sequence[str], names: Sequence[str]
) -> tuple[DatasetFile, ...]:
    """Return the files with one of the op_types or one of the names, sorted.

    Both empty selects everything. Names are those of files. Raises UnknownName.
    """
    if not op_types and not names:
        return discovered.files
    known = {file.name for file in discovered.files}
    for kind, asked, has in (
        # the software may well know one that no definition here has
        ("op_type of the dataset", op_types, discovered.op_types),
        ("definition", names, known),
    ):
        for name in asked:
            if name not in has:
                raise UnknownName(kind, name, has)
    return tuple(
        file
        for file in discovered.files
        if file.op_type in op_types or file.name in names
    )


def is_dataset(path: str) -> bool:
    """Return whether a path lies in one of a dataset's folders."""
    return path.split("/", 1)[0] in FOLDERS


def is_rendered(path: str) -> bool:
    """Return whether a path is that of a rendered reference test."""
    return _RENDERED.fullmatch(path) is not None


def is_written_by_rendering(path: str) -> bool:
    """Return whether gen-tests writes a file of that path: tests, and what they import."""
    return _WRITTEN.fullmatch(path) is not None


def is_evidence(path: str) -> bool:
    """Return whether a path is a file of verification/: runs, or the audit."""
    return path.startswith(f"{VERIFICATION}/") and path.endswith(".json")


def evidence_files(root: Path) -> list[str]:
    """Return the paths of the evidence of runs, relative to `root`, and of nothing else."""
    try:
        listed = entries(root, VERIFICATION)
    except OSError:
        return []
    names = (entry.name for entry in listed if entry.name.endswith(".json"))
    paths = (f"{VERIFICATION}/{name}" for name in names)
    return [path for path in paths if path not in NOT_OF_RUNS]
