"""A request and an answer of the loopback Hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.hub.server import Hub


@dataclass(frozen=True)
class Answer:
    """Hold an answer; Content-Length is added where it is not given."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Stop(Exception):
    """End a request with an answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True)
class Request:
    """Hold one request; `groups` are the parts of its path, unquoted."""

    hub: Hub
    route: str
    method: str
    groups: Mapping[str, str]
    query: Mapping[str, list[str]]
    body: bytes
    handler: BaseHTTPRequestHandler

    def header(self, name: str) -> str:
        """Return a header, or an empty text."""
        return self.handler.headers.get(name) or ""

    def flag(self, name: str) -> bool:
        """Return whether a parameter of the query is set."""
        return self.query.get(name, [""])[0].lower() in ("1", "true")

    def json(self) -> Any:
        """Return the body as JSON; stops with 400 where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise Stop(refusal(400, "Invalid JSON")) from None


def reply(value: object, status: int = 200, **headers: str) -> Answer:
    """Return an answer of JSON."""
    made = {"Content-Type": "application/json", **headers}
    return Answer(status, json.dumps(value).encode(), made)


def refusal(
    status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None
) -> Answer:
    """Return an error as the Hub words it: in two headers and in the body."""
    made = {"X-Error-Message": message, **(headers or {})}
    if code:
        made["X-Error-Code"] = code
    return reply({"error": message}, status, **made)
