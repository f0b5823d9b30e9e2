"""What the loopback Hub answers to Git LFS."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

from tests.hub.exchange import Answer, Request, refusal, reply
from tests.hub.store import Repository


def batch(request: Request, repository: Repository, name: str) -> Answer:
    if not name:
        return refusal(401, "Invalid username or password.")
    place = f"{request.hub.url}/lfs/datasets/{quote(repository.name)}"
    check = f"{request.hub.url}/datasets/{quote(repository.name)}.git/info/lfs/objects"
    made = []
    for item in request.json()["objects"]:
        oid, size = item["oid"], item["size"]
        row: dict[str, Any] = {"oid": oid, "size": size}
        if not repository.has(oid, size):
            upload: dict[str, Any] = {"href": f"{place}/{oid}", "header": {}}
            step = request.hub.multipart_bytes
            if size > step:
                upload["href"] = f"{place}/{oid}/complete"
                parts = range(1, -(-size // step) + 1)
                urls = {str(part): f"{place}/{oid}/{part}" for part in parts}
                upload["header"] = {"chunk_size": str(step), **urls}
            row["actions"] = {"upload": upload, "verify": {"href": f"{check}/verify"}}
        made.append(row)
    return reply({"transfer": "basic", "objects": made})


def verify(request: Request, repository: Repository, name: str) -> Answer:
    asked = request.json()
    if not repository.has(asked["oid"], asked["size"]):
        return refusal(404, "Object does not exist")
    return reply({})


def upload(request: Request, repository: Repository, name: str) -> Answer:
    repository.keep_lfs(request.body, request.groups["oid"])
    return Answer(200)


def _part_path(repository: Repository, oid: str, part: str) -> Any:
    return repository.folder / "parts" / f"{oid}.{int(part)}"


def part(request: Request, repository: Repository, name: str) -> Answer:
    path = _part_path(repository, request.groups["oid"], request.groups["part"])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(request.body)
    return Answer(200, b"", {"ETag": hashlib.md5(request.body).hexdigest()})


def complete(request: Request, repository: Repository, name: str) -> Answer:
    oid, content = request.groups["oid"], b""
    for part in request.json()["parts"]:
        path = _part_path(repository, oid, part["partNumber"])
        if (
            not path.is_file()
            or hashlib.md5(path.read_bytes()).hexdigest() != part["etag"]
        ):
            return refusal(400, f"Part {part['partNumber']} is missing")
        content += path.read_bytes()
    repository.keep_lfs(content, oid)
    return Answer(200)
