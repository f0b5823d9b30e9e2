"""Keep a Hub repository on disk: blobs by their hash, commits, refs, discussions.

A commit exists whole before a ref names it, and refs are replaced atomically: whatever
a client does or a connection loses, a ref names a whole commit. `damage` proves it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

# What the Hub's own .gitattributes for data sets sends through LFS, in part.
LFS_SUFFIXES = (".safetensors", ".parquet", ".bin", ".npy", ".npz", ".zip", ".gz")
LFS_BYTES = 10 * 1024 * 1024
_START = "2026-01-01T00:00:{:02d}.000Z"


class Refused(Exception):
    """Say why a commit was refused, with the HTTP status the Hub answers."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Entry:
    """Hold one file of a commit; `oid` is git's sha1 of a regular file's blob."""

    sha256: str
    oid: str
    size: int
    lfs: bool


@dataclass(frozen=True)
class Commit:
    """Hold one commit and all of its files."""

    id: str
    parent: str | None
    title: str
    message: str
    author: str
    files: Mapping[str, Entry]


class Repository:
    """Hold one repository; all methods may be called from any thread."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.private = False
        self.gated = False
        self.writers: set[str] = set()
        self._lock = threading.RLock()
        for part in ("blobs", "commits", "refs/pr", "refs/heads", "discussions"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        if not self.refs():
            first = self._save(None, "initial commit", "", "hub", {})
            self._point("refs/heads/main", first.id)

    # refs and commits

    def refs(self) -> dict[str, str]:
        """Return each ref, such as refs/heads/main, and the commit it names."""
        found = sorted((self.folder / "refs").rglob("*"))
        refs = [path for path in found if path.is_file() and path.suffix != ".tmp"]
        return {str(p.relative_to(self.folder)): p.read_text() for p in refs}

    def find(self, revision: str) -> Commit | None:
        """Return the commit that a branch, refs/pr/N or an id names, or None."""
        refs = self.refs()
        oid = refs.get(revision) or refs.get(f"refs/heads/{revision}") or revision
        path = self.folder / "commits" / f"{oid}.json"
        if "/" in oid or not path.is_file():
            return None
        return _read_commit(path)

    def head(self, revision: str = "main") -> Commit:
        """Return the commit of a revision that exists."""
        commit = self.find(revision)
        assert commit is not None, revision
        return commit

    def history(self, revision: str = "main") -> list[Commit]:
        """Return the commits of a revision, newest first."""
        commits, at = [], self.find(revision)
        while at is not None:
            commits.append(at)
            at = self.find(at.parent) if at.parent else None
        return commits

    def contents(self, revision: str = "main") -> dict[str, bytes]:
        """Return every file of a revision with its bytes."""
        files = self.head(revision).files
        return {path: self.read(entry) for path, entry in files.items()}

    def commit(
        self,
        revision: str,
        *,
        title: str,
        author: str,
        message: str = "",
        parent: str | None = None,
        add: Mapping[str, bytes] | None = None,
        add_lfs: Mapping[str, tuple[str, int]] | None = None,
        delete: Sequence[str] = (),
        create_pr: bool = False,
    ) -> tuple[Commit, int | None]:
        """Make one commit, or raise Refused and change nothing.

        Returns the commit, and the number of the pull request it opened or None.
        """
        with self._lock:
            head = self.find(revision)
            if head is None:
                raise Refused(404, f"Invalid rev id: {revision}")
            if parent is not None and parent != head.id:
                raise Refused(
                    412, "A commit has happened since. Please refresh and try again."
                )
            files = dict(head.files)
            for path in delete:
                gone = [p for p in files if p == path or p.startswith(path + "/")]
                if not gone:
                    raise Refused(404, "A file with this name doesn't exist")
                for name in gone:
                    del files[name]
            for path, (sha256, size) in (add_lfs or {}).items():
                if not self.has(sha256, size):
                    raise Refused(400, f"LFS object {sha256} of {path} does not exist")
                files[path] = Entry(
                    sha256, _git_hash(_pointer(sha256, size)), size, True
                )
            for path, content in (add or {}).items():
                files[path] = self._keep(content)
            if files == head.files and not create_pr:
                raise Refused(400, "No files have been modified since last commit")
            made = self._save(head.id, title, message, author, files)
            if not create_pr:
                self._point(_full(revision), made.id)
                self._note_commit(revision, made)
                return made, None
            number = self.open_discussion(title, message, author, pull_request=True)
            self._point(f"refs/pr/{number}", made.id)
            self._note_commit(f"refs/pr/{number}", made)
            return made, number

    def put(self, path: str, content: bytes, *, revision: str = "main") -> Commit:
        """Commit one file as somebody else would; LFS where the Hub would."""
        if takes_lfs(path, len(content)):
            sha256 = self.keep_lfs(content)
            files = {path: (sha256, len(content))}
            return self.commit(
                revision, title=f"Add {path}", author="other", add_lfs=files
            )[0]
        files_now = {path: content}
        return self.commit(
            revision, title=f"Add {path}", author="other", add=files_now
        )[0]

    def branch(self, name: str, at: str = "main") -> None:
        """Make a branch at a revision."""
        self._point(f"refs/heads/{name}", self.head(at).id)

    # blobs

    def read(self, entry: Entry) -> bytes:
        """Return a file's bytes."""
        return (self.folder / "blobs" / entry.sha256).read_bytes()

    def has(self, sha256: str, size: int) -> bool:
        """Return whether a blob of that hash and size is kept."""
        path = self.folder / "blobs" / Path(sha256).name
        return path.is_file() and path.stat().st_size == size

    def keep_lfs(self, content: bytes, expected: str | None = None) -> str:
        """Keep a blob and return its hash; raises Refused if it is not the expected."""
        sha256 = hashlib.sha256(content).hexdigest()
        if expected is not None and sha256 != expected:
            raise Refused(400, f"The content is not that of {expected}")
        path = self.folder / "blobs" / sha256
        if not path.exists():
            _write(path, content)
        return sha256

    def damage(self) -> list[str]:
        """Return what is half-written: refs, commits or blobs that don't hold."""
        found = []
        for ref, oid in self.refs().items():
            commit = self.find(oid)
            if commit is None:
                found.append(f"{ref} names {oid}, which is no commit")
                continue
            for path, entry in commit.files.items():
                try:
                    content = self.read(entry)
                except FileNotFoundError:
                    found.append(f"{ref}: {path} has no blob")
                    continue
                if hashlib.sha256(content).hexdigest() != entry.sha256:
                    found.append(f"{ref}: {path} has other bytes")
        return found

    # discussions

    def open_discussion(
        self, title: str, text: str, author: str, *, pull_request: bool
    ) -> int:
        """Open a discussion or a pull request without commits; return its number."""
        with self._lock:
            number = len(self.discussions()) + 1
            status = "open"
            self._keep_discussion(
                {
                    "num": number,
                    "title": title,
                    "author": {"name": author},
                    "createdAt": _START.format(number % 60),
                    "status": status,
                    "isPullRequest": pull_request,
                    "events": [],
                }
            )
            if pull_request:
                self._point(f"refs/pr/{number}", self.head().id)
            self.add_event(number, "comment", author, comment_data(text))
            return number

    def discussions(self) -> list[dict[str, Any]]:
        """Return all discussions by number."""
        files = (self.folder / "discussions").glob("*.json")
        return sorted(
            (json.loads(f.read_text()) for f in files), key=lambda d: d["num"]
        )

    def discussion(self, number: int) -> dict[str, Any] | None:
        """Return one discussion, or None."""
        found = [held for held in self.discussions() if held["num"] == number]
        return found[0] if found else None

    def description(self, number: int) -> str:
        """Return the text that a discussion opens with, as edited last."""
        held = self.discussion(number)
        assert held is not None
        return str(held["events"][0]["data"]["latest"]["raw"])

    def add_event(
        self, number: int, kind: str, author: str, data: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Append an event to a discussion and return it."""
        with self._lock:
            held = self.discussion(number)
            assert held is not None
            event = {
                "id": f"{number:08x}{len(held['events']):08x}",
                "type": kind,
                "createdAt": _START.format(len(held["events"]) % 60),
                "author": {"name": author},
                "data": dict(data),
            }
            held["events"].append(event)
            self._keep_discussion(held)
            return event

    def change(self, number: int, **fields: Any) -> None:
        """Set fields of a discussion, such as its status or title."""
        with self._lock:
            held = self.discussion(number)
            assert held is not None
            self._keep_discussion({**held, **fields})

    def edit_comment(
        self, number: int, event_id: str, text: str
    ) -> dict[str, Any] | None:
        """Replace a comment's text; returns the event, or None where there is none."""
        with self._lock:
            held = self.discussion(number)
            for event in held["events"] if held else ():
                if event["id"] == event_id and event["type"] == "comment":
                    event["data"]["history"].append(event["data"]["latest"])
                    event["data"].update(comment_data(text), edited=True)
                    assert held is not None
                    self._keep_discussion(held)
                    return dict(event)
            return None

    def _note_commit(self, revision: str, commit: Commit) -> None:
        if revision.startswith("refs/pr/"):
            number = int(revision.rsplit("/", 1)[1])
            data = {"subject": commit.title, "oid": commit.id}
            self.add_event(number, "commit", commit.author, data)

    def _keep_discussion(self, held: Mapping[str, Any]) -> None:
        path = self.folder / "discussions" / f"{held['num']}.json"
        _write(path, json.dumps(held).encode())

    def _keep(self, content: bytes) -> Entry:
        sha256 = self.keep_lfs(content)
        return Entry(sha256, _git_hash(content), len(content), False)

    def _save(
        self,
        parent: str | None,
        title: str,
        message: str,
        author: str,
        files: Mapping[str, Entry],
    ) -> Commit:
        body = {
            "parent": parent,
            "title": title,
            "message": message,
            "author": author,
            "files": {path: asdict(files[path]) for path in sorted(files)},
        }
        oid = hashlib.sha1(json.dumps(body, sort_keys=True).encode()).hexdigest()
        path = self.folder / "commits" / f"{oid}.json"
        _write(path, json.dumps({"id": oid, **body}).encode())
        return Commit(oid, parent, title, message, author, dict(files))

    def _point(self, ref: str, oid: str) -> None:
        _write(self.folder / ref, oid.encode())


@lru_cache(maxsize=8)
def _read_commit(path: Path) -> Commit:
    """Return a commit: its file never changes, and each request for a file needs it."""
    data = json.loads(path.read_text())
    data["files"] = {name: Entry(**held) for name, held in data["files"].items()}
    return Commit(**data)


def takes_lfs(path: str, size: int) -> bool:
    """Return whether the server sends a file through LFS."""
    return size > 0 and (path.endswith(LFS_SUFFIXES) or size > LFS_BYTES)


def comment_data(text: str) -> dict[str, Any]:
    """Return the data of a comment's event."""
    latest = {"raw": text, "html": "", "updatedAt": _START.format(0), "author": {}}
    return {"edited": False, "hidden": False, "latest": latest, "history": []}


def _full(revision: str) -> str:
    return revision if revision.startswith("refs/") else f"refs/heads/{revision}"


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _pointer(sha256: str, size: int) -> bytes:
    head = "version https://git-lfs.github.com/spec/v1"
    return f"{head}\noid sha256:{sha256}\nsize {size}\n".encode()


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{threading.get_ident()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_bytes(content)
    os.replace(temporary, path)
