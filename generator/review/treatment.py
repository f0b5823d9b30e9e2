"""Treatment of each path of a change: what is checked, and what is not.

`dataset.changes.class_of` says what the commands do with a path. Here each class is
described, finer, for the reader of a report. What runs and what is unknown is never
approved here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from generator.dataset.changes import UNRECORDED, PathClass, class_of, owner_of
from generator.dataset.paths import is_portable
from generator.review.settings import SETTINGS
from generator.review.tree import Tree, TreeEntry
from generator.rules.accepted import ACCEPTED


@dataclass(frozen=True)
class Treatment:
    """The treatment of files of one kind.

    `could` says what such a file could switch off or claim; it is empty where the
    review itself judges the files. `is_kept` says that removing one needs a person's
    word.
    """

    name: str
    checked: str
    unchecked: str
    could: str = ""
    is_kept: bool = False


DEFINITIONS = Treatment(
    "definitions",
    "every rule, what changed in meaning, the checklist",
    "that run() is right: evidence of a GPU shows it, or --execute",
    is_kept=True,
)
WORKLOADS = Treatment(
    "workloads",
    "every rule, those that are gone or replaced, where they come from",
    "the reference at their sizes, unless evidence has them",
    is_kept=True,
)
BLOBS = Treatment(
    "blobs",
    "headers against the workloads that name them",
    "the values",
    is_kept=True,
)
RECORDINGS = Treatment(
    "recordings",
    "that one is there, whole, and of this interface",
    "the values, unless --execute replays them",
    is_kept=True,
)
SOLUTIONS = Treatment(
    "solutions",
    "every rule; with --execute, the outputs",
    "without --execute, whether it is right",
    is_kept=True,
)
TRACES = Treatment(
    "traces",
    "every rule; with --execute, what they claim",
    "without --execute, what they claim",
    is_kept=True,
)
EVIDENCE = Treatment(
    "evidence",
    "its form, what is gone, what is new on which definition",
    "that the runs took place: --trust-evidence accepts it",
    is_kept=True,
)
RENDERED = Treatment(
    "rendered tests",
    "every byte, against the tests rendered by this review",
    "nothing",
    is_kept=True,
)
DOCUMENTS = Treatment(
    "documents",
    "that no command reads or runs them, and that a reader sees all of them",
    "what they say",
)
LINKS = Treatment(
    "links",
    "that there is none",
    "where it leads",
    "a link, a submodule or a special file stands for content that the review does not "
    "see",
)
UNKNOWN = Treatment(
    "unknown",
    "nothing",
    "everything",
    "no command of this version reads it; another program might",
)
LICENCES = Treatment(
    "licences",
    "that those there are what they were",
    "what new ones say",
    is_kept=True,
)
OUTSIDE = Treatment(
    "outside of the dataset",
    "nothing",
    "everything",
    "it lies above the dataset's root: settings there apply to the dataset as well",
)


def _runs(name: str, could: str, unchecked: str = "everything it does") -> Treatment:
    return Treatment(name, "nothing: no line of it is run here", unchecked, could)


SOFTWARE = _runs(
    "the software itself",
    "it renders the tests, compares, and judges: any check can be weakened there",
    "everything else it does; --execute runs its tests on the base's dataset",
)
PAGES_OF_SOFTWARE = _runs(
    "pages of the software",
    "its tests run the examples of its pages, and its site shows their HTML",
    "what they say",
)
CUSTOM = _runs(
    "custom inputs",
    "init() makes the inputs of a definition's tests: such that every reference passes",
)
EXECUTABLE = _runs("executable files", "its mode asks for it to be run")
CARDS = _runs(
    "data of cards",
    "the card says what was verified: trace-dataset card --check renders it",
    "that it says what the dataset has",
)
SETTINGS_FILE = _runs(
    "settings of the review",
    "it says which points are required, or which errors are accepted; this review used "
    "the base's",
    "what the next reviews will ask for",
)

OTHER = _runs("other code", "whoever imports, loads or starts it runs it")

_CI_FOLDERS = "github|gitlab|circleci|ci|buildkite|forgejo|woodpecker"
_CI_FILES = r"\.gitlab-ci\.yml|Jenkinsfile|action\.ya?ml|azure-pipelines\.yml"
_CODE: tuple[tuple[str, Treatment], ...] = (
    (
        r"(.*/)?conftest\.py",
        _runs(
            "plug-ins of pytest",
            "pytest imports it before the tests beside and below it: it can drop, skip "
            "or pass each of them",
        ),
    ),
    (
        r"(.*/)?(\.?pytest\.(ini|toml)|tox\.(ini|toml)|setup\.cfg|pyproject\.toml|noxfile\.py)",
        _runs(
            "options of pytest",
            "addopts deselects tests, disables asserts or loads plug-ins",
        ),
    ),
    (
        r"(.*/)?(sitecustomize|usercustomize)\.py|.*\.(pth|egg-link|start)",
        _runs("start-up of Python", "every Python that finds it runs it at its start"),
    ),
    (
        r"(.*/)?(setup\.py|constraints[^/]*\.txt|requirements[^/]*\.(txt|in)|[^/]*\.lock)",
        _runs(
            "installation",
            "it says which packages are installed, and runs while they are",
        ),
    ),
    (
        r"(.*/)?(\.git(attributes|modules|ignore)|\.lfsconfig|\.gitconfig|\.mailmap)",
        _runs(
            "settings of git",
            "they change what a checkout has, what a diff shows, and which other "
            "repositories come along",
        ),
    ),
    (
        rf"\.({_CI_FOLDERS})/.*|(.*/)?({_CI_FILES})",
        _runs(
            "workflows",
            "CI runs it with its secrets; it can leave this review out",
        ),
    ),
    (
        r"(.*/)?(\.pre-commit-(config|hooks)\.yaml|\.husky/.*|\.githooks/.*|hooks/.*)",
        _runs("hooks", "git runs it on the machines of those who commit"),
    ),
    (
        r"(.*/)?(AGENTS|CLAUDE|GEMINI|SKILL|COPILOT|[^/]*instructions?)\.md|(.*/)?\.(claude|cursor|codex)/.*",
        _runs("instructions of agents", "agents that work in the checkout obey it"),
    ),
    (
        r".*\.(toml|ini|cfg|conf|ya?ml|env|properties)",
        _runs("configuration", "a program that finds it behaves otherwise"),
    ),
)
_SOFTWARE = re.compile(r"(generator|kernel_judge|templates)/.+")
_COMPARED = re.compile(
    r"(generator/(ops|running|testing)|kernel_judge|tests/references)/.+\.py"
    r"|generator/dataset/data/\w+\.json"
)
_DOCUMENT = re.compile(
    r"(CHANGELOG|CONTRIBUTING|CODE_OF_CONDUCT|SECURITY)\.md"
    r"|docs/(?!generated/)([a-z0-9_-]+/)*[a-z0-9_-]+\.(md|png|jpg)",
    re.ASCII,
)
_LICENCES = ("LICENSE", "NOTICE")
_PLAIN = re.compile(r"[A-Za-z0-9_.+=,@/-]+")
_OWNED: Mapping[str, Treatment] = {
    "definition": DEFINITIONS,
    "workloads": WORKLOADS,
    "blobs": BLOBS,
    "recording": RECORDINGS,
    "solutions": SOLUTIONS,
    "traces": TRACES,
}
TREATMENTS = (
    *_OWNED.values(),
    EVIDENCE,
    RENDERED,
    DOCUMENTS,
    LICENCES,
    CARDS,
    SETTINGS_FILE,
    CUSTOM,
    SOFTWARE,
    PAGES_OF_SOFTWARE,
    *(kind for _, kind in _CODE),
    OTHER,
    EXECUTABLE,
    LINKS,
    OUTSIDE,
    UNKNOWN,
)
"""All treatments, in the order of a report."""


def treatment_of(
    path: str, old: TreeEntry | None = None, new: TreeEntry | None = None
) -> Treatment:
    """Return the treatment of a path; `old` and `new` are its entries on both sides."""
    if path.startswith("../"):
        return OUTSIDE
    entries = [entry for entry in (old, new) if entry is not None]
    if not all(entry.is_file for entry in entries):
        return LINKS
    treatment = _by_path(path)
    # a program of the software that could be started all along is no news
    is_news = old is None or old.mode != "100755" or not treatment.could
    if new is not None and new.mode == "100755" and is_news:
        return EXECUTABLE
    return treatment


def in_software(treatment: Treatment, path: str) -> Treatment:
    """Return the treatment of a path where the repository holds the software as well."""
    is_page = treatment is DOCUMENTS and path.startswith("docs/")
    return PAGES_OF_SOFTWARE if is_page else treatment


def holds_software(tree: Tree) -> bool:
    """Return whether a repository holds the software itself; most datasets do not."""
    return "generator/__init__.py" in tree


def _by_path(path: str) -> Treatment:
    kind = class_of(path)
    if kind is PathClass.DATA:
        # readers skip what begins with a dot, and letters of other scripts look alike
        is_hidden = any(part.startswith(".") for part in path.split("/"))
        if is_hidden or not _PLAIN.fullmatch(path) or not _is_portable(path):
            return UNKNOWN
        owner = owner_of(path)
        if owner is None:
            # readers look right below the folder
            is_read = path == UNRECORDED or path.count("/") == 1
            return EVIDENCE if is_read else UNKNOWN
        is_odd = owner[1] == "blobs" and not path.endswith(".safetensors")
        return UNKNOWN if is_odd else _OWNED[owner[1]]
    if kind is PathClass.RENDERED:
        return RENDERED
    if kind is PathClass.SOURCE:
        return CUSTOM
    if kind is PathClass.PAGES:
        return LICENCES if path in _LICENCES else CARDS
    if path in (SETTINGS, ACCEPTED):
        return SETTINGS_FILE
    if _SOFTWARE.fullmatch(path):
        return SOFTWARE
    for pattern, treatment in _CODE:
        if re.fullmatch(pattern, path, re.IGNORECASE):
            return treatment
    if kind is PathClass.UNKNOWN and _DOCUMENT.fullmatch(path) and _is_portable(path):
        return DOCUMENTS
    return OTHER if kind is PathClass.RUNS else UNKNOWN


def _is_portable(path: str) -> bool:
    return all(map(is_portable, path.split("/")))


def is_compared(path: str) -> bool:
    """Return whether a file decides what tests check, so that both sides are compared."""
    return _COMPARED.fullmatch(path) is not None


def twins(paths: Iterable[str], changed: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each changed path that is another path of the tree on some systems, and which.

    Such systems do not tell upper case from lower case, or composed letters from
    decomposed ones; of two such files or folders a checkout has one.
    """
    looked_for = {_folded(part) for path in changed for part in _parts(path)}
    spelled: dict[str, set[str]] = {}
    for part in _with_folders(paths):
        if (key := _folded(part)) in looked_for:
            spelled.setdefault(key, set()).add(part)
    for path in changed:
        for part in _parts(path):
            others = spelled.get(_folded(part), set()) - {part}
            if others and part in spelled[_folded(part)]:
                yield path, min(others)
                break


def _folded(path: str) -> str:
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", path).casefold()


def _with_folders(paths: Iterable[str]) -> set[str]:
    """Return paths and all folders that they lie in."""
    folders = {*paths}
    upper = folders
    while upper:
        upper = {path.rpartition("/")[0] for path in upper} - folders - {""}
        folders |= upper
    return folders


def _parts(path: str) -> Iterator[str]:
    """Yield the folders of a path, and the path."""
    yield from (path[: match.start()] for match in re.finditer("/", path))
    yield path
