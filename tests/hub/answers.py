"""What the loopback Hub answers, a function for each route."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.hub import discussions, lfs
from tests.hub.exchange import Answer, Request, Stop, refusal, reply
from tests.hub.store import Commit, Entry, Repository, takes_lfs

if TYPE_CHECKING:
    from tests.hub.server import Account

_WRITES = frozenset(("commit", "edit", "comment"))


def check_access(
    request: Request, repository: Repository, account: Account | None
) -> None:
    """Raise Stop where the account may not do this."""
    writer = account is not None and account.name in repository.writers
    if request.route in _WRITES:
        if account is None:
            raise Stop(refusal(401, "Invalid username or password."))
        if account.role != "write":
            raise Stop(refusal(403, "Your token has no write access: it is read-only"))
        revision = request.groups.get("rev", "")
        own = revision.startswith("refs/pr/") and _opened(
            repository, revision, account.name
        )
        free = request.flag("create_pr") or own or request.route != "commit"
        if not (writer or free):
            raise Stop(refusal(403, "You have no write access to this repository"))
    if request.route in ("head", "resolve") and repository.gated and not writer:
        text = f"Access to dataset {repository.name} is restricted."
        raise Stop(refusal(403, text, code="GatedRepo"))


def _opened(repository: Repository, revision: str, name: str) -> bool:
    held = repository.discussion(int(revision.rsplit("/", 1)[1]))
    return held is not None and held["author"]["name"] == name


def _commit_of(request: Request, repository: Repository) -> Commit:
    revision = request.groups.get("rev", "main")
    commit = repository.find(revision)
    if commit is None:
        text = f"Invalid rev id: {revision}"
        raise Stop(refusal(404, text, code="RevisionNotFound"))
    return commit


def _whoami(request: Request, account: Account | None) -> Answer:
    if account is None:
        return refusal(401, "Invalid username or password.")
    token = {"displayName": "test", "role": account.role}
    auth = {"type": "access_token", "accessToken": token}
    return reply({"type": "user", "name": account.name, "orgs": [], "auth": auth})


def _validate_yaml(request: Request, account: Account | None) -> Answer:
    return reply({"errors": [], "warnings": []})


def _info(request: Request, repository: Repository, name: str) -> Answer:
    commit = _commit_of(request, repository)
    siblings: list[dict[str, Any]] = []
    for path, entry in commit.files.items():
        sibling: dict[str, Any] = {"rfilename": path}
        if request.flag("blobs"):
            sibling |= {"size": entry.size, "blobId": entry.oid}
            if entry.lfs:
                sibling["lfs"] = _lfs(entry, "sha256")
        siblings.append(sibling)
    return reply(
        {
            "id": repository.name,
            "author": repository.name.split("/")[0],
            "sha": commit.id,
            "private": repository.private,
            "gated": "auto" if repository.gated else False,
            "disabled": False,
            "siblings": siblings,
            "tags": [],
        }
    )


def _lfs(entry: Entry, key: str = "oid") -> dict[str, Any]:
    return {key: entry.sha256, "size": entry.size, "pointerSize": 130}


def _file(path: str, entry: Entry) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "file",
        "path": path,
        "oid": entry.oid,
        "size": entry.size,
    }
    if entry.lfs:
        made["lfs"] = _lfs(entry)
    return made


def _listed(commit: Commit, folder: str, recursive: bool) -> list[dict[str, Any]]:
    start = f"{folder}/" if folder else ""
    found: dict[str, dict[str, Any]] = {}
    for path, entry in commit.files.items():
        if not path.startswith(start):
            continue
        parts = path[len(start) :].split("/")
        for depth in range(1, len(parts)):
            name = start + "/".join(parts[:depth])
            oid = hashlib.sha1(f"{commit.id}:{name}".encode()).hexdigest()
            if recursive or depth == 1:
                found[name] = {"type": "directory", "path": name, "oid": oid, "size": 0}
        if recursive or len(parts) == 1:
            found[path] = _file(path, entry)
    return [found[name] for name in sorted(found)]


def _tree(request: Request, repository: Repository, name: str) -> Answer:
    commit = _commit_of(request, repository)
    folder = request.groups.get("path", "")
    entries = _listed(commit, folder, request.flag("recursive"))
    if folder and not entries:
        text = f"{folder} does not exist on {request.groups['rev']}"
        return refusal(404, text, code="EntryNotFound")
    at = int(request.query.get("cursor", ["0"])[0])
    size = request.hub.page
    headers = {}
    if at + size < len(entries):
        query = {key: values[0] for key, values in request.query.items()}
        where = request.handler.path.split("?")[0]
        more = urlencode({**query, "cursor": at + size})
        headers["Link"] = f'<{request.hub.url}{where}?{more}>; rel="next"'
    return reply(entries[at : at + size], **headers)


def _paths(request: Request, repository: Repository, name: str) -> Answer:
    from urllib.parse import parse_qs

    commit = _commit_of(request, repository)
    if request.header("Content-Type").startswith("application/json"):
        asked = request.json()["paths"]
    else:
        asked = parse_qs(request.body.decode()).get("paths", [])
    if len(asked) > 1000:
        return refusal(413, "too many parameters")
    made = []
    for path in dict.fromkeys(part.rstrip("/") for part in asked):
        if path in commit.files:
            made.append(_file(path, commit.files[path]))
        elif any(held.startswith(path + "/") for held in commit.files):
            made.append({"type": "directory", "path": path, "oid": "0" * 40, "size": 0})
    return reply(made)


def _preupload(request: Request, repository: Repository, name: str) -> Answer:
    if not name:
        return refusal(401, "Invalid username or password.")
    commit = _commit_of(request, repository)
    made = []
    for file in request.json()["files"]:
        path, size = file["path"], file["size"]
        held = commit.files.get(path)
        mode = "lfs" if takes_lfs(path, size) else "regular"
        row = {"path": path, "uploadMode": mode, "shouldIgnore": False}
        if held is not None:
            row["oid"] = held.sha256 if held.lfs else held.oid
        made.append(row)
    return reply({"files": made})


def _commit(request: Request, repository: Repository, name: str) -> Answer:
    header: dict[str, Any] = {}
    add: dict[str, bytes] = {}
    add_lfs: dict[str, tuple[str, int]] = {}
    delete: list[str] = []
    for line in request.body.splitlines():
        try:
            item = json.loads(line)
        except ValueError:
            return refusal(400, "Invalid NDJSON")
        key, value = item["key"], item["value"]
        if key == "header":
            header = value
        elif key == "file":
            add[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            add_lfs[value["path"]] = (value["oid"], value["size"])
        elif key in ("deletedFile", "deletedFolder"):
            delete.append(value["path"].rstrip("/"))
        else:
            return refusal(400, f"Unknown operation {key}")
    _commit_of(request, repository)
    commit, number = repository.commit(
        request.groups["rev"],
        title=header["summary"],
        message=header.get("description", ""),
        author=name,
        parent=header.get("parentCommit"),
        add=add,
        add_lfs=add_lfs,
        delete=delete,
        create_pr=request.flag("create_pr"),
    )
    place = f"{request.hub.url}/datasets/{repository.name}"
    made = {
        "success": True,
        "commitOid": commit.id,
        "commitUrl": f"{place}/commit/{commit.id}",
        "hookOutput": "",
    }
    if number is not None:
        made["pullRequestUrl"] = f"{place}/discussions/{number}"
    return reply(made)


def _commits(request: Request, repository: Repository, name: str) -> Answer:
    _commit_of(request, repository)
    return reply(
        [
            {
                "id": commit.id,
                "authors": [{"user": commit.author}],
                "date": "2026-01-01T00:00:00.000Z",
                "title": commit.title,
                "message": commit.message,
            }
            for commit in repository.history(request.groups["rev"])
        ]
    )


def _resolve(request: Request, repository: Repository, name: str) -> Answer:
    commit = _commit_of(request, repository)
    entry = commit.files.get(request.groups["path"])
    if entry is None:
        headers = {"X-Repo-Commit": commit.id}
        return refusal(404, "Entry not found", code="EntryNotFound", headers=headers)
    etag = entry.sha256 if entry.lfs else entry.oid
    headers = {
        "ETag": f'"{etag}"',
        "X-Repo-Commit": commit.id,
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
    }
    if entry.lfs:
        headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(entry.size)}
    content = repository.read(entry)
    wanted = request.header("Range")
    if request.method == "HEAD":
        return Answer(200, b"", {**headers, "Content-Length": str(len(content))})
    if not wanted.startswith("bytes="):
        return Answer(200, content, headers)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start, stop = int(first or 0), int(last) + 1 if last else len(content)
    if start >= len(content):
        headers["Content-Range"] = f"bytes */{len(content)}"
        return Answer(416, b"", headers)
    stop = min(stop, len(content))
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
    return Answer(206, content[start:stop], headers)


WITHOUT_REPOSITORY: Mapping[str, Callable[[Request, Account | None], Answer]] = {
    "whoami": _whoami,
    "validate-yaml": _validate_yaml,
}
WITH_REPOSITORY: Mapping[str, Callable[[Request, Repository, str], Answer]] = {
    "info": _info,
    "tree": _tree,
    "paths": _paths,
    "preupload": _preupload,
    "commit": _commit,
    "commits": _commits,
    "discussions": discussions.discussions,
    "discussion": discussions.discussion,
    "edit": discussions.edit,
    "comment": discussions.comment,
    "head": _resolve,
    "resolve": _resolve,
    "lfs-batch": lfs.batch,
    "lfs-verify": lfs.verify,
    "lfs-upload": lfs.upload,
}
