"""Say in one line what the Hub or the network refused, and what to do about it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from typing import Any

from generator.problems import Failure
from generator.problems.messages import one_line

NOT_INSTALLED = (
    "huggingface_hub is not installed, which talks to the Hub: "
    "pip install 'gen-tests[hub]'."
)
NO_TOKEN = "There is no token: run `hf auth login`, or set HF_TOKEN."
_AGAIN = "run the same command again: it goes on where it stopped."
_FULL = (
    "The Hub takes no more for {repo} ({said}): nothing was committed; free or buy "
    "storage at {place}/settings, then {again}"
)
_OFFLINE = "OfflineModeIsEnabled"
_ADVICE: dict[str | int, str] = {
    "LocalTokenNotFoundError": NO_TOKEN,
    _OFFLINE: "HF_HUB_OFFLINE is set, so nothing is asked: unset it.",
    "GatedRepoError": "{repo} is gated: ask for access at {place}, then {again}",
    "RevisionNotFoundError": "{repo} has no revision {revision!r}: see {place}/refs.",
    "RepositoryNotFoundError": """\
There is no dataset repository {repo}, or it is private and the token may not see it: \
check --repo and `hf auth whoami`, or make it with \
`hf repo create {repo} --repo-type dataset`.""",
    "HFValidationError": "The Hub takes no such name: {said}",
    401: "The Hub asks for a token (401: {said}): run `hf auth login`.",
    402: _FULL,
    403: "The token may not do this to {repo} (403: {said}): give a token with write "
    "access, or open a pull request instead of committing to a branch.",
    404: "{repo} has no such thing (404: {said}): see {place}/discussions.",
    413: _FULL,
    429: "The Hub limits how often it is asked (429: {said}): wait, then {again}",
    500: "The Hub has a fault ({status}: {said}): later, {again}",
}
"""Exception of huggingface_hub, or else HTTP status (500: all from there) → what to do."""

_OTHER_STATUS = "The Hub refused ({status}: {said}); see {place}."
_UNKNOWN_TOKEN = (
    "The Hub does not know the token (401), it is wrong or has expired: "
    "`hf auth login --force`, or a new HF_TOKEN from {site}/settings/tokens."
)
_NO_XET = (
    "The Hub has no Xet storage for {repo} (404), through which huggingface_hub uploads: "
    "set HF_HUB_DISABLE_XET=1, then {again}"
)
_LOST = "The connection to {site} was lost ({said}): {again}"
_UNCLEAR = "The Hub's answer was not understood ({kind}: {said}): {again}"
_TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
_ADDRESS = re.compile(r"(https?://[^\s?]+)\?\S*")
_TOKEN = re.compile(r"\bhf_(?:oauth_[\w.-]{8,}|[A-Za-z0-9]{16,})|Bearer \S+")
_XET = re.compile(r"(?s)\(404\b.*/xet-\w+-token/")
_QUOTA = re.compile(r"(?i)quota|storage|exceed|limit reached|billing|payment")


class HubFailure(Failure):
    """A failure in one line with what to do about it; never with a token in it."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(without_secrets(message))
        self.status = status


class Unreachable(HubFailure):
    """Raised where the Hub was not reached, so that its contents are unknown."""


class Changed(HubFailure):
    """Raised where somebody else committed between reading and writing."""


def without_secrets(text: str) -> str:
    """Return a text without what looks like a token, and without addresses' queries.

    The addresses of uploads are signed: who has one may use it.
    """
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        token = os.environ.get(name, "").strip()
        if token:
            text = text.replace(token, "***")
    return _TOKEN.sub("***", _ADDRESS.sub(r"\1", text))


def failure_of(error: BaseException, repo: str, revision: str = "main") -> HubFailure:
    """Return the line for an exception of the client, whatever kind it is."""
    kinds, status, said = _kinds(error), status_of(error), _said(error)
    named = next((kind for kind in _ADVICE if kind in kinds), None)
    is_lost = _OFFLINE in kinds or (status is None and is_network(error))
    is_full = status in (None, 403) and _QUOTA.search(said)
    if status == 401 and "Invalid" in said and named != "RepositoryNotFoundError":
        text = _UNKNOWN_TOKEN
    elif named is not None:
        text = _ADVICE[named]
        # a 404 is that of something in the repository
        status = None if status == 404 else status
    elif _is_without_xet(error):
        text = _NO_XET
    elif is_lost or status is None:
        text = _LOST if is_lost else _FULL if is_full else _UNCLEAR
    else:
        text = _FULL if is_full else _ADVICE.get(min(500, status), _OTHER_STATUS)
    site = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    line = text.format(
        repo=repo,
        revision=revision,
        site=site,
        place=f"{site}/datasets/{repo}",
        status=status,
        said=said,
        kind=type(error).__name__,
        again=_AGAIN,
    )
    return (Unreachable if is_lost else HubFailure)(line, status)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status behind an exception, or None."""
    status = getattr(_response(error), "status_code", None)
    return status if isinstance(status, int) else None


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may well succeed in a moment."""
    if "LocalEntryNotFoundError" in _kinds(error):
        return False  # a download's first request, which the library has repeated
    if any(isinstance(one, socket.gaierror) for one in _reasons(error)):
        return False  # a name that nobody knows is not known in a moment either
    status = status_of(error)
    return status in _TRANSIENT if status is not None else is_network(error)


def is_network(error: BaseException) -> bool:
    """Return whether no whole answer came."""
    kinds = _kinds(error)
    if _is_without_xet(error):
        return False
    # of httpx2, which is the library's and not ours to import
    return _OFFLINE not in kinds and not kinds.isdisjoint(
        {"TransportError", "ConnectionError"}
    )


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the answer asks to wait, or None."""
    headers = getattr(_response(error), "headers", None) or {}
    value = str(headers.get("Retry-After", "")).strip()
    return float(value) if value.isdigit() else None


def _is_without_xet(error: BaseException) -> bool:
    """Return whether an upload was refused a token of Xet: hf_xet has a text alone."""
    return _XET.search(str(_causes(error)[-1])) is not None


def _response(error: BaseException) -> Any:
    """Return the answer behind an exception, or None."""
    responses = (getattr(one, "response", None) for one in _causes(error))
    return next((response for response in responses if response is not None), None)


def _causes(error: BaseException | None) -> list[BaseException]:
    """Return an exception and what caused it: the client wraps what uploads raise."""
    causes = []
    while error is not None:
        causes.append(error)
        error = error.__cause__
    return causes


def _reasons(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that were being handled when it was raised."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [e for e in (one.__cause__, one.__context__) if e is not None]


def _kinds(error: BaseException) -> set[str]:
    """Return the names of the kinds of an exception and of what caused it."""
    return {kind.__name__ for one in _causes(error) for kind in type(one).__mro__}


def _said(error: BaseException) -> str:
    """Return what the server said, else what the innermost exception says."""
    chain = _causes(error)
    of_server = (getattr(one, "server_message", None) for one in chain)
    said = next(filter(None, of_server), None) or str(chain[-1])
    text = " ".join(str(said).split()) or type(chain[-1]).__name__
    return one_line(without_secrets(text), 200)
