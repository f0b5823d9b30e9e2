"""Say in one line what the Hub or the network refused, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from generator.wording import one_line

NOT_INSTALLED = (
    "huggingface_hub is not installed, which talks to the Hub: "
    "pip install 'gen-tests[hub]'."
)
_AGAIN = "run the same command again: it goes on where it stopped."
_TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
_ADDRESS = re.compile(r"(https?://[^\s?]+)\?\S*")
_TOKEN = re.compile(r"\bhf_(?:oauth_[\w.-]{8,}|[A-Za-z0-9]{16,})|Bearer \S+")
_QUOTA = re.compile(r"(?i)quota|storage|exceed|limit reached|billing|payment")


class HubFailure(Exception):
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
    from huggingface_hub import errors

    names = {type(one).__name__ for one in causes(error)}
    status, said = status_of(error), _said(error)
    site = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    place = f"{site}/datasets/{repo}"
    if _is_any(error, errors.LocalTokenNotFoundError):
        return HubFailure("There is no token: run `hf auth login`, or set HF_TOKEN.")
    if _is_any(error, errors.OfflineModeIsEnabled):
        return Unreachable("HF_HUB_OFFLINE is set, so nothing is asked: unset it.")
    if _is_any(error, errors.GatedRepoError):
        gated = f"{repo} is gated: ask for access at {place}, then {_AGAIN}"
        return HubFailure(gated, 403)
    missing = _is_any(error, errors.RepositoryNotFoundError)
    if status == 401 and "Invalid" in said and not missing:
        return HubFailure(
            "The Hub does not know the token (401), it is wrong or has expired: "
            f"`hf auth login --force`, or a new HF_TOKEN from {site}/settings/tokens.",
            401,
        )
    if _is_any(error, errors.RevisionNotFoundError):
        return HubFailure(f"{repo} has no revision {revision!r}: see {place}/refs.")
    if missing:
        return HubFailure(
            f"There is no dataset repository {repo}, or it is private and the token "
            f"may not see it: check --repo and `hf auth whoami`, or make it with "
            f"`hf repo create {repo} --repo-type dataset`."
        )
    if status is not None:
        return HubFailure(_of_status(status, repo, place, said), status)
    if "HFValidationError" in names:
        return HubFailure(f"The Hub takes no such name: {said}")
    if is_network(error):
        return Unreachable(f"The connection to {site} was lost ({said}): {_AGAIN}")
    if _QUOTA.search(said):
        return HubFailure(_of_quota(repo, place, said))
    kind = type(error).__name__
    return HubFailure(f"The Hub's answer was not understood ({kind}: {said}): {_AGAIN}")


def brief_of(error: BaseException) -> str:
    """Return what happened, for a line on what is tried again."""
    status, said = status_of(error), _said(error)
    if status is not None:
        return f"The Hub answered {status} ({said})"
    return f"The Hub did not answer ({said})"


def _of_status(status: int, repo: str, place: str, said: str) -> str:
    if status in (402, 413) or (status == 403 and _QUOTA.search(said)):
        return _of_quota(repo, place, said)
    if status == 401:
        return f"The Hub asks for a token (401: {said}): run `hf auth login`."
    if status == 403:
        return (
            f"The token may not do this to {repo} (403: {said}): give a token with "
            "write access, or open a pull request instead of committing to a branch."
        )
    if status == 404:
        return f"{repo} has no such thing (404: {said}): see {place}/discussions."
    if status == 429:
        return (
            f"The Hub limits how often it is asked (429: {said}): wait, then {_AGAIN}"
        )
    if status >= 500:
        return f"The Hub has a fault ({status}: {said}): later, {_AGAIN}"
    return f"The Hub refused ({status}: {said}); see {place}."


def _of_quota(repo: str, place: str, said: str) -> str:
    return (
        f"The Hub takes no more for {repo} ({said}): nothing was committed; free or buy "
        f"storage at {place}/settings, then {_AGAIN}"
    )


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
    status = status_of(error)
    return status in _TRANSIENT if status is not None else is_network(error)


def is_network(error: BaseException) -> bool:
    """Return whether no whole answer came."""
    kinds = {kind.__name__ for one in causes(error) for kind in type(one).__mro__}
    own = {"OfflineModeIsEnabled", "LocalTokenNotFoundError"}
    # httpx of huggingface_hub 1, httpx2 of 2: named alike, and neither is ours to import
    return not kinds & own and bool(kinds & {"TransportError", "ConnectionError"})


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the answer asks to wait, or None."""
    for one in causes(error):
        headers: Any = getattr(getattr(one, "response", None), "headers", None)
        value = headers.get("Retry-After") if headers is not None else None
        if value is not None and str(value).strip().isdigit():
            return float(value)
    return None


def _is_any(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(one, kind) for one in causes(error))


def _said(error: BaseException) -> str:
    """Return what the server said, else what the innermost exception says."""
    chain = list(causes(error))
    for one in chain:
        said = getattr(one, "server_message", None)
        if said:
            return one_line(without_secrets(" ".join(str(said).split())), 200)
    text = " ".join(str(chain[-1]).split()) or type(chain[-1]).__name__
    return one_line(without_secrets(text), 200)
