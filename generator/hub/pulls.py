"""Find, make and describe the pull request that a push goes into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from generator.hub.bundle import has_marker
from generator.hub.failures import HubFailure

if TYPE_CHECKING:
    from generator.hub.client import Client

_OPEN = ("open", "draft")


@dataclass(frozen=True)
class PullRequest:
    """Hold a pull request of the Hub; `comment` is the id of its first text."""

    number: int
    title: str
    author: str
    status: str
    comment: str
    text: str

    @property
    def revision(self) -> str:
        """Return the ref that its commits are on."""
        return f"refs/pr/{self.number}"


class PullRequests:
    """Know the pull requests of a repository; own open ones are read once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._own: dict[int, str] | None = None
        self._read: dict[int, PullRequest] = {}

    def find_own(self, author: str, marker: str, title: str) -> PullRequest | None:
        """Return the author's open pull request with a marker, the newest."""
        for number in self._numbers(author, title):
            if number not in self._read:
                self._read[number] = self.read(number)
            found = self._read[number]
            if has_marker(found.text, marker) and found.status in _OPEN:
                return found
        return None

    def forget(self) -> None:
        """Ask anew next time: something may have been opened."""
        self._own, self._read = None, {}

    def _numbers(self, author: str, title: str) -> list[int]:
        client = self._client
        if self._own is None:
            listed = client.call(
                lambda: list(
                    client.api.get_repo_discussions(
                        client.repo,
                        author=author,
                        discussion_type="pull_request",
                        repo_type="dataset",
                    )
                )
            )
            self._own = {
                one.num: one.title
                for one in listed
                if one.is_pull_request and one.status in _OPEN and one.author == author
            }
        own = self._own
        # most often the first one asked for is it
        return sorted(own, key=lambda number: (own[number] != title, -number))

    def read(self, number: int) -> PullRequest:
        """Return a pull request. Raises HubFailure where the number is none."""
        client = self._client
        details = client.discussion(number)
        if not details.is_pull_request:
            raise HubFailure(
                f"#{number} of {client.repo} is a discussion, not a pull request."
            )
        first = next((e for e in details.events if e.type == "comment"), None)
        return PullRequest(
            number,
            details.title,
            details.author,
            details.status,
            first.id if first is not None else "",
            getattr(first, "content", ""),
        )

    def describe(self, pull: PullRequest, text: str) -> bool:
        """Make a pull request's text what it should be; return whether it was not."""
        if _normal(pull.text) == _normal(text) or not pull.comment:
            return False
        self._client.edit(pull.number, pull.comment, text)
        self._read.pop(pull.number, None)
        return True


def _normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
