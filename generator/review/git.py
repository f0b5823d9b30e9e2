"""Ask git about a checkout, so that nothing in the checkout is run for the answer.

Only plumbing is used that reads objects and the index. No hook, file system monitor,
external diff, text conversion or attribute filter has a part in it, and objects that a
partial clone lacks are not fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.wording import one_line, quote

_OFF = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false")
_SECONDS = 120
# what would point git somewhere else than the folder that was named
_NOT_PASSED_ON = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_EXTERNAL_DIFF",
)
DEFAULT_BRANCHES = (
    "refs/remotes/upstream/HEAD",
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)
"""Where the default branch is looked for, in this order."""


class GitError(Exception):
    """Say in one line why git has no answer, and what to do."""


@dataclass(frozen=True)
class Entry:
    """Hold one file of a tree: its mode (100644, 120000 a link, 160000 a submodule)."""

    mode: str
    oid: str
    size: int

    @property
    def is_file(self) -> bool:
        """Return whether it is an ordinary file."""
        return self.mode.startswith("100")

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return self.mode == "120000"


# a path ends in NUL, so that nothing in it is taken for what follows; git says that the
# lines after it may change some day: without them every file is read
_INDEXED = re.compile(
    rb"(?P<mode>\d{6}) (?P<oid>[0-9a-f]{40,64}) \d\t(?P<path>[^\0]+)\0"
    rb"(?:  ctime: [^\n]*\n  mtime: (?P<sec>\d+):(?P<nsec>\d+)\n  dev: [^\n]*\n"
    rb"  uid: [^\n]*\n  size: (?P<size>\d+)[^\n]*\n)?"
)

Tree = dict[str, Entry]
"""Path relative to the dataset's root → entry; names are decoded by the file system."""


