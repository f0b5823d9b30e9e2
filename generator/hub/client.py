"""Ask the Hub about one dataset repository, patiently, through huggingface_hub.

Everything on tokens is left to huggingface_hub: none is read or held here.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from generator.hub.failures import (
    NO_TOKEN,
    NOT_INSTALLED,
    HubFailure,
    failure_of,
    is_network,
    is_transient,
    retry_after,
    status_of,
)
from generator.problems.messages import one_line, quote

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_Value = TypeVar("_Value")
OPEN = ("open", "draft")
"""What the Hub says of a pull request that can be changed and merged."""

_ATTEMPTS = 8
_LONGEST_WAIT = 30.0
_LONGEST_ASKED = 300.0
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"{_PART}/{_PART}", re.ASCII)


def bad_repo(repo: str) -> str:
    """Return in one line why a text names no repository, nothing where it does."""
    if not _REPO.fullmatch(repo) or ".." in repo or "--" in repo:
        return "a dataset's repository is named OWNER/NAME."
    return ""


@dataclass
class Client:
    """One dataset repository of the Hub; `tell` is given what takes a while."""

    repo: str
    tell: Callable[[str], None]
    attempts: int = _ATTEMPTS
    api: HfApi = field(init=False, repr=False)
    _account: dict[str, Any] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.api = _quiet_api()

    def call(self, ask: Callable[[], _Value], revision: str = "main") -> _Value:
        """Return what a request returns; it must do no harm if done twice.

        Waits and asks again after a lost connection, 429 (as long as the answer says)
        and 5xx. Raises HubFailure.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return ask()
            # the library raises its HTTP library's kinds, OSError, RuntimeError, ...
            except Exception as error:  # noqa: BLE001
                self.wait_after(error, attempt, revision)
        raise AssertionError("the last attempt raises")

    def ask(
        self, method: str, *arguments: Any, about: str = "main", **options: Any
    ) -> Any:
        """Call a method of the library's API on the repository; listings are lists.

        `about` is the revision that a message names. Raises HubFailure.
        """

        def once() -> Any:
            call = getattr(self.api, method)
            answer = call(self.repo, *arguments, repo_type="dataset", **options)
            return list(answer) if isinstance(answer, Generator) else answer

        return self.call(once, about)

    def wait_after(
        self, error: BaseException, attempt: int, revision: str = "main"
    ) -> None:
        """Wait before the next attempt, or raise HubFailure where none would help."""
        if isinstance(error, OSError) and error.errno and not is_network(error):
            raise error  # a full disk is none of the Hub's doing
        failure = failure_of(error, self.repo, revision)
        if attempt >= self.attempts or not is_transient(error):
            raise failure from None
        asked = retry_after(error)
        if asked is not None and asked > _LONGEST_ASKED:
            raise HubFailure(
                f"The Hub asks to wait for {asked:.0f} s: wait, then run the same "
                "command again: it goes on where it stopped."
            ) from None
        seconds = asked if asked is not None else min(2.0**attempt / 2, _LONGEST_WAIT)
        status = status_of(error)
        outcome = "did not answer" if status is None else f"answered {status}"
        self.tell(f"The Hub {outcome}: trying again in {seconds:.0f} s.")
        time.sleep(seconds)

    def account(self) -> dict[str, Any] | None:
        """Return whom the token belongs to, or None where there is no token."""
        from huggingface_hub import get_token

        if self._account is None:
            if not self.call(get_token):
                return None
            self._account = self.call(self.api.whoami)
        return self._account

    def require_write(self) -> None:
        """Raise HubFailure where there is no token that may write."""
        account = self.account()
        if account is None:
            raise HubFailure(NO_TOKEN)
        token = (account.get("auth") or {}).get("accessToken") or {}
        if token.get("role") == "read":
            raise HubFailure(
                "The token has read access only: create one with write access at "
                f"{self.api.endpoint}/settings/tokens, then `hf auth login --force`."
            )

    def name(self) -> str:
        """Return the name of whom the token belongs to, empty where there is no token."""
        account = self.account()
        return str(account["name"]) if account else ""

    def head(self, revision: str) -> str:
        """Return the commit that a revision names."""
        # the id alone: else it lists every file
        options: dict[str, Any] = {"revision": revision, "expand": ["sha"]}
        return str(self.ask("repo_info", about=revision, **options).sha)

    def tree(
        self, revision: str, folder: str | None = None, *, deep: bool = False
    ) -> list[Any]:
        """Return the entries of a folder; none where there is no such folder."""
        options = {"recursive": deep, "revision": revision}
        try:
            listed = self.ask("list_repo_tree", folder, about=revision, **options)
        except HubFailure as failure:
            if failure.status != 404:
                raise
            listed = []
        return list(listed)

    def pull_request(self, number: int) -> Any:
        """Return a pull request with what was said in it: a `DiscussionWithDetails`.

        Raises HubFailure, also where the number is that of a discussion.
        """
        try:
            discussion = self.ask("get_discussion_details", number)
        except HubFailure as failure:
            if failure.status != 404:
                raise
            message = f"{self.repo} has no pull request {number} (404)"
            raise HubFailure(f"{message}: see its discussions on the Hub.") from None
        if not discussion.is_pull_request:
            raise HubFailure(
                f"#{number} of {self.repo} is a discussion, not a pull request."
            )
        return discussion

    def edit(self, number: int, comment: str, text: str) -> None:
        """Replace the text of a comment, by its id."""
        change = ("edit_discussion_comment", number, comment, text)
        self.ask(*change, about=f"refs/pr/{number}")

    def url(self, number: int) -> str:
        """Return the address of a discussion or pull request."""
        return f"{self.api.endpoint}/datasets/{self.repo}/discussions/{number}"


def _quiet_api() -> HfApi:
    """Return the library's API; what it would log has addresses that are signed."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars
        from huggingface_hub.utils import logging as library_logging
    except ImportError:
        raise HubFailure(NOT_INSTALLED) from None
    except ValueError as error:
        # it reads its settings when it is imported
        message = one_line(str(error), 200)
        raise HubFailure(f"HF_ENDPOINT is not an address: {message}.") from None
    disable_progress_bars()
    library_logging.set_verbosity(logging.CRITICAL)
    api = HfApi(library_name="gen-tests")
    if not api.endpoint.startswith(("http://", "https://")):
        raise HubFailure(
            f"HF_ENDPOINT is not an address: {quote(api.endpoint)} does not begin with "
            "https://."
        )
    return api
