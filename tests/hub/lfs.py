"""What the loopback Hub answers to Git LFS."""

from __future__ import annotations

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
