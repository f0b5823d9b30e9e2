"""Read a git checkout with libgit2, which runs nothing that the checkout names.

It knows no external filter, text conversion, file system monitor or replace object,
runs no hook when it reads, and fetches no object that is missing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from sys import intern

import pygit2
from pygit2.enums import DiffOption, FileMode, ObjectType

from generator.dataset.file_reading import LFS_MAGIC
from generator.dataset.paths import FOLDERS, is_dataset
from generator.problems import Failure
from generator.problems.messages import one_line, quote
from generator.review.tree import MAX_FILES, Tree, TreeEntry, check_total

_NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_SUBMODULE = "160000"
_LONGEST_PATH = 4096
_LONGEST_POINTER = 1024
_LFS_SIZE = re.compile(rb"^size ([0-9]{1,20})$", re.MULTILINE)
_LARGE = 64 * 1024 * 1024
UNREAD = "0" * 40
"""Names the content of a large file that is none of the base's and was not read."""

_LFS_POINTER = LFS_MAGIC + b".github.com/spec/v1\noid sha256:%s\nsize %d\n"
# what is mapped of packs counts as memory of this process; by default 32 MiB each
pygit2.settings.mwindow_size = 1 << 20
pygit2.settings.mwindow_mapped_limit = 8 << 20
# no index is written, and no submodule is opened
_LOOSE = (
    DiffOption.INCLUDE_UNTRACKED
    | DiffOption.RECURSE_UNTRACKED_DIRS
    | DiffOption.INCLUDE_TYPECHANGE
    | DiffOption.IGNORE_SUBMODULES
)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Raise Failure in place of what libgit2 says of objects and of the index."""
    try:
        yield
    except KeyError as error:
        oid = one_line(str(error), 14).strip("'")
        message = f"The object {oid} is missing or damaged"
        raise Failure(f"{message}: fetch it (git fetch), git fsck.") from None
    except (pygit2.GitError, ValueError, OSError) as error:
        trust = "git config --global --add safe.directory DIR lets it be read."
        advice = f". {trust}" if "not owned by" in str(error) else ""
        raise Failure(f"{one_line(f'git: {error}', 300)}{advice}") from None


@dataclass(frozen=True)
class Repository:
    """A checkout's objects, index and working tree below the dataset's root.

    `prefix` leads from the checkout's top to the dataset; it is empty or ends in a
    slash. Methods raise what libgit2 does where an object or the index can't be read.
    """

    git: pygit2.Repository
    prefix: str

    def find(self, revision: str) -> str | None:
        """Return the commit of a revision, None where there is none."""
        try:
            return str(self.git.revparse_single(f"{revision}^{{commit}}").id)
        except (pygit2.GitError, KeyError, ValueError):
            return None

    def resolve(self, revision: str) -> str:
        """Return the commit of a revision as people write it; raises Failure."""
        object = self.find(revision)
        names = (f"refs/{kind}/{revision}" for kind in ("tags", "heads", "remotes"))
        if len({commit for name in names if (commit := self.find(name))}) > 1:
            raise Failure(
                f"{quote(revision)} is both a branch and a tag: write refs/heads/… or "
                "refs/tags/…."
            )
        if object is None:
            shallow = " The checkout is shallow: fetch more."
            hint = shallow if self.git.is_shallow else ""
            raise Failure(f"There is no revision {quote(revision)}.{hint}")
        return object

    def parents(self, commit: str) -> list[str]:
        """Return the commits that one follows; a merge has several."""
        return [
            str(oid)
            for oid in self.git.revparse_single(commit).peel(pygit2.Commit).parent_ids
        ]

    def tree(self, revision: str) -> Tree:
        """Return all files of a revision below the dataset's root; raises Failure."""
        top = self.git.revparse_single(f"{revision}^{{tree}}")
        for part in filter(None, self.prefix.split("/")):
            if not isinstance(top, pygit2.Tree) or part not in top:
                return {}
            top = top[part]
        tree: Tree = {}
        folders: set[str] = set()
        waiting, seen = [("", top)], 0
        while waiting:
            path, folder = waiting.pop()
            for entry in folder if isinstance(folder, pygit2.Tree) else ():
                seen += 1
                part = os.fsdecode(entry.raw_name or b"")
                name = path + part
                if "/" in part or name in tree or name in folders:
                    raise Failure(
                        f"The tree of {revision[:12]} has {quote(name, 200)} twice, or "
                        "a name with a slash: git fsck."
                    )
                # a few trees that name each other stand for any number of files
                if seen > MAX_FILES or len(name) > _LONGEST_PATH:
                    raise Failure(
                        f"The tree of {revision[:12]} has over {MAX_FILES} entries, "
                        f"or a path of over {_LONGEST_PATH} characters."
                    )
                if isinstance(entry, pygit2.Tree):
                    folders.add(name)
                    waiting.append((f"{name}/", entry))
                    continue
                tree[name] = TreeEntry(intern(f"{entry.filemode:06o}"), str(entry.id))
        return tree

    def common(self, one: str, other: str) -> str | None:
        """Return the commit where two histories parted, None where they share none.

        Raises Failure where there are several: between one of them and head a change can
        hide that a merge brings. So it is where the checkout lacks a part of either.
        """
        base = self.git.merge_base(one, other)
        if base is None:
            return None
        sides = [self._since(tip, base) for tip in (one, other)]
        if not self._shallow.isdisjoint(sides[0] | sides[1]):
            raise Failure(
                "The checkout is shallow where the two histories may have more in "
                "common: fetch more (git fetch --unshallow)."
            )
        if sides[0] & sides[1]:
            raise Failure(
                "The two histories were merged crosswise, and parted at several commits: "
                "merge the base into head, or rebase head."
            )
        return str(base)

    def _since(self, tip: str, base: pygit2.Oid) -> set[str]:
        """Return the commits of a tip that are not the base's."""
        walk = self.git.walk(tip)
        walk.hide(base)
        return {str(commit.id) for commit in walk}

    @cached_property
    def _shallow(self) -> frozenset[str]:
        """Return the commits whose parents the checkout does not have."""
        folder = Path(self.git.path)
        with suppress(OSError):
            # a working tree beside others has what they share elsewhere
            folder /= (folder / "commondir").read_text().strip()
        try:
            return frozenset((folder / "shallow").read_text().split())
        except OSError:
            return frozenset()

    def outside(self, old: str, new: str | None) -> tuple[str, ...]:
        """Return the changed paths above the dataset's root, as `../x` of its folder.

        `new` is None for the working tree. Without `old` everything there is new.
        """
        if not self.prefix:
            return ()
        before = self.git.revparse_single(f"{old}^{{tree}}" if old else _NO_FILES)
        assert isinstance(before, pygit2.Tree)
        if new is not None:
            after = self.git.revparse_single(f"{new}^{{tree}}")
            assert isinstance(after, pygit2.Tree)
            deltas = [*before.diff_to_tree(after).deltas]
        else:
            index = self.git.index
            deltas = [*index.diff_to_tree(before).deltas]
            deltas += index.diff_to_workdir(_LOOSE).deltas
        paths = {os.fsdecode(d.new_file.raw_path) for d in deltas}
        up = "../" * self.prefix.count("/")
        above = (path for path in paths if not path.startswith(self.prefix))
        return tuple(sorted(up + path for path in above))

    def blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Yield each object's content, one after the other in memory; raises Failure."""
        objects = self.git.odb
        with one_line_errors():
            # the last pygit2 for Python 3.10 reads whole objects alone
            if hasattr(objects, "read_header"):
                check_total(sum(objects.read_header(oid)[1] for oid in oids))
            for oid in oids:
                kind, content = objects.read(oid)
                if kind != ObjectType.BLOB:
                    raise KeyError(oid)
                yield content

    def working_tree(self, root: Path, revision: str | None, base: Tree) -> Tree:
        """Return the files that lie in the working tree, as git would name their content.

        `base` is the tree of a revision, from which git knows what differs. Below the
        dataset's folders everything counts that lies there, ignored or not: that is
        what readers of the dataset find. What Git LFS put in the place of a pointer of
        `base` is named as the pointer is. Raises Failure where files of the branch need
        not lie there.
        """
        index, config = self.git.index, self.git.config
        if "core.sparsecheckout" in config and config.get_bool("core.sparsecheckout"):
            raise Failure(
                "The checkout is sparse, so that files of the branch may not lie in it: "
                "review what is committed (--head HEAD)."
            )
        name = _NO_FILES if revision is None else f"{revision}^{{tree}}"
        staged = index.diff_to_tree(self.git.revparse_single(name)).deltas
        loose = index.diff_to_workdir(_LOOSE).deltas
        paths = {os.fsdecode(d.new_file.raw_path) for d in (*staged, *loose)}
        below = {p[len(self.prefix) :] for p in paths if p.startswith(self.prefix)}
        # a dataset that lies untracked in a checkout is a path of its own
        below.discard("")
        lying = {*_lying(root)}
        tree = {p: e for p, e in base.items() if p not in below}
        has_modes = "core.filemode" not in config or config.get_bool("core.filemode")
        for path in below | (lying - base.keys()):
            entry = self._entry_of(root / path, base.get(path), has_modes=has_modes)
            full = self.prefix + path
            if full in index and index[full].mode == FileMode.COMMIT:
                # whether or not its folder was made
                entry = TreeEntry(_SUBMODULE, str(index[full].id))
            if entry is not None:
                tree[path] = entry
        # what lies behind a link is elsewhere; a submodule is a folder, and no file
        return {
            path: entry
            for path, entry in tree.items()
            if path in lying
            or not (is_dataset(path) and (entry.is_file or entry.is_link))
        }

    def _entry_of(
        self, file: Path, base: TreeEntry | None, *, has_modes: bool
    ) -> TreeEntry | None:
        """Return the entry that a file of the working tree would be; None if unreadable.

        A large file of another size than `base` has is another one, and is not read.
        """
        try:
            status = file.lstat()
            size, mode = (
                status.st_size,
                "100755" if status.st_mode & 0o100 else "100644",
            )
            if not has_modes:
                is_known = base is not None and base.is_file
                mode = base.mode if base is not None and is_known else "100644"
            if file.is_symlink():
                content = os.fsencode(os.readlink(file))
                return TreeEntry("120000", str(pygit2.hash(content)))
            if not file.is_file():
                return TreeEntry("000000", "") if file.exists() else None
            if size > _LARGE and size not in self._sizes(base):
                return TreeEntry(mode, UNREAD)
            if base is not None and size > _LONGEST_POINTER:
                digest = hashlib.sha256()
                with open(file, "rb") as stream:
                    while piece := stream.read(1 << 20):
                        digest.update(piece)
                pointer = _LFS_POINTER % (digest.hexdigest().encode(), size)
                if str(pygit2.hash(pointer)) == base.oid:
                    return TreeEntry(mode, base.oid)
            return TreeEntry(mode, str(pygit2.hashfile(str(file))))
        except (OSError, pygit2.GitError):
            return None

    def _sizes(self, entry: TreeEntry | None) -> set[int]:
        """Return the bytes of an entry's content, and those that an LFS pointer names."""
        blob = self.git.get(entry.oid) if entry is not None and entry.is_file else None
        if not isinstance(blob, pygit2.Blob):
            return set()
        is_short = blob.size <= _LONGEST_POINTER
        named = _LFS_SIZE.search(blob.data) if is_short else None
        return {blob.size, int(named[1]) if named else blob.size}