@dataclass(frozen=True)
class Repository:
    """Know a checkout's top folder, and the way from there to the dataset.

    `prefix` is empty or ends in a slash.
    """

    top: Path
    prefix: str

    def ask(self, *arguments: str) -> bytes:
        """Return what git prints; raises GitError with git's own words."""
        return _git(self.top, arguments)

    def resolve(self, revision: str) -> str:
        """Return the commit of a revision as people write it."""
        wanted = f"{revision}^{{commit}}"
        try:
            found = self.ask(
                "rev-parse", "--verify", "--quiet", "--end-of-options", wanted
            )
        except GitError:
            hint = " The checkout is shallow: fetch more." if self.is_shallow() else ""
            raise GitError(f"There is no revision {quote(revision)}.{hint}") from None
        return found.decode().strip().splitlines()[-1]

    def find(self, revision: str) -> str | None:
        """Return the commit of a revision, None where there is none."""
        try:
            return self.resolve(revision)
        except GitError:
            return None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the last commit that two have in common, None where they have none."""
        try:
            return self.ask("merge-base", one, other).decode().split()[0]
        except GitError:
            return None

    def is_shallow(self) -> bool:
        """Return whether the checkout lacks the commits before some."""
        return self.ask("rev-parse", "--is-shallow-repository").strip() == b"true"

    def count(self, revisions: str) -> int:
        """Return how many commits a range has."""
        return int(self.ask("rev-list", "--count", revisions))

    def empty_tree(self) -> str:
        """Return the id of the tree without files."""
        return self.ask("hash-object", "-t", "tree", os.devnull).decode().strip()

    def tree(self, revision: str) -> Tree:
        """Return all files of a revision below the dataset's root."""
        where = f"{revision}:{self.prefix}" if self.prefix else revision
        try:
            listed = self.ask("ls-tree", "-r", "-z", "-l", "--full-tree", where)
        except GitError:
            # a commit without the folder is one without files
            if self.prefix and self.find_tree(revision):
                return {}
            raise
        found: Tree = {}
        for line in filter(None, listed.split(b"\0")):
            about, path = line.split(b"\t", 1)
            mode, _, oid, size = about.decode().split()
            entry = Entry(mode, oid, int(size) if size.isdecimal() else 0)
            found[os.fsdecode(path)] = entry
        return found

    def find_tree(self, revision: str) -> bool:
        """Return whether a revision has a tree at all."""
        try:
            self.ask("rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
        except GitError:
            return False
        return True

    def index(self) -> tuple[Tree, frozenset[str]]:
        """Return what the index has below the dataset's root, and what is unchanged.

        A file is unchanged where its time and size are those that the index remembers;
        no content is read, since git would filter it. Sizes of entries are not known.
        """
        found: Tree = {}
        unchanged = set()
        written = self._index_time()
        listed = self.ask("ls-files", "-s", "-z", "--debug", "--", *self._below())
        for match in _INDEXED.finditer(listed):
            name = os.fsdecode(match["path"])
            if not name.startswith(self.prefix):
                continue
            path = name[len(self.prefix) :]
            found[path] = Entry(match["mode"].decode(), match["oid"].decode(), 0)
            if match["sec"] is not None and _is_unchanged(
                self.top / name, match, written
            ):
                unchanged.add(path)
        return found, frozenset(unchanged)

    def _index_time(self) -> int:
        """Return when the index was written, in ns; 0 where there is none."""
        said = self.ask("rev-parse", "--git-path", "index")[:-1]
        try:
            return os.stat(os.path.join(os.fsencode(self.top), said)).st_mtime_ns
        except OSError:
            return 0

    def untracked(self) -> frozenset[str]:
        """Return files that git does not know and is not told to ignore."""
        listed = self.ask(
            "ls-files", "-o", "--exclude-standard", "-z", "--", *self._below()
        )
        names = (os.fsdecode(name) for name in filter(None, listed.split(b"\0")))
        return frozenset(n[len(self.prefix) :] for n in names)

    def blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Yield the content of each object, one after the other in memory."""
        # asked from a file: with a pipe, writing and reading could wait for each other
        with tempfile.TemporaryFile() as asked:
            asked.write("".join(f"{oid}\n" for oid in oids).encode())
            asked.seek(0)
            with subprocess.Popen(
                _command(self.top, ("cat-file", "--batch", "--buffer")),
                env=_environment(),
                stdin=asked,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as process:
                assert process.stdout is not None
                for oid in oids:
                    head = process.stdout.readline().split()
                    if len(head) != 3:
                        process.kill()
                        message = f"The object {oid[:12]} is missing or damaged"
                        raise GitError(f"{message}: fetch it (git fetch), git fsck.")
                    content = process.stdout.read(int(head[2]))
                    process.stdout.read(1)
                    yield content

    def _below(self) -> tuple[str, ...]:
        # literally: a folder may be called *.json
        return (f":(top,literal){self.prefix}",) if self.prefix else ()


def _is_unchanged(file: Path, remembered: re.Match[bytes], written: int) -> bool:
    try:
        status = os.lstat(file)
    except OSError:
        return False
    time = int(remembered["sec"]) * 1_000_000_000 + int(remembered["nsec"])
    same = status.st_mtime_ns == time and status.st_size == int(remembered["size"])
    # one written in the moment of the index may have been written again
    return same and time < written


def open_repository(dataset: Path) -> Repository:
    """Return the checkout that a dataset lies in; raises GitError where it is none."""
    if not dataset.is_dir():
        raise GitError(f"There is no folder {quote(str(dataset), 200)}.")
    try:
        said = _git(dataset, ("rev-parse", "--show-toplevel", "--show-prefix"))
    except GitError as error:
        where = quote(str(dataset), 200)
        if "not a git repository" in str(error):
            message = f"{where} is not in a git checkout: a review compares revisions."
            advice = "To check files alone: trace-dataset validate."
            raise GitError(f"{message} {advice}") from None
        raise
    top, prefix = said[:-1].split(b"\n", 1) if b"\n" in said[:-1] else (said[:-1], b"")
    return Repository(Path(os.fsdecode(top)), os.fsdecode(prefix))


def _git(folder: Path, arguments: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(
            _command(folder, arguments),
            env=_environment(),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("There is no git on this machine: install it.") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]} took over {_SECONDS} s.") from None
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(one_line(f"git {arguments[0]}: {(text or ['failed'])[0]}"))
    return done.stdout


def _command(folder: Path, arguments: Iterable[str]) -> list[str]:
    settings = [part for setting in _OFF for part in ("-c", setting)]
    return ["git", "-C", str(folder), "--no-pager", *settings, *arguments]


def _environment() -> dict[str, str]:
    passed = {n: v for n, v in os.environ.items() if n not in _NOT_PASSED_ON}
    return {
        **passed,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
