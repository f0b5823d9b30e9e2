"""Say in one line what the Hub or the network refused, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from generator.problems.failure import Failure
from generator.problems.messages import one_line

NOT_INSTALLED = (
    "huggingface_hub is not installed, which talks to the Hub: "
    "pip install 'gen-tests[hub]'."
)
_AGAIN = "run the same command again: it goes on where it stopped."
_QUOTA_TEXT = (
    "The Hub takes no more for {repo} ({said}): nothing was committed; free or buy "
    "storage at {place}/settings, then {again}"
)
_OFFLINE = "OfflineModeIsEnabled"
_OF_KIND = {
    "LocalTokenNotFoundError": "There is no token: run `hf auth login`, or set HF_TOKEN.",
    _OFFLINE: "HF_HUB_OFFLINE is set, so nothing is asked: unset it.",
    "GatedRepoError": "{repo} is gated: ask for access at {place}, then {again}",
    "RevisionNotFoundError": "{repo} has no revision {revision!r}: see {place}/refs.",
    "RepositoryNotFoundError": """\
There is no dataset repository {repo}, or it is private and the token may not see it: \
check --repo and `hf auth whoami`, or make it with \
`hf repo create {repo} --repo-type dataset`.""",
}
"""Name of an exception of huggingface_hub → what to do."""

_UNKNOWN_TOKEN = (
    "The Hub does not know the token (401), it is wrong or has expired: "
    "`hf auth login --force`, or a new HF_TOKEN from {site}/settings/tokens."
)
_OF_STATUS = {
    401: "The Hub asks for a token (401: {said}): run `hf auth login`.",
    402: _QUOTA_TEXT,
    403: "The token may not do this to {repo} (403: {said}): give a token with write "
    "access, or open a pull request instead of committing to a branch.",
    404: "{repo} has no such thing (404: {said}): see {place}/discussions.",
    413: _QUOTA_TEXT,
    429: "The Hub limits how often it is asked (429: {said}): wait, then {again}",
    500: "The Hub has a fault ({status}: {said}): later, {again}",
}
_OTHER_STATUS = "The Hub refused ({status}: {said}); see {place}."
_LOST = "The connection to {site} was lost ({said}): {again}"
_NO_NAME = "The Hub takes no such name: {said}"
_UNCLEAR = "The Hub's answer was not understood ({kind}: {said}): {again}"
_TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
_ADDRESS = re.compile(r"(https?://[^\s?]+)\?\S*")
_TOKEN = re.compile(r"\bhf_(?:oauth_[\w.-]{8,}|[A-Za-z0-9]{16,})|Bearer \S+")
_QUOTA = re.compile(r"(?i)quota|storage|exceed|limit reached|billing|payment")


class HubFailure(Failure):
    """Say in one line what went wrong and what to do; never with a token in it."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(without_secrets(message))
        self.status = status


class Unreachable(HubFailure):
    """Say that the Hub was not reached: what it has is not known."""


class Changed(HubFailure):
    """Say that somebody else committed between looking and writing."""


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
    lost = status is None and is_network(error)
    text = next((text for name, text in _OF_KIND.items() if name in kinds), "")
    if status == 401 and "Invalid" in said and "RepositoryNotFoundError" not in kinds:
        text = _UNKNOWN_TOKEN
    elif text:
        # a 404 is that of something in the repository
        lost, status = _OFFLINE in kinds, None if status == 404 else status
    elif status is not None:
        is_full = status == 403 and _QUOTA.search(said)
        known = _OF_STATUS.get(min(500, status), _OTHER_STATUS)
        text = _QUOTA_TEXT if is_full else known
    elif "HFValidationError" in kinds:
        text = _NO_NAME
    else:
        text = _LOST if lost else _QUOTA_TEXT if _QUOTA.search(said) else _UNCLEAR
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
    return (Unreachable if lost else HubFailure)(line, status)


def brief_of(error: BaseException) -> str:
    """Return what happened, for a line on what is tried again."""
    status, said = status_of(error), _said(error)
    if status is not None:
        return f"The Hub answered {status} ({said})"
    return f"The Hub did not answer ({said})"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what caused it: the client wraps what uploads raise."""
    while error is not None:
        yield error
        error = error.__cause__


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status behind an exception, or None."""
    for one in causes(error):
        status = getattr(getattr(one, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
    return None


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may well succeed in a moment."""
    if "LocalEntryNotFoundError" in _kinds(error):
        return False  # a download's first request, which the library has repeated
    status = status_of(error)
    return status in _TRANSIENT if status is not None else is_network(error)


def is_network(error: BaseException) -> bool:
    """Return whether no whole answer came."""
    kinds = _kinds(error)
    # httpx of huggingface_hub 1, httpx2 of 2: named alike, and neither is ours to import
    return _OFFLINE not in kinds and not kinds.isdisjoint(
        {"TransportError", "ConnectionError"}
    )


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the answer asks to wait, or None."""
    for one in causes(error):
        headers: Any = getattr(getattr(one, "response", None), "headers", None)
        value = headers.get("Retry-After") if headers is not None else None
        if value is not None and str(value).strip().isdigit():
            return float(value)
    return None


def _kinds(error: BaseException) -> set[str]:
    """Return the names of the kinds of an exception and of what caused it."""
    return {kind.__name__ for one in causes(error) for kind in type(one).__mro__}


def _said(error: BaseException) -> str:
    """Return what the server said, else what the innermost exception says."""
    chain = list(causes(error))
    for one in chain:
        said = getattr(one, "server_message", None)
        if said:
            return one_line(without_secrets(" ".join(str(said).split())), 200)
    text = " ".join(str(chain[-1]).split()) or type(chain[-1]).__name__
    return one_line(without_secrets(text), 200)