def _lying(root: Path) -> Iterator[str]:
    """Yield the files of the dataset's folders; links are files, and not followed."""
    for top in FOLDERS:
        if os.path.islink(root / top) or not os.path.isdir(root / top):
            yield top
            continue
        # validation says that a folder can't be listed
        for where, folders, files in os.walk(root / top):
            below = os.path.relpath(where, root)
            links = [name for name in folders if os.path.islink(f"{where}/{name}")]
            yield from (f"{below}/{name}" for name in (*files, *links))
            folders[:] = [name for name in folders if name != ".git"]


def open_repository(dataset: Path) -> Repository:
    """Return the checkout that a dataset lies in; raises Failure where it is none."""
    where = quote(str(dataset), 200)
    if not dataset.is_dir():
        raise Failure(f"There is no folder {where}.")
    ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "")
    folder = os.path.realpath(dataset)
    place = pygit2.discover_repository(folder, False, ceilings)
    # by the folder: the repository's own may lie elsewhere, and says not for which files
    opened = pygit2.Repository(folder) if place is not None else None
    if opened is None or opened.workdir is None:
        raise Failure(
            f"{where} is not in a git checkout, which has the revisions to compare. "
            "To check files alone: trace-dataset validate."
        )
    below = os.path.relpath(folder, os.path.realpath(opened.workdir))
    return Repository(opened, "" if below == "." else f"{below}/")
