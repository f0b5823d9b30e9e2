"""Solutions: files of a dataset or of their own, as values; no code of them runs here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.artifacts import discover_artifacts
from generator.dataset.paths import DatasetFile, discover_definitions
from generator.dataset.schema import read_checked
from generator.problems import Failure
from generator.problems.messages import did_you_mean, one_line, quote
from generator.rules.solutions import bad_source_path
from kernel_judge.definition import Interface

_TVM_FFI = "tvm-ffi"
MOST_SOURCES, MOST_BYTES = 500, 8 << 20
_MOST_NAME = 200


@dataclass(frozen=True)
class Solution:
    """A solution: the JSON value, which fits the schema, and where it lies."""

    value: Mapping[str, Any]
    path: str

    @property
    def name(self) -> str:
        """Return the solution's name."""
        return str(self.value["name"])

    @property
    def author(self) -> str:
        """Return who wrote it."""
        return str(self.value["author"])

    @property
    def definition(self) -> str:
        """Return the name of the definition that it is of."""
        return str(self.value["definition"])

    @property
    def language(self) -> str:
        """Return python, triton, cpp, cuda or tilelang."""
        return str(self.value["spec"]["language"])

    @property
    def hardware(self) -> tuple[str, ...]:
        """Return the hardware that it was written for."""
        return tuple(self.value["spec"].get("target_hardware") or ())

    @property
    def passes_outputs(self) -> bool:
        """Return whether it is called with its outputs, flashinfer-bench's default."""
        return bool(self.value["spec"].get("destination_passing_style", True))

    def arguments(self, interface: Interface) -> int:
        """Return how many arguments a call has: the inputs, and outputs that are passed."""
        outputs = interface.outputs if self.passes_outputs else ()
        return len(interface.inputs) + len(outputs)

    def how(self) -> dict[str, Any]:
        """Return what the worker builds it from."""
        spec = self.value["spec"]
        return {
            "language": self.language,
            "binding": spec.get("binding") or _TVM_FFI,
            "entry_point": spec["entry_point"],
            "sources": list(self.value["sources"]),
        }


@dataclass(frozen=True)
class Rejected:
    """A file that is no solution that can be judged, and in one line why."""

    path: str
    why: str
    name: str = ""
    author: str = ""
    definition: str = ""


def read_solutions(
    dataset: Path,
    definitions: Sequence[DatasetFile] | None,
    named: Sequence[str],
    authors: Sequence[str],
) -> list[Solution | Rejected]:
    """Return the solutions that are named, in that order, else all of definitions.

    A name is that of a file, or of a solution of the dataset. `authors` leaves only
    theirs. Of no definitions, any may be named. Raises Failure for one that is not there.
    """
    if not named:
        chosen = {(file.op_type, file.name) for file in definitions or ()}
        read = [
            _read(dataset, path, path)
            for key, paths in _lying(dataset).items()
            for path in sorted(paths)
            if key in chosen and (not authors or path.split("/")[1] in authors)
        ]
    else:
        read = [_named(dataset, name) for name in named]
    if not read:
        if not _lying(dataset):
            raise Failure(
                f"There are no solutions in {quote(str(dataset), 200)}: they lie at "
                "solutions/<author>/<op_type>/<definition>/<name>.json."
            )
        raise Failure(_none_chosen(dataset, authors))
    known = None if definitions is None else {file.name for file in definitions}
    return _distinct(read, known)


def _none_chosen(dataset: Path, authors: Sequence[str]) -> str:
    """Return why no solution is chosen, of a dataset that has some."""
    there = {path.split("/")[1] for paths in _lying(dataset).values() for path in paths}
    unknown = [author for author in authors if author not in there]
    if unknown:
        hint = did_you_mean(unknown[0], there)
        return f"No solution of the dataset is by the author {quote(unknown[0])}.{hint}"
    of = " by this author" if authors else ""
    return f"The definitions that are chosen have no solution{of}."


