"""A Hub on the loopback device, for the real huggingface_hub client to talk to.

It speaks the routes of `ROUTES`. The client of 2.4 uploads through Xet wherever hf_xet
is installed, without asking the server: `environment` turns that off, so that LFS over
HTTP, which this server speaks, is what is tested.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub import answers
from tests.hub.exchange import Answer, Request, Stop, refusal
from tests.hub.faults import Does, Fault, Faults
from tests.hub.store import Refused, Repository

_sleep = time.sleep  # tests that speed a client up replace time.sleep
_REPO = r"/api/datasets/(?P<repo>[^/]+/[^/]+)"
_FILES = r"/datasets/(?P<repo>[^/]+/[^/]+)"
ROUTES = (
    ("whoami", "GET", r"/api/whoami-v2"),
    ("validate-yaml", "POST", r"/api/validate-yaml"),
    ("tree", "GET", rf"{_REPO}/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?"),
    ("paths", "POST", rf"{_REPO}/paths-info/(?P<rev>[^/]+)"),
    ("preupload", "POST", rf"{_REPO}/preupload/(?P<rev>[^/]+)"),
    ("commit", "POST", rf"{_REPO}/commit/(?P<rev>[^/]+)"),
    ("commits", "GET", rf"{_REPO}/commits/(?P<rev>[^/]+)"),
    ("discussions", "GET", rf"{_REPO}/discussions"),
    ("discussion", "GET", rf"{_REPO}/discussions/(?P<num>\d+)"),
    ("edit", "POST", rf"{_REPO}/discussions/(?P<num>\d+)/comment/(?P<id>\w+)/edit"),
    ("comment", "POST", rf"{_REPO}/discussions/(?P<num>\d+)/comment"),
    ("info", "GET", rf"{_REPO}/revision/(?P<rev>[^/]+)"),
    ("info", "GET", _REPO),
    ("head", "HEAD", rf"{_FILES}/resolve/(?P<rev>[^/]+)/(?P<path>.+)"),
    ("resolve", "GET", rf"{_FILES}/resolve/(?P<rev>[^/]+)/(?P<path>.+)"),
    ("lfs-batch", "POST", rf"{_FILES}\.git/info/lfs/objects/batch"),
    ("lfs-verify", "POST", rf"{_FILES}\.git/info/lfs/objects/verify"),
    ("lfs-upload", "PUT", rf"/lfs{_FILES}/(?P<oid>[0-9a-f]{{64}})"),
)
_COMPILED = [(name, verb, re.compile(path)) for name, verb, path in ROUTES]


@dataclass(frozen=True)
class Account:
    """Hold whom a token belongs to, and what it may do: read or write."""

    name: str
    role: str = "write"


@dataclass
class Seen:
    """Hold one request as it came; the names of its headers are in lower case."""

    route: str
    method: str
    target: str
    headers: Mapping[str, str]
    status: int = 0
    sent: int = 0


@dataclass
class Hub:
    """Serve repositories from a folder; use it as a context manager.

    `accounts` maps tokens to accounts. `add_repository` makes a repository that the
    account "maintainer" may write to. `seen` lists all requests.
    """

    folder: Path
    accounts: dict[str, Account] = field(
        default_factory=lambda: {"hf_maintainer": Account("maintainer")}
    )
    faults: Faults = field(default_factory=Faults)
    seen: list[Seen] = field(default_factory=list)
    repositories: dict[str, Repository] = field(default_factory=dict)
    page: int = 1000

    def __enter__(self) -> Hub:  # noqa: PYI034 (Self came with Python 3.11)
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Return the endpoint, for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add_repository(self, name: str) -> Repository:
        """Make an empty dataset repository, or open the one in the folder."""
        made = Repository(self.folder / name.replace("/", "__"), name)
        made.writers.add("maintainer")
        self.repositories[name] = made
        return made

    def environment(self, token: str | None = "hf_maintainer") -> dict[str, str]:
        """Return what a client's environment needs to talk to this server only.

        HF_HOME is a folder of its own: no token of this machine's user is ever read.
        """
        made = {
            "HF_ENDPOINT": self.url,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HOME": str(self.folder / "client"),
            "NO_PROXY": "127.0.0.1",
        }
        return {**made, "HF_TOKEN": token} if token else made

    def asked(self, *routes: str) -> list[Seen]:
        """Return the requests of some routes, in order."""
        return [seen for seen in self.seen if seen.route in routes]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of connections that clients close."""


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments: object) -> None:
        """Say nothing on stderr: commands under test are looked at there."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        route, groups = _route(self.command, parts.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(route, self.command, self.path, headers)
        self.hub.seen.append(seen)
        fault = self.hub.faults.pick(route, unquote(parts.path))
        if fault is not None and fault.meddle is not None:
            fault.meddle()
        does = fault.does if fault is not None else None
        if does is Does.CUT_UPLOAD:
            self._read(half=True)
            self._hang_up()
            return
        body = self._read()
        seen.sent = len(body)
        request = Request(
            self.hub, route, self.command, groups, parse_qs(parts.query), body, self
        )
        answer = _struck(fault) if does is Does.STATUS else answer_to(request)
        seen.status = answer.status
        self._send(answer, does, fault.seconds if fault else 0.0)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def _read(self, half: bool = False) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._read_chunks(half)
        length = int(self.headers.get("Content-Length") or 0)
        return self.rfile.read(length // 2 if half else length)

    def _read_chunks(self, half: bool) -> bytes:
        made = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0] or b"0", 16)
            made += self.rfile.read(size)
            self.rfile.readline()
            if not size or half:
                return made

    def _send(self, answer: Answer, does: Does | None, seconds: float) -> None:
        body = answer.body
        if does is Does.DROP_ANSWER:
            self._hang_up()
            return
        if does is Does.WRONG_BYTES and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if does is Does.CUT_ANSWER:
            self.wfile.write(body[: len(body) // 2])
            self._hang_up()
        elif does is Does.SLOW:
            step = max(1, len(body) // 8)
            for at in range(0, len(body), step):
                self.wfile.write(body[at : at + step])
                _sleep(seconds)
        else:
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        # with data unread this is a reset for the client, as a lost line would be
        self.connection.shutdown(socket.SHUT_RDWR)


def _route(method: str, path: str) -> tuple[str, dict[str, str]]:
    for name, verb, pattern in _COMPILED:
        found = pattern.fullmatch(path)
        if method == verb and found:
            given = found.groupdict()
            return name, {k: unquote(v) for k, v in given.items() if v is not None}
    return "unknown", {}


def _struck(fault: Fault | None) -> Answer:
    assert fault is not None
    return refusal(fault.status, fault.message, headers=fault.headers)


def answer_to(request: Request) -> Answer:
    """Answer one request, after looking at who asks."""
    account = None
    token = request.header("Authorization").removeprefix("Bearer ").strip()
    if token:
        account = request.hub.accounts.get(token)
        if account is None:
            return refusal(401, "Invalid credentials in Authorization header")
    if request.route == "unknown":
        return refusal(404, "Sorry, this loopback Hub has no such route")
    if request.route in answers.WITHOUT_REPOSITORY:
        return answers.WITHOUT_REPOSITORY[request.route](request, account)
    repository = request.hub.repositories.get(request.groups["repo"])
    name = account.name if account else ""
    if repository is None or (repository.private and name not in repository.writers):
        if account is None:
            return refusal(401, "Invalid username or password.", code="RepoNotFound")
        return refusal(404, "Repository not found", code="RepoNotFound")
    try:
        answers.check_access(request, repository, account)
        return answers.WITH_REPOSITORY[request.route](request, repository, name)
    except Refused as error:
        return refusal(error.status, str(error))
    except Stop as stop:
        return stop.answer
