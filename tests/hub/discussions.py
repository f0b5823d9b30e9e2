"""What the loopback Hub answers on discussions and pull requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.hub.exchange import Answer, Request, Stop, refusal, reply
from tests.hub.store import Repository, comment_data

_DISCUSSIONS_A_PAGE = 10


def _outline(held: Mapping[str, Any], repository: Repository) -> dict[str, Any]:
    made = {key: value for key, value in held.items() if key != "events"}
    return {**made, "repo": {"name": repository.name, "type": "dataset"}}


def discussions(request: Request, repository: Repository, name: str) -> Answer:
    query = {key: values[0] for key, values in request.query.items()}
    held = list(reversed(repository.discussions()))
    if query.get("author"):
        held = [one for one in held if one["author"]["name"] == query["author"]]
    if query.get("type") in ("pull_request", "discussion"):
        pull = query["type"] == "pull_request"
        held = [one for one in held if one["isPullRequest"] is pull]
    if query.get("status") in ("open", "closed"):
        is_open = query["status"] == "open"
        held = [one for one in held if (one["status"] in ("open", "draft")) is is_open]
    start = int(query.get("p", "0")) * _DISCUSSIONS_A_PAGE
    shown = [_outline(o, repository) for o in held[start : start + _DISCUSSIONS_A_PAGE]]
    return reply({"discussions": shown, "count": len(held), "start": start})


def _held(request: Request, repository: Repository) -> dict[str, Any]:
    held = repository.discussion(int(request.groups["num"]))
    if held is None:
        raise Stop(refusal(404, "This discussion does not exist"))
    return held


def discussion(request: Request, repository: Repository, name: str) -> Answer:
    held = _held(request, repository)
    made = {**_outline(held, repository), "events": held["events"]}
    if held["isPullRequest"]:
        made |= {"changes": {"base": "refs/heads/main"}, "filesWithConflicts": []}
        made["diff"] = ""
    return reply(made)


def edit(request: Request, repository: Repository, name: str) -> Answer:
    held = _held(request, repository)
    if name != held["author"]["name"] and name not in repository.writers:
        return refusal(403, "You can't edit what somebody else wrote")
    number, text = int(request.groups["num"]), request.json()["content"]
    event = repository.edit_comment(number, request.groups["id"], text)
    if event is None:
        return refusal(404, "This comment does not exist")
    return reply({"updatedComment": event})


def comment(request: Request, repository: Repository, name: str) -> Answer:
    _held(request, repository)
    data = comment_data(request.json()["comment"])
    number = int(request.groups["num"])
    return reply({"newMessage": repository.add_event(number, "comment", name, data)})