def _distinct(
    read: Sequence[Solution | Rejected], definitions: Collection[str] | None
) -> list[Solution | Rejected]:
    """Reject what has a name that came before, or a definition that is not there."""
    names: dict[str, str] = {}
    checked: list[Solution | Rejected] = []
    for one in read:
        why = ""
        if isinstance(one, Solution):
            if names.setdefault(one.name, one.path) != one.path or one in checked:
                why = f"the name {quote(one.name)} is also that of {names[one.name]}"
            elif definitions is not None and one.definition not in definitions:
                known = did_you_mean(one.definition, definitions)
                why = f"the dataset has no definition {quote(one.definition)}.{known}"
        if why and isinstance(one, Solution):
            one = Rejected(one.path, why, one.name, one.author, one.definition)
        checked.append(one)
    return checked


def _named(dataset: Path, name: str) -> Solution | Rejected:
    """Return the solution of a file, or of a name that the dataset has."""
    if name.endswith(".json"):
        if not Path(name).exists():
            raise Failure(f"{name}: no such file.")
        return _read(Path(name).parent, Path(name).name, name)
    paths = {
        path.rpartition("/")[2].removesuffix(".json"): path
        for of_definition in _lying(dataset).values()
        for path in of_definition
    }
    if name not in paths:
        known = did_you_mean(name, paths)
        if Path(name).is_file():
            known = (
                " That file is no solution, which is a JSON file with the sources in it: "
                "docs/evaluate.md shows one."
            )
        elif Path(name).is_dir():
            known = " That is a folder: name the files in it."
        elif any(name == file.name for file in discover_definitions(dataset).files):
            known = (
                f" That is a definition: --definition-name {name} is for its solutions."
            )
        raise Failure(f"No solution is named {quote(name)}.{known}")
    return _read(dataset, paths[name], paths[name])


def _lying(dataset: Path) -> dict[tuple[str, str], list[str]]:
    """Return (op_type, definition) → the paths of its solutions."""
    by_definition = discover_artifacts(dataset, None).solutions
    return dict(sorted(by_definition.items()))


def _read(root: Path, path: str, shown: str) -> Solution | Rejected:
    read = read_checked(root, path, "solution")
    # bytes of a name that are no UTF-8 are escapes in all that is printed and kept
    shown = shown.encode("utf-8", "backslashreplace").decode()
    # a key that comes twice fits the schema: readers differ in which of them counts
    if read.problems:
        problem = read.problems[0]
        where = f"{problem.pointer}: " if problem.pointer else ""
        return Rejected(shown, one_line(f"{where}{problem.message} {problem.fix}"))
    solution = Solution(read.value, shown)
    about = (solution.name, solution.author, solution.definition)
    why = _objection(solution)
    return solution if why is None else Rejected(shown, one_line(why), *about)


def _objection(solution: Solution) -> str | None:
    """Return why a solution that fits the schema can't be judged, None where it can."""
    for field in ("author", "name", "definition"):
        text = str(solution.value[field])
        if (what := _bad_part(text)) is not None:
            return f"the {field} {quote(text)} {what}"
    sources = solution.value["sources"]
    if len(sources) > MOST_SOURCES:
        return f"it has {len(sources)} sources, at most {MOST_SOURCES} are taken"
    try:
        size = sum(len(source["content"].encode()) for source in sources)
    except UnicodeEncodeError:
        return "a source has surrogates, which are no text"
    if size > MOST_BYTES:
        return f"its sources have {size / 2**20:.1f} MiB, at most 8 MiB are taken"
    paths: set[str] = set()
    for source in sources:
        path = source["path"]
        what = bad_source_path(path)
        if what is None and path in paths:
            what = "is that of another source as well"
        if what is not None:
            return f"the source {quote(path)} {what}"
        paths.add(path)
    return None


def _bad_part(text: str) -> str | None:
    """Return why a text can't be part of a path, None where it can."""
    if not text.isprintable():
        return "has characters that can't be printed, or that change its direction"
    if "/" in text or "\\" in text or text.startswith("."):
        return "can't be the name of a file or folder"
    if len(text.encode()) > _MOST_NAME:
        return f"is longer than {_MOST_NAME} bytes"
    return None
